// SPDX-License-Identifier: BSD-3-Clause
// Role: the launcher's loop and its verdicts.
#include "tools/run/supervisor.hpp"

#include <errno.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>

#include "base/clock.hpp"
#include "base/fatal.hpp"
#include "tools/line.hpp"
#include "tools/run/stacks.hpp"

namespace hiroba::tools {

namespace {

constexpr int exit_software = 70;
constexpr int exit_signal_base = 128;

constexpr const char* not_attached =
    "the hiroba runtime was not attached to it. Link the program dynamically, and run it without "
    "setuid bits and file capabilities";

}  // namespace

int Supervisor::run() {
    while (any_alive()) {
        wait_for_events();
        take_signals();
        control_.serve_all(now_ns());
        reap();
        check_control();
        check_deadlines();
        if (killing_ && now_ns() - killed_at_ns_ > reap_limit_ns) {
            for (std::uint32_t rank = 0; rank < nodes_.size(); ++rank)
                if (nodes_[rank].alive)
                    say_line(name_of(rank) +
                             " did not end within 2 s of SIGKILL: the kernel holds "
                             "it. Look at its state in /proc");
            break;
        }
    }
    return verdict_.value_or(exit_software);
}

void Supervisor::wait_for_events() {
    std::vector<pollfd> entries = control_.poll_entries();
    entries.push_back({signals_.fd(), POLLIN, 0});
    // A signal is an event of the descriptor, so EINTR only comes from being stopped.
    ::poll(entries.data(), entries.size(), poll_timeout_ms(now_ns()));
}

int Supervisor::poll_timeout_ms(std::uint64_t now) const {
    std::uint64_t next = ~std::uint64_t{0};
    const auto by = [&](std::uint64_t since, std::uint64_t limit) {
        if (since != 0) next = std::min(next, since + limit);
    };
    by(killed_at_ns_, reap_limit_ns);
    by(left_at_ns_, leave_limit_ns);
    by(early_at_ns_, leave_limit_ns);
    for (const Node& node : nodes_)
        if (node.alive) by(node.stopped_at_ns, stop_limit_ns);
    if (!plan_.spmd) by(control_.waiting_since_ns(), collective_limit_ns);
    if (next == ~std::uint64_t{0}) return -1;
    return next <= now ? 0 : static_cast<int>((next - now) / 1'000'000 + 1);
}

void Supervisor::take_signals() {
    while (const auto info = signals_.next()) {
        switch (info->ssi_signo) {
            case SIGCHLD: break;
            case SIGCONT:
                for (const Node& node : nodes_)
                    if (node.alive) ::kill(node.pid, SIGCONT);
                control_.restart_wait(now_ns());
                break;
            case SIGUSR1:
                if (asks_for_stacks(*info))
                    print_stacks(nodes_);
                else
                    forward(*info);
                break;
            case SIGINT: on_interrupt(); [[fallthrough]];
            default: forward(*info);
        }
    }
}

void Supervisor::on_interrupt() {
    if (signals_.ignores_interrupt()) return;
    const std::uint64_t now = now_ns();
    if (interrupted_at_ns_ != 0 && now - interrupted_at_ns_ < second_ns)
        end_job(exit_signal_base + SIGINT, "interrupted twice within a second: all nodes killed");
    interrupted_at_ns_ = now;
}

// A program that has no use for the signal would die of it.
bool Supervisor::asks_for_stacks(const signalfd_siginfo& info) const {
    const bool by_command = info.ssi_code == SI_QUEUE && info.ssi_int == stacks_request;
    const Node& first = nodes_[0];
    return by_command || (info.ssi_code <= 0 && first.alive && !uses_user_signal(first.pid));
}

void Supervisor::forward(const signalfd_siginfo& info) {
    const Node& first = nodes_[0];
    // The terminal sends to the whole group, rank 0 included; only what was sent to the launcher
    // by kill() is passed on. What rank 0 sent to its group it has as well.
    const bool from_kernel = info.ssi_code > 0;
    if (!first.alive || from_kernel || info.ssi_pid == static_cast<std::uint32_t>(first.pid))
        return;
    ::kill(first.pid, static_cast<int>(info.ssi_signo));
}

void Supervisor::reap() {
    std::vector<Ended> ended;
    int status = 0;
    pid_t pid;
    while ((pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
        const auto node = std::ranges::find_if(
            nodes_, [pid](const Node& each) { return each.alive && each.pid == pid; });
        if (node == nodes_.end()) continue;  // A child of whoever executed this command.
        const auto rank = static_cast<std::uint32_t>(node - nodes_.begin());
        if (WIFCONTINUED(status)) {
            node->stopped_at_ns = 0;
            continue;
        }
        if (WIFSTOPPED(status)) {
            on_stop(rank, WSTOPSIG(status));
            continue;
        }
        node->alive = false;
        ended.push_back({rank, status});
    }
    if (ended.empty()) return;
    // What a node said before it ended counts.
    control_.serve_all(now_ns());
    check_control();
    for (const Ended& each : ended) judge(each);
}

void Supervisor::on_stop(std::uint32_t rank, int signal_number) {
    nodes_[rank].stopped_at_ns = now_ns();
    if (rank == 0) follow_stop(signal_number);
}

// Nothing is wrong with a job that waits for somebody with a debugger; but it looks like one
// that hangs, and nobody else can tell the difference.
void Supervisor::name_stopped_nodes(std::uint64_t now) {
    for (std::uint32_t rank = 0; rank < nodes_.size(); ++rank) {
        Node& node = nodes_[rank];
        if (!node.alive || node.stopped_at_ns == 0 || now - node.stopped_at_ns <= stop_limit_ns)
            continue;
        node.stopped_at_ns = 0;
        say_line(
            fmt::format("{} has been stopped by a signal for 3 s; the other nodes may wait "
                        "for it. It goes on after kill -CONT {}",
                        name_of(rank), node.pid));
    }
}

void Supervisor::follow_stop(int signal_number) {
    // A stop by the terminal stops the job: so does the bare program. Other stops (a debugger, a
    // batch system's SIGSTOP) are between rank 0 and their sender.
    if (signal_number != SIGTSTP && signal_number != SIGTTIN && signal_number != SIGTTOU) return;
    for (std::size_t rank = 1; rank < nodes_.size(); ++rank)
        if (nodes_[rank].alive) ::kill(nodes_[rank].pid, SIGSTOP);
    ::raise(SIGSTOP);  // The SIGCONT that ends it is an event of its own.
}

void Supervisor::judge(const Ended& ended) {
    if (killing_) return;
    const std::uint32_t rank = ended.rank;
    if (WIFSIGNALED(ended.wait_status)) {
        const int number = WTERMSIG(ended.wait_status);
        const char* const hint =
            number == SIGKILL ? ". Somebody or a memory limit killed it (see dmesg, memory.max)"
                              : "";
        return end_job(
            exit_signal_base + number,
            fmt::format("{} was killed by {}{}", name_of(rank), signal_text(number), hint));
    }
    const int status = WEXITSTATUS(ended.wait_status);
    if (!plan_.spmd && !control_.attached(rank))
        return end_job(
            status != 0 ? status : exit_environment,
            fmt::format("{} ended with status {}, and {}", name_of(rank), status, not_attached));
    if (rank == 0 && !plan_.spmd) return judge_first_node(ended);
    if (status != 0)
        return end_job(verdict_.value_or(0) != 0 ? *verdict_ : status,
                       fmt::format("{} ended with status {}", name_of(rank), status));
    judge_success(rank);
}

void Supervisor::judge_first_node(const Ended& ended) {
    const int status = WEXITSTATUS(ended.wait_status);
    // Without its good-bye (a program that calls _exit) no node knows that the program is over.
    if (!control_.leaving(0)) return end_job(status);
    verdict_ = status;
    left_at_ns_ = now_ns();
    early_at_ns_ = 0;
}

void Supervisor::judge_success(std::uint32_t rank) {
    if (plan_.spmd) {
        if (!verdict_) verdict_ = 0;
        return;
    }
    if (left_at_ns_ != 0 || control_.leaving(rank) || control_.leaving(0) || early_at_ns_ != 0)
        return;
    early_at_ns_ = now_ns();
    early_rank_ = rank;
}

void Supervisor::check_control() {
    if (killing_) return;
    if (!control_.broken().empty()) return end_job(exit_software, control_.broken());
    if (const auto status = control_.exit_requested()) end_job(*status);
}

void Supervisor::check_deadlines() {
    if (killing_) return;
    const std::uint64_t now = now_ns();
    name_stopped_nodes(now);
    if (left_at_ns_ != 0 && now - left_at_ns_ > leave_limit_ns) {
        for (std::uint32_t rank = 1; rank < nodes_.size(); ++rank)
            if (nodes_[rank].alive)
                say_line(name_of(rank) + " did not end within 1 s of rank 0: killed");
        return end_job(*verdict_);
    }
    if (early_at_ns_ != 0 && now - early_at_ns_ > leave_limit_ns) {
        if (!control_.leaving(0))
            return end_job(1, name_of(early_rank_) +
                                  " left with status 0 while the program was still running");
        early_at_ns_ = 0;
    }
    const std::uint64_t waiting = control_.waiting_since_ns();
    if (!plan_.spmd && waiting != 0 && now - waiting > collective_limit_ns)
        end_job(exit_environment,
                fmt::format("rank {} did not come to the start of the job within 60 s of the "
                            "others. Look for constructors of libraries that wait",
                            control_.missing_ranks()));
}

void Supervisor::end_job(int status) {
    if (killing_) return;
    verdict_ = status;
    killing_ = true;
    killed_at_ns_ = now_ns();
    kill_nodes(nodes_);
}

void Supervisor::end_job(int status, const std::string& line) {
    if (killing_) return;
    end_job(status);  // First: the line may block on a full pipe.
    say_line(line);
}

bool Supervisor::any_alive() const {
    return std::ranges::any_of(nodes_, [](const Node& node) { return node.alive; });
}

std::string Supervisor::name_of(std::uint32_t rank) const {
    return fmt::format("rank {} (process {})", rank, nodes_[rank].pid);
}

}  // namespace hiroba::tools
