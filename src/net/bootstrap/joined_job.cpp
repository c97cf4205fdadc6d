// SPDX-License-Identifier: BSD-3-Clause
#include "net/bootstrap/joined_job.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/fatal.hpp"
#include "base/own_descriptors.hpp"
#include "net/bootstrap/keeper.hpp"
#include "net/bootstrap/process_manager.hpp"

namespace hiroba::net {

namespace {

Error unfit(std::string text) { return {ErrorKind::environment, std::move(text)}; }

const char* variable(const char* name) { return ::getenv(name); }

/// What stays of joining until the process exits.
struct Membership {
    std::optional<JobInfo> job;
    std::unique_ptr<ProcessManager> manager;
    int keeper = -1;
    pid_t process = -1;  ///< a child made by fork() is no member
};

// Never destroyed: destructors of the program may still communicate.
Membership& membership() {
    static Membership& it = *new Membership;
    return it;
}

/// Others may need this process's keeper until the job is over, and launchers may end what a
/// process leaves behind. An MPI library would miss a good-bye to the process manager.
void leave_launcher() {
    Membership& it = membership();
    if (it.process != ::getpid()) return;
    if (it.job && it.job->control_fd >= 0) ::shutdown(it.job->control_fd, SHUT_RDWR);
    ControlPacket packet;
    while (it.keeper >= 0 && receive_packet(it.keeper, packet, true) != Transfer::closed) {
    }
    it.manager.reset();
}

/// Ends this process, and by the launcher all others, which find the same.
[[noreturn]] void refuse(const std::string& line, int status) {
    const bool speaks = is_first_of_launcher(&variable);
    if (speaks && !line.empty()) say("%s", line.c_str());
    await_end_of_all(speaks, 2'000);
    ::_exit(status);
}

/// The command of the build that this code is of: beside the library's folder, or in PATH.
Result<std::string> find_command() {
    Dl_info self{};
    std::string tried;
    if (::dladdr(reinterpret_cast<const void*>(&join_job_info), &self) != 0 &&
        self.dli_fname != nullptr) {
        const std::string file = self.dli_fname;
        const std::size_t slash = file.rfind('/');
        const std::string folder = slash == file.npos ? "." : file.substr(0, slash);
        for (const char* const way : {"/../bin/hiroba", "/../../bin/hiroba", "/hiroba"}) {
            const std::string path = folder + way;
            if (::access(path.c_str(), X_OK) == 0) return path;
            tried += path + ", ";
        }
    }
    const std::string paths = variable("PATH") != nullptr ? variable("PATH") : "";
    for (std::size_t at = 0; at < paths.size();) {
        const std::size_t end = std::min(paths.find(':', at), paths.size());
        const std::string path = paths.substr(at, end - at) + "/hiroba";
        if (::access(path.c_str(), X_OK) == 0) return path;
        at = end + 1;
    }
    return unfit(
        "the processes of this launcher join through the command hiroba, which is neither " +
        tried + "nor in PATH. Install it on every host");
}

/// Starts the keeper; returns this process's end of the socket to it.
Result<int> start_keeper() {
    const auto command = find_command();
    if (!command) return command.error();
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return unfit(std::string("cannot make a socket: ") + ::strerror(errno) +
                     ". Raise ulimit -n");
    // dup2() of a descriptor to itself would leave it to be closed by the exec.
    if (ends[1] == keeper_fd) ends[1] = ::fcntl(ends[1], F_DUPFD_CLOEXEC, keeper_fd + 1);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], keeper_fd);
    std::string path = *command, word = "join";
    char* const words[] = {path.data(), word.data(), nullptr};
    pid_t keeper = -1;
    const int error = ::posix_spawn(&keeper, path.c_str(), &actions, nullptr, words, environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    if (error != 0) {
        ::close(ends[0]);
        return unfit("cannot start " + path + ": " + ::strerror(error));
    }
    return keep_descriptor(ends[0]);
}

Result<void> await(int keeper, ControlKind kind, ControlPacket& packet) {
    if (receive_packet(keeper, packet, true) != Transfer::done)
        return unfit("hiroba join, which this process had started, has ended");
    if (packet.header.kind == ControlKind::refused)
        refuse("", static_cast<int>(packet.header.number & 0xff));
    if (packet.header.kind != kind)
        return unfit("hiroba join is of another build than the library");
    return {};
}

/// Exchanges the keepers' cards through the launcher's process manager, and takes what comes of it.
Result<JobInfo> meet_others(ProcessManager& manager, int keeper) {
    const ControlHeader ask{ControlKind::card, manager.rank(), manager.processes()};
    ControlPacket packet;
    if (send_packet(keeper, ask, {}, -1, true) != Transfer::done)
        return unfit("hiroba join, which this process had started, has ended");
    if (auto got = await(keeper, ControlKind::card, packet); !got) return got.error();
    const auto cards = manager.exchange(packet.body);
    if (!cards) return cards.error();
    for (const auto& card : *cards)
        if (send_packet(keeper, ask, card, -1, true) != Transfer::done)
            return unfit("hiroba join, which this process had started, has ended");
    if (auto got = await(keeper, ControlKind::joined, packet); !got) return got.error();
    JoinedBody body;
    if (packet.fd < 0 || packet.body.size() != sizeof body)
        return unfit("hiroba join is of another build than the library");
    std::memcpy(&body, packet.body.data(), sizeof body);
    JobInfo job;
    job.self = NodeId{body.rank};
    job.nodes = body.nodes;
    job.threads_per_node = body.threads_per_node;
    job.hosts = body.hosts;
    job.job_key = body.key.low;
    job.job_key_high = body.key.high;
    job.network = std::string(body.network, ::strnlen(body.network, sizeof body.network));
    job.control_fd = keep_descriptor(packet.fd);
    const ControlHeader hello{ControlKind::attached, job.self.value, 0};
    if (send_packet(job.control_fd, hello, {}, -1, true) != Transfer::done)
        return unfit("the job's launcher has ended");
    return job;
}

/// Nothing: no launcher has started this process as one of several.
Result<std::optional<JobInfo>> join(Membership& it) {
    auto manager = ProcessManager::connect();
    if (!manager) return manager.error();
    if (const std::string lost = why_alone(&variable); *manager == nullptr && !lost.empty())
        return unfit(lost + "; for jobs of one node, hiroba run -n 1 in each");
    if (*manager == nullptr) return std::optional<JobInfo>();
    it.manager = std::move(*manager);
    if (it.manager->processes() <= 1) return std::optional<JobInfo>();
    const auto keeper = start_keeper();
    if (!keeper) return keeper.error();
    it.keeper = *keeper;
    auto job = meet_others(*it.manager, *keeper);
    if (!job) return job.error();
    return std::optional<JobInfo>(std::move(*job));
}

}  // namespace

Result<JobInfo> join_job_info() {
    Membership& it = membership();
    if (it.job) return *it.job;
    if (::getenv("HIROBA_JOB_RANK") != nullptr) {
        auto job = read_job_info();
        if (job) it.job = *job;
        return job;
    }
    auto joined = join(it);
    if (!joined) refuse(joined.error().text, exit_environment);
    it.process = ::getpid();
    if (it.manager != nullptr) ::atexit(&leave_launcher);
    it.job = joined->value_or(JobInfo{});
    return *it.job;
}

}  // namespace hiroba::net
