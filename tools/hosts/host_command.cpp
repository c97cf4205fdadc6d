// SPDX-License-Identifier: BSD-3-Clause
#include "tools/hosts/host_command.hpp"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>
#include <string_view>

#include "tools/become.hpp"

namespace hiroba::tools {

namespace {

/// Between fork and exec; only system calls.
[[noreturn]] void become_command(char* const* words, int input, int failure, pid_t launcher,
                                 const SignalWatch& signals) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != launcher) ::_exit(127);
    ::setsid();
    if (::dup2(input, STDIN_FILENO) >= 0) {
        signals.restore();
        ::execvp(words[0], words);
    }
    const int error = errno;
    [[maybe_unused]] const ssize_t written = ::write(failure, &error, sizeof error);
    ::_exit(127);
}

Error cannot(const std::string& word, int error) {
    return {ErrorKind::environment,
            fmt::format("cannot execute {}: {}. Install it, or name another command with --ssh or "
                        "HIROBA_SSH",
                        word, ::strerror(error))};
}

Result<std::string> own_path() {
    std::error_code failed;
    std::string self = std::filesystem::read_symlink("/proc/self/exe", failed).string();
    if (failed)
        return Error{ErrorKind::environment,
                     fmt::format("cannot read /proc/self/exe: {}. Mount /proc", failed.message())};
    return self;
}

}  // namespace

Result<std::vector<std::string>> own_agent_words() {
    const auto self = own_path();
    if (!self) return self.error();
    return std::vector<std::string>{*self, "agent"};
}

Result<std::vector<std::string>> agent_words(const std::string& command, const std::string& host,
                                             const std::string& hiroba) {
    std::istringstream stream(command);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    if (words.empty())
        return Error{ErrorKind::usage, "--ssh names no command. Leave it out for ssh"};
    const auto self = hiroba.empty() ? own_path() : Result<std::string>(hiroba);
    if (!self) return self.error();
    constexpr std::string_view plain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,@%=:~";
    if (self->find_first_not_of(plain) != self->npos)
        return Error{ErrorKind::environment,
                     fmt::format("the path of this command, {}, cannot be given to a shell on "
                                 "another host. Install it elsewhere",
                                 *self)};
    words.insert(words.end(), {host, *self, "agent"});
    return words;
}

Result<HostCommand> start_command(const std::vector<std::string>& words,
                                  const SignalWatch& signals) {
    const std::vector<char*> pointers = pointers_to(words);
    int input[2], failure[2] = {-1, -1};
    if (::pipe2(input, O_CLOEXEC) != 0) return cannot(words[0], errno);
    HostCommand command;
    int error = ::pipe2(failure, O_CLOEXEC) == 0 ? 0 : errno;
    if (error == 0) {
        const pid_t launcher = ::getpid();
        command.pid = ::fork();
        if (command.pid == 0)
            become_command(pointers.data(), input[0], failure[1], launcher, signals);
        if (command.pid < 0) error = errno;
        ::close(failure[1]);
        // The end of the pipe says that the command runs.
        while (error == 0 && ::read(failure[0], &error, sizeof error) < 0 && errno == EINTR) {
        }
        ::close(failure[0]);
    }
    ::close(input[0]);
    if (error != 0) {
        ::close(input[1]);
        if (command.pid > 0) ::waitpid(command.pid, nullptr, 0);
        return cannot(words[0], error);
    }
    ::fcntl(input[1], F_SETFL, O_WRONLY | O_NONBLOCK);
    command.input = input[1];
    return command;
}

}  // namespace hiroba::tools
