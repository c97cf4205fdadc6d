// SPDX-License-Identifier: BSD-3-Clause
// Role: lines to stderr, and the exit status of each kind of error.
#include "tools/line.hpp"

#include <errno.h>
#include <fmt/format.h>
#include <unistd.h>

#include <string>

#include "base/fatal.hpp"
#include "base/result.hpp"

namespace hiroba::tools {

void say_line(std::string_view text) {
    std::string line = "hiroba: ";
    // A name of the user's may hold anything, and a line is one line.
    for (const char each : text) {
        const auto code = static_cast<unsigned char>(each);
        if (code >= ' ' && code != 0x7f)
            line += each;
        else
            line += fmt::format("\\x{:02x}", code);
    }
    if (!text.ends_with('.')) line += '.';
    line += '\n';
    std::string_view left = line;
    while (!left.empty()) {
        const ssize_t written = ::write(STDERR_FILENO, left.data(), left.size());
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return;  // There is no other place to say it.
        left.remove_prefix(static_cast<std::size_t>(written));
    }
}

int report(const Error& error) {
    say_line(error.text);
    return status_of(error);
}

int status_of(const Error& error) {
    constexpr int exit_software = 70;
    switch (error.kind) {
        case ErrorKind::usage: return exit_usage;
        case ErrorKind::environment: return exit_environment;
        case ErrorKind::peer_lost:
        case ErrorKind::refused:
        case ErrorKind::internal: break;
    }
    return exit_software;
}

}  // namespace hiroba::tools
