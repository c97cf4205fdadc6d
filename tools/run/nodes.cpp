// SPDX-License-Identifier: BSD-3-Clause
// Role: fork, the child's last steps before the program, and the report when one of them failed.
#include "tools/run/nodes.hpp"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <span>

#include "base/cpu_list.hpp"
#include "base/service_thread.hpp"
#include "tools/become.hpp"

namespace hiroba::tools {

namespace {

enum class Step : std::int32_t {
    death_signal,
    processors,
    standard_input,
    control_channel,
    execute
};

/// What a child writes when it could not become the program.
struct Failure {
    std::uint32_t rank;
    Step step;
    int error;
};

constexpr const char* allow_call =
    "Allow the call in the container's seccomp profile (docker run --security-opt "
    "seccomp=unconfined)";

std::string advice_for(Step step, const std::string& program) {
    switch (step) {
        case Step::death_signal: return allow_call;
        case Step::processors: return "Check the processors that the batch system gives";
        case Step::standard_input: return "Check /dev/null";
        case Step::control_channel: return "Raise ulimit -n";
        case Step::execute: break;
    }
    return "Check " + program;
}

/// Why a node was not forked, and what helps.
std::string fork_advice(int error) {
    if (error == ENOSYS) return "Start jobs from outside: a program on several nodes cannot fork";
    return thread_advice(error);
}

const char* step_text(Step step) {
    switch (step) {
        case Step::death_signal: return "tie it to the launcher (prctl PR_SET_PDEATHSIG)";
        case Step::processors: return "give it the processors it was to have (sched_setaffinity)";
        case Step::standard_input: return "open /dev/null as its standard input";
        case Step::control_channel: return "pass on the control channel";
        case Step::execute: return "execute the program";
    }
    return "start";
}

/// Everything a child needs, made before fork: between fork and exec it only makes system calls.
struct Launch {
    const char* program;
    char* const* arguments;
    char* const* environment;
    std::uint32_t rank;
    int socket;
    int control_fd;
    int failure_pipe;
    pid_t launcher;
    rlimit files;
    const SignalWatch* signals;
    bool in_group;
    const cpu_set_t* cpus;  ///< nullptr: as the launcher
};

[[noreturn]] void fail(const Launch& launch, Step step) {
    const Failure failure{launch.rank, step, errno};
    // When even this fails the launcher still sees the process end.
    [[maybe_unused]] const ssize_t written = ::write(launch.failure_pipe, &failure, sizeof failure);
    ::_exit(127);
}

[[noreturn]] void become_node(const Launch& launch) {
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) fail(launch, Step::death_signal);
    if (::getppid() != launch.launcher) ::_exit(127);  // It died before the call above.
    if (launch.cpus != nullptr && ::sched_setaffinity(0, sizeof *launch.cpus, launch.cpus) != 0)
        fail(launch, Step::processors);
    if (launch.rank != 0 || !launch.in_group) ::setpgid(0, 0);
    if (launch.rank != 0) {
        // A background group that writes to a terminal set to `tostop` would be stopped for ever.
        ::signal(SIGTTOU, SIG_IGN);
        const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (null < 0 || ::dup2(null, STDIN_FILENO) < 0) fail(launch, Step::standard_input);
    }
    if (::dup2(launch.socket, launch.control_fd) < 0) fail(launch, Step::control_channel);
    ::setrlimit(RLIMIT_NOFILE, &launch.files);
    launch.signals->restore();
    ::execve(launch.program, launch.arguments, launch.environment);
    fail(launch, Step::execute);
}

/// A descriptor number that is not in use, high so that the program's first open() gets the number
/// it is used to, below the limit that the child will have.
int free_descriptor(const rlimit& files) {
    int fd = static_cast<int>(std::min<rlim_t>(files.rlim_cur, 1024)) - 24;
    while (fd > STDERR_FILENO && ::fcntl(fd, F_GETFD) >= 0) --fd;
    return fd;
}

/// Waits until every child has executed its program, and says why one did not.
Result<void> await_execution(int pipe, const RunPlan& plan) {
    Failure failure{};
    ssize_t got;
    do {
        got = ::read(pipe, &failure, sizeof failure);
    } while (got < 0 && errno == EINTR);
    if (got != static_cast<ssize_t>(sizeof failure)) return {};
    return Error{ErrorKind::environment,
                 fmt::format("rank {}: cannot {}: {}. {}", failure.rank, step_text(failure.step),
                             ::strerror(failure.error),
                             advice_for(failure.step, plan.program_of(failure.rank)))};
}

/// More open files for the launcher itself, which carries every node's descriptors; returns the
/// former limits, for the nodes.
Result<rlimit> raise_open_files() {
    rlimit former{};
    if (::getrlimit(RLIMIT_NOFILE, &former) != 0)
        return Error{ErrorKind::environment,
                     fmt::format("cannot read the limit of open files (prlimit64): {}. {}",
                                 ::strerror(errno), allow_call)};
    rlimit raised = former;
    raised.rlim_cur = raised.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &raised);
    return former;
}

