// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/child.hpp"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sstream>

#include "base/clock.hpp"

namespace hiroba::tools {
namespace {

constexpr int no_such_program = 127;

/// In the child, after fork().
[[noreturn]] void become_child(char* const* words, const Child::Settings& settings, int output) {
    // No other process would end it if this one were killed.
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    for (const auto& [name, value] : settings) ::setenv(name.c_str(), value.c_str(), 1);
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(output < 0 ? nothing : output, STDOUT_FILENO);
    ::dup2(output < 0 ? nothing : output, STDERR_FILENO);
    ::execvp(words[0], words);
    ::_exit(no_such_program);
}

}  // namespace

Child::Child(const std::vector<std::string>& words, const Settings& settings, bool keeps_output) {
    int ends[2] = {-1, -1};
    if (keeps_output && ::pipe2(ends, O_CLOEXEC) != 0) return;
    std::vector<char*> pointers;
    pointers.reserve(words.size() + 1);
    for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) become_child(pointers.data(), settings, ends[1]);
    if (ends[1] >= 0) ::close(ends[1]);
    output_ = ends[0];
}

Child::~Child() {
    if (output_ >= 0) ::close(output_);
    if (pid_ <= 0) return;
    ::kill(pid_, SIGTERM);
    reap();
}

int Child::reap() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int Child::finish(std::uint32_t seconds, std::string& output) {
    if (pid_ <= 0 || output_ < 0) return no_such_program;
    const std::uint64_t end_ns = now_ns() + std::uint64_t{seconds} * 1'000'000'000u;
    char part[4096];
    while (true) {
        pollfd readable{output_, POLLIN, 0};
        const std::uint64_t now = now_ns();
        const int left_ms = now < end_ns ? static_cast<int>((end_ns - now) / 1'000'000 + 1) : 0;
        const int found = ::poll(&readable, 1, left_ms);
        if (found < 0 && errno == EINTR) continue;
        if (found <= 0) {
            ::kill(pid_, SIGKILL);
            break;
        }
        const ssize_t got = ::read(output_, part, sizeof part);
        if (got <= 0) break;
        output.append(part, static_cast<std::size_t>(got));
    }
    return reap();
}

bool is_program(const std::string& name) {
    if (name.find('/') != name.npos) return ::access(name.c_str(), X_OK) == 0;
    const char* const path = ::getenv("PATH");
    std::istringstream folders(path == nullptr ? "/usr/bin:/bin" : path);
    for (std::string folder; std::getline(folders, folder, ':');) {
        if (::access((folder + "/" + name).c_str(), X_OK) == 0) return true;
    }
    return false;
}

}  // namespace hiroba::tools
