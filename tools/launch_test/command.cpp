// SPDX-License-Identifier: BSD-3-Clause
// Role: pipes or a pseudo-terminal around one child process.
#include "tools/launch_test/command.hpp"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <utility>

#include "base/clock.hpp"

namespace hiroba::tools {

namespace {

constexpr std::uint64_t limit_ns = 20'000'000'000;

std::vector<char*> pointers(std::vector<std::string>& strings) {
    std::vector<char*> all;
    for (std::string& text : strings) all.push_back(text.data());
    all.push_back(nullptr);
    return all;
}

}  // namespace

Command::Command(std::vector<std::string> words, Options options) : started_ns_(now_ns()) {
    std::vector<std::string> variables = {"PATH=/usr/bin:/bin", "LANG=C", "HOME=/"};
    variables.insert(variables.end(), options.variables.begin(), options.variables.end());
    const std::vector<char*> arguments = pointers(words);
    const std::vector<char*> environment = pointers(variables);
    int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1};
    if (options.terminal) {
        pid_ = ::forkpty(&out[0], nullptr, nullptr, nullptr);
    } else {
        if (::pipe2(in, O_CLOEXEC) || ::pipe2(out, O_CLOEXEC) || ::pipe2(err, O_CLOEXEC)) return;
        pid_ = ::fork();
    }
    if (pid_ == 0) {
        if (!options.terminal) {
            ::dup2(in[0], 0);
            ::dup2(out[1], 1);
            ::dup2(err[1], 2);
        }
        // A background job of a shell has them ignored, and what it starts inherits that.
        for (int number : {SIGHUP, SIGINT, SIGQUIT}) ::signal(number, SIG_DFL);
        for (const auto& [resource, value] : options.limits) {
            const rlimit limit{value, value};
            ::setrlimit(static_cast<__rlimit_resource>(resource), &limit);
        }
        ::execve(arguments[0], arguments.data(), environment.data());
        ::_exit(126);
    }
    out_fd_ = out[0];
    err_fd_ = err[0];
    if (options.terminal) return;
    [[maybe_unused]] const ssize_t written =
        ::write(in[1], options.input.data(), options.input.size());
    for (int fd : {in[0], in[1], out[1], err[1]}) ::close(fd);
}

Command::~Command() {
    if (pid_ > 0 && !reaped_) {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    if (out_fd_ >= 0) ::close(out_fd_);
    if (err_fd_ >= 0) ::close(err_fd_);
}

bool Command::read_some(std::uint64_t deadline_ns) {
    pollfd entries[2] = {{out_fd_, POLLIN, 0}, {err_fd_, POLLIN, 0}};
    const std::uint64_t now = now_ns();
    if (now >= deadline_ns || (out_fd_ < 0 && err_fd_ < 0)) return false;
    ::poll(entries, 2, static_cast<int>((deadline_ns - now) / 1'000'000 + 1));
    const auto take = [](const pollfd& entry, int& fd, std::string& text) {
        if (entry.revents == 0) return;
        std::array<char, 4096> bytes;
        const ssize_t got = ::read(fd, bytes.data(), bytes.size());
        if (got > 0) text.append(bytes.data(), static_cast<std::size_t>(got));
        if (got > 0 || (got < 0 && errno == EINTR)) return;
        ::close(fd);
        fd = -1;
    };
    take(entries[0], out_fd_, out_);
    take(entries[1], err_fd_, err_);
    return true;
}

bool Command::await_output(const std::string& text, std::size_t times) {
    const std::uint64_t deadline = now_ns() + limit_ns;
    while (occurrences(out_, text) < times)
        if (!read_some(deadline)) return false;
    return true;
}

void Command::type(const std::string& text) {
    [[maybe_unused]] const ssize_t written = ::write(out_fd_, text.data(), text.size());
}

void Command::send(int signal_number) { ::kill(pid_, signal_number); }

Outcome Command::finish() {
    const std::uint64_t deadline = now_ns() + limit_ns;
    // The output ends when the last node has ended: left-over nodes show as a time-out.
    while (read_some(deadline)) {
    }
    Outcome outcome;
    if (out_fd_ >= 0 || err_fd_ >= 0) ::kill(pid_, SIGKILL);
    int status = 0;
    if (::waitpid(pid_, &status, 0) == pid_)
        outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    reaped_ = true;
    outcome.out = out_;
    outcome.err = err_;
    outcome.took_ns = now_ns() - started_ns_;
    return outcome;
}

std::string stage(const std::string& path) { return std::string(HIROBA_TEST_STAGE "/") + path; }

std::vector<std::string> node_command(int nodes, std::vector<std::string> words) {
    std::vector<std::string> all = {stage("bin/hiroba"), "run", "-n", std::to_string(nodes),
                                    stage("programs/launch_node")};
    all.insert(all.end(), words.begin(), words.end());
    return all;
}

Outcome outcome_of(std::vector<std::string> words, Command::Options options) {
    return Command(std::move(words), std::move(options)).finish();
}

Outcome quick_outcome_of(std::uint64_t limit_ns, const std::vector<std::string>& words,
                         const Command::Options& options) {
    constexpr int tries = 5;
    Outcome outcome = outcome_of(words, options);
    for (int i = 1; i < tries && outcome.took_ns >= limit_ns; ++i)
        outcome = outcome_of(words, options);
    return outcome;
}

std::size_t occurrences(const std::string& text, const std::string& part) {
    std::size_t count = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
}

char state_of(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string stat;
    std::getline(file, stat);
    const auto name_end = stat.rfind(')');
    if (name_end == std::string::npos || stat.size() < name_end + 3) return '\0';
    const char state = stat[name_end + 2];
    return state == 'Z' || state == 'X' ? '\0' : state;
}

}  // namespace hiroba::tools