void abandon(std::vector<NodeProcess>& nodes) {
    kill_nodes(nodes);
    for (NodeProcess& node : nodes) {
        if (node.alive) ::waitpid(node.pid, nullptr, 0);
        if (node.socket >= 0) ::close(node.socket);
    }
    nodes.clear();
}

}  // namespace

// The number of a process that is another's child may have become some other process's.
void signal_node(const NodeProcess& node, int number) {
    if (node.watch >= 0)
        ::syscall(SYS_pidfd_send_signal, node.watch, number, nullptr, 0);
    else
        ::kill(node.pid, number);
}

void kill_nodes(const std::vector<NodeProcess>& nodes) {
    for (const NodeProcess& node : nodes)
        if (node.alive) signal_node(node, SIGKILL);
}

namespace {

/// libdw, which reads stacks in this process, waits on the thread it reads. If the node ends
/// meanwhile libdw takes its status, and waitpid() never reports it: found out here.
/// Of a node that is another's child only that tells, or a pidfd.
bool ended_untold(const NodeProcess& node) {
    if (node.watch >= 0) {
        pollfd entry{node.watch, POLLIN, 0};
        return node.alive && (node.socket < 0 || ::poll(&entry, 1, 0) > 0);
    }
    siginfo_t info{};
    return node.alive &&
           ::waitid(P_PID, static_cast<id_t>(node.pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 &&
           errno == ECHILD;
}

}  // namespace

std::vector<NodeEvent> reap_nodes(std::vector<NodeProcess>& nodes, std::uint32_t first_rank) {
    constexpr int status_of_unknown = 1 << 8;  // as if it had ended with 1
    std::vector<NodeEvent> events;
    int status = 0;
    pid_t pid;
    while ((pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
        const auto node = std::ranges::find_if(
            nodes, [pid](const NodeProcess& each) { return each.alive && each.pid == pid; });
        if (node == nodes.end()) continue;  // A child of the process that became this command.
        if (!WIFSTOPPED(status) && !WIFCONTINUED(status)) node->alive = false;
        events.push_back({first_rank + static_cast<std::uint32_t>(node - nodes.begin()), status});
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (!ended_untold(nodes[i])) continue;
        nodes[i].alive = false;
        events.push_back({first_rank + static_cast<std::uint32_t>(i), status_of_unknown, true});
    }
    return events;
}

Result<JobIdentity> draw_job_key() {
    JobIdentity job;
    if (::getrandom(&job.key, sizeof job.key, 0) != sizeof job.key ||
        ::getrandom(&job.key_high, sizeof job.key_high, 0) != sizeof job.key_high)
        return Error{ErrorKind::environment,
                     fmt::format("cannot draw the job's key (getrandom): {}. {}", ::strerror(errno),
                                 allow_call)};
    return job;
}

Result<std::vector<NodeProcess>> start_nodes(const RunPlan& plan, JobIdentity job,
                                             const SignalWatch& signals) {
    const auto limit = raise_open_files();
    if (!limit) return limit.error();
    const rlimit files = *limit;
    job.control_fd = free_descriptor(files);
    int failures[2];
    if (::pipe2(failures, O_CLOEXEC) != 0)
        return Error{ErrorKind::internal, fmt::format("cannot prepare: {}", ::strerror(errno))};

    std::size_t inherited = 0;
    while (environ[inherited]) ++inherited;
    std::vector<NodeProcess> nodes;
    Result<void> started;
    const std::uint32_t end = plan.first_rank + plan.nodes_here();
    for (std::uint32_t rank = plan.first_rank; rank < end && started; ++rank) {
        int ends[2];
        if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
            started = Error{ErrorKind::environment,
                            fmt::format("cannot make the control channel of rank {}: {}. Raise "
                                        "ulimit -n",
                                        rank, ::strerror(errno))};
            break;
        }
        const auto strings =
            node_environment(std::span<const char* const>(environ, inherited), plan, job, rank);
        const std::vector<char*> environment = pointers_to(strings);
        const std::vector<char*> arguments = pointers_to(plan.words_of(rank));
        const std::size_t here = rank - plan.first_rank;
        std::optional<cpu_set_t> cpus;
        if (here < plan.node_cpus.size()) cpus = parse_cpu_list(plan.node_cpus[here]);
        const Launch launch{plan.program_of(rank).c_str(),
                            arguments.data(),
                            environment.data(),
                            rank,
                            ends[1],
                            job.control_fd,
                            failures[1],
                            ::getpid(),
                            files,
                            &signals,
                            plan.in_group,
                            cpus ? &*cpus : nullptr};
        const pid_t pid = ::fork();
        if (pid == 0) become_node(launch);
        const int error = errno;
        ::close(ends[1]);
        nodes.push_back({pid, ends[0], pid > 0});
        if (pid < 0)
            started = Error{ErrorKind::environment,
                            fmt::format("cannot start rank {} of {}: {}. {}", rank, plan.nodes,
                                        ::strerror(error), fork_advice(error))};
    }
    ::close(failures[1]);
    if (started) started = await_execution(failures[0], plan);
    ::close(failures[0]);
    if (!started) {
        abandon(nodes);
        return started.error();
    }
    return nodes;
}

}  // namespace hiroba::tools
