// SPDX-License-Identifier: BSD-3-Clause
// Role: a replay in a process of its own: SimGrid has one a process, and ends it where it does not
// like a platform.
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <string>
#include <type_traits>

#include "tools/predict/simgrid/actors.hpp"

namespace hiroba::tools {

namespace {

static_assert(std::is_trivially_copyable_v<Replayed>);

/// What the child sends: 'r' and the result, or 'e' and a text.
void write_all(int fd, const void* bytes, std::size_t size) {
    const char* at = static_cast<const char*>(bytes);
    while (size > 0) {
        const ssize_t wrote = ::write(fd, at, size);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) return;
        at += wrote;
        size -= static_cast<std::size_t>(wrote);
    }
}

[[noreturn]] void be_child(const WorkTable& table, const ReplayMachine& machine, int to) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(to, STDERR_FILENO);  // What SimGrid says before it ends the process.
    const auto fail = [to](const std::string& why) {
        write_all(to, ("e" + why).c_str(), why.size() + 1);
        ::_exit(1);
    };
    try {
        const Replayed result = replay_here(table, machine);
        write_all(to, "r", 1);
        write_all(to, &result, sizeof result);
    } catch (const TooFewHosts& few) {
        fail(fmt::format("it has {} hosts, and {} nodes are wanted", few.hosts, table.nodes));
    } catch (const std::exception& error) {
        fail(error.what());
    }
    ::_exit(0);
}

std::string read_all(int fd) {
    std::string got;
    char bytes[4096];
    for (;;) {
        const ssize_t count = ::read(fd, bytes, sizeof bytes);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return got;
        got.append(bytes, static_cast<std::size_t>(count));
    }
}

/// The first line of what was said, as part of a sentence.
std::string first_line(std::string text) {
    constexpr std::size_t line_most = 300;
    text = text.substr(0, std::min(text.find('\n'), line_most));
    for (char& each : text)
        if (each < ' ' || each > '~') each = '?';  // of the file, as it may be
    while (!text.empty() && (text.back() == '.' || text.back() == ' ')) text.pop_back();
    return text.empty() ? "it said nothing" : text;
}

Error failed(const ReplayMachine& machine, const std::string& why) {
    return {ErrorKind::environment,
            machine.platform.empty()
                ? fmt::format("SimGrid cannot replay this: {}", why)
                : fmt::format("{} cannot be used as a platform: {}. See SimGrid's manual, Platform",
                              machine.platform, why)};
}

}  // namespace

Result<Replayed> replay(const WorkTable& table, const ReplayMachine& machine) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
        return failed(machine, fmt::format("no pipe: {}", ::strerror(errno)));
    const pid_t child = ::fork();
    if (child == 0) be_child(table, machine, ends[1]);
    ::close(ends[1]);
    if (child < 0) {
        ::close(ends[0]);
        return failed(machine, fmt::format("no process: {}", ::strerror(errno)));
    }
    const std::string got = read_all(ends[0]);
    ::close(ends[0]);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    Replayed result;
    const std::size_t at = got.size() - std::min(got.size(), sizeof result + 1);
    if (status == 0 && got.size() >= sizeof result + 1 && got[at] == 'r') {
        ::memcpy(&result, got.data() + at + 1, sizeof result);
        return result;
    }
    return failed(machine, first_line(got.starts_with('e') ? got.substr(1) : got));
}

}  // namespace hiroba::tools
