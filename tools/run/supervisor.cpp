// SPDX-License-Identifier: BSD-3-Clause
// Role: the launcher's loop and its verdicts.
#include "tools/run/supervisor.hpp"

#include <errno.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

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
/// What a program of --spmd has not done that leaves without a word.
constexpr const char* left_behind =
    ": it did not destroy its Network, space or SharedMemory, or call acp_finalize, which wait for "
    "the others. Return from main, or end the job with a status other than 0";

}  // namespace

int Supervisor::run() {
    progress_at_ns_ = now_ns();
    // Nodes of other hosts may have ended before their start was known here.
    reap();
    while (any_alive()) {
        wait_for_events();
        take_signals();
        control_.serve_all(now_ns());
        reap();
        check_control();
        check_deadlines();
        if (killing_ && now_ns() - killed_at_ns_ > reap_limit_ns) {
            for (std::uint32_t rank = 0; rank < nodes_.count(); ++rank)
                if (nodes_.alive(rank))
                    say_line(nodes_.name_of(rank) +
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
    nodes_.add_poll_entries(entries);
    // A signal is an event of the descriptor, so EINTR only comes from being stopped.
    ::poll(entries.data(), entries.size(), poll_timeout_ms(now_ns()));
}

int Supervisor::poll_timeout_ms(std::uint64_t now) const {
    std::uint64_t next = ~std::uint64_t{0};
    const auto by = [&](std::uint64_t since, std::uint64_t limit) {
        if (since != 0) next = std::min(next, since + limit);
    };
    by(killed_at_ns_, reap_limit_ns);
    by(looked_at_ns_, leave_limit_ns);
    by(early_at_ns_, leave_limit_ns);
    by(lost_at_ns_, plan_.loss_grace_ns);
    for (const std::uint64_t at : stopped_at_ns_) by(at, stop_limit_ns);
    if (plan_.progress_ns != 0) by(progress_at_ns_, plan_.progress_ns);
    next = std::min(next, stillness_.next_look_ns());
    if (!plan_.spmd) by(control_.waiting_since_ns(), collective_limit_ns);
    if (next == ~std::uint64_t{0}) return -1;
    return next <= now ? 0 : static_cast<int>((next - now) / 1'000'000 + 1);
}

void Supervisor::take_signals() {
    while (const auto info = signals_.next()) {
        switch (info->ssi_signo) {
            case SIGCHLD: break;
            case SIGCONT:
                for (std::uint32_t rank = 0; rank < nodes_.count(); ++rank)
                    nodes_.signal(rank, SIGCONT);
                control_.restart_wait(now_ns());
                break;
            case SIGUSR1: on_user_signal(*info); break;
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

void Supervisor::on_user_signal(const signalfd_siginfo& info) {
    if (info.ssi_code == SI_QUEUE && info.ssi_int == stacks_request) return nodes_.print_stacks();
    if (nodes_.alive(0) && is_for_nodes(info)) nodes_.user_signal();
}

// A signal that rank 0 sent to its group has reached rank 0 itself, and one that the terminal sends
// to the whole group reaches it if it belongs to the group. A terminal that goes away tells the
// leader of its session alone.
bool Supervisor::is_for_nodes(const signalfd_siginfo& info) const {
    const bool told_alone = info.ssi_signo == SIGHUP && ::getsid(0) == ::getpid();
    const bool from_terminal = info.ssi_code > 0 && !told_alone;
    return !(from_terminal && nodes_.shares_terminal()) &&
           static_cast<int>(info.ssi_pid) != nodes_.first_process();
}

// Rank 0 answers for the job. In one with --spmd it may have left, and the others go on.
void Supervisor::forward(const signalfd_siginfo& info) {
    if (!is_for_nodes(info)) return;
    const int number = static_cast<int>(info.ssi_signo);
    if (plan_.spmd) reap();  // A rank 0 that has left unseen would take the signal with it.
    if (nodes_.alive(0)) return nodes_.signal(0, number);
    if (!plan_.spmd) return;
    for (std::uint32_t rank = 1; rank < nodes_.count(); ++rank)
        if (nodes_.alive(rank)) nodes_.signal(rank, number);
}

void Supervisor::reap() {
    std::vector<NodeEvent> ended;
    for (const NodeEvent& event : nodes_.take_events()) {
        if (WIFCONTINUED(event.wait_status)) {
            stopped_at_ns_[event.rank] = 0;
        } else if (WIFSTOPPED(event.wait_status)) {
            on_stop(event.rank, WSTOPSIG(event.wait_status));
        } else {
            stopped_at_ns_[event.rank] = 0;
            ended.push_back(event);
        }
    }
    if (ended.empty()) return;
    // Packets that a node sent before it ended count.
    control_.serve_all(now_ns());
    check_control();
    for (const NodeEvent& each : ended) judge(each);
}

void Supervisor::on_stop(std::uint32_t rank, int signal_number) {
    stopped_at_ns_[rank] = now_ns();
    if (rank == 0) follow_stop(signal_number);
}

// A job that is stopped in a debugger looks like one that hangs; only the launcher can tell the
// difference.
void Supervisor::name_stopped_nodes(std::uint64_t now) {
    for (std::uint32_t rank = 0; rank < nodes_.count(); ++rank) {
        std::uint64_t& at = stopped_at_ns_[rank];
        if (at == 0 || now - at <= stop_limit_ns) continue;
        at = 0;
        say_line(nodes_.name_of(rank) +
                 " has been stopped by a signal for 3 s; the other nodes may wait for it. It goes "
                 "on with SIGCONT");
    }
}

void Supervisor::follow_stop(int signal_number) {
    // A stop by the terminal stops the job: so does the bare program. Other stops (a debugger, a
    // batch system's SIGSTOP) are between rank 0 and their sender.
    if (signal_number != SIGTSTP && signal_number != SIGTTIN && signal_number != SIGTTOU) return;
    for (std::uint32_t rank = 1; rank < nodes_.count(); ++rank) nodes_.signal(rank, SIGSTOP);
    ::raise(SIGSTOP);  // The SIGCONT that ends it is an event of its own.
}

void Supervisor::judge(const NodeEvent& ended) {
    if (killing_ || lost_at_ns_ != 0) return;
    const std::uint32_t rank = ended.rank;
    const auto said = control_.leaving_status(rank);
    if (ended.untold && !said)
        return lose(rank, WEXITSTATUS(ended.wait_status),
                    fmt::format("{} ended, and its status was not seen: how is not known",
                                nodes_.name_of(rank)));
    if (!ended.untold && WIFSIGNALED(ended.wait_status)) {
        const int number = WTERMSIG(ended.wait_status);
        const char* const hint =
            number == SIGKILL ? ". A kill or a memory limit ended it (see dmesg, memory.max)" : "";
        return lose(
            rank, exit_signal_base + number,
            fmt::format("{} was killed by {}{}", nodes_.name_of(rank), signal_text(number), hint));
    }
    const int status = status_of(ended);
    // With these the runtime itself has said why, before it could attach.
    const bool told = status == exit_usage || status == exit_environment;
    if (!plan_.spmd && !control_.attached(rank) && !told)
        return end_job(status != 0 ? status : exit_environment,
                       fmt::format("{} ended with status {}, and {}", nodes_.name_of(rank), status,
                                   not_attached));
    if (rank == 0 && !plan_.spmd) return judge_first_node(ended);
    if (status != 0)
        return end_job(verdict_.value_or(0) != 0 ? *verdict_ : status,
                       fmt::format("{} ended with status {}", nodes_.name_of(rank), status));
    judge_success(rank);
}

// Where another wait has taken the status, its last words tell it.
int Supervisor::status_of(const NodeEvent& ended) const {
    return ended.untold ? control_.leaving_status(ended.rank).value_or(1)
                        : WEXITSTATUS(ended.wait_status);
}

void Supervisor::judge_first_node(const NodeEvent& ended) {
    const int status = status_of(ended);
    // Without its good-bye (a program that calls _exit) no node knows that the program is over.
    if (!control_.leaving(0)) return end_job(status);
    verdict_ = status;
    left_at_ns_ = now_ns();
    early_at_ns_ = 0;
    look_at_leaving(left_at_ns_);
}

/// Whether the kernel has worked for a worker that has not ended since the last look.
bool Supervisor::look_at_leaving(std::uint64_t now) {
    // Two ticks: on a busy machine it gets few.
    constexpr std::uint64_t works_ns = leave_limit_ns / 50;
    bool works = false;
    looked_at_ns_ = now;
    kernel_ns_.resize(nodes_.count());
    for (std::uint32_t rank = 1; rank < nodes_.count(); ++rank) {
        if (!nodes_.alive(rank)) continue;
        const std::uint64_t used = nodes_.kernel_time_ns(rank);
        works |= used >= kernel_ns_[rank] + works_ns;
        kernel_ns_[rank] = used;
    }
    return works;
}

void Supervisor::judge_success(std::uint32_t rank) {
    if (plan_.spmd) {
        if (!verdict_) verdict_ = 0;
        // The others would wait for it. A node of no library of ours leaves nobody behind.
        if (!control_.attached(rank) || control_.leaving(rank) || early_at_ns_ != 0) return;
        early_at_ns_ = now_ns();
        early_rank_ = rank;
        return;
    }
    if (left_at_ns_ != 0 || control_.leaving(rank) || control_.leaving(0) || early_at_ns_ != 0)
        return;
    early_at_ns_ = now_ns();
    early_rank_ = rank;
}

void Supervisor::lose(std::uint32_t rank, int status, const std::string& line) {
    if (plan_.loss_grace_ns == 0) return end_job(status, line);
    verdict_ = status;
    lost_at_ns_ = now_ns();
    told_lost_[rank] = true;
    control_.tell_lost(rank);
    say_line(line);
}

void Supervisor::lose_host() {
    if (plan_.loss_grace_ns == 0) return end_job(exit_environment, nodes_.trouble());
    for (std::uint32_t rank = 0; rank < nodes_.count(); ++rank) {
        if (nodes_.alive(rank) || told_lost_[rank]) continue;
        told_lost_[rank] = true;
        control_.tell_lost(rank);
    }
    if (lost_at_ns_ != 0) return;
    verdict_ = exit_environment;
    lost_at_ns_ = now_ns();
    say_line(nodes_.trouble());
}

void Supervisor::check_control() {
    if (killing_) return;
    if (!nodes_.trouble().empty()) lose_host();
    if (killing_) return;
    if (!control_.broken().empty()) return end_job(exit_software, control_.broken());
    if (const auto status = control_.exit_requested())
        end_job(lost_at_ns_ != 0 ? *verdict_ : *status);
}

void Supervisor::check_deadlines() {
    if (killing_) return;
    const std::uint64_t now = now_ns();
    if (lost_at_ns_ != 0) {
        if (now - lost_at_ns_ > plan_.loss_grace_ns) end_job(*verdict_);
        return;
    }
    name_stopped_nodes(now);
    tell_progress(now);
    tell_stillness(now);
    if (left_at_ns_ != 0 && now - looked_at_ns_ > leave_limit_ns) {
        if (look_at_leaving(now) && now - left_at_ns_ < leave_most_ns) return;
        for (std::uint32_t rank = 1; rank < nodes_.count(); ++rank)
            if (nodes_.alive(rank))
                say_line(nodes_.name_of(rank) + " did not end within 1 s of rank 0: killed");
        return end_job(*verdict_);
    }
    if (early_at_ns_ != 0 && now - early_at_ns_ > leave_limit_ns) {
        if (plan_.spmd || !control_.leaving(0))
            return end_job(1, nodes_.name_of(early_rank_) +
                                  " left with status 0 while the program was still running" +
                                  (plan_.spmd ? left_behind : ""));
        early_at_ns_ = 0;
    }
    const std::uint64_t waiting = control_.waiting_since_ns();
    if (!plan_.spmd && waiting != 0 && now - waiting > collective_limit_ns)
        end_job(exit_environment,
                fmt::format("rank {} did not come to the start of the job within 60 s of the "
                            "others. Look for constructors of libraries that wait",
                            control_.missing_ranks()));
}

void Supervisor::tell_progress(std::uint64_t now) {
    if (plan_.progress_ns == 0 || now - progress_at_ns_ < plan_.progress_ns) return;
    progress_at_ns_ = now;
    if (tell_progress_ && left_at_ns_ == 0) tell_progress_();
}

void Supervisor::tell_stillness(std::uint64_t now) {
    if (now < stillness_.next_look_ns()) return;
    if (stillness_.look(now, nodes_.processor_time_ns(), nodes_.count()) && left_at_ns_ == 0)
        nodes_.tell_waits();
}

void Supervisor::end_job(int status) {
    if (killing_) return;
    verdict_ = status;
    killing_ = true;
    killed_at_ns_ = now_ns();
    nodes_.kill_all();
}

void Supervisor::end_job(int status, const std::string& line) {
    if (killing_) return;
    end_job(status);  // First: the line may block on a full pipe.
    say_line(line);
}

bool Supervisor::any_alive() const {
    for (std::uint32_t rank = 0; rank < nodes_.count(); ++rank)
        if (nodes_.alive(rank)) return true;
    return false;
}

}  // namespace hiroba::tools
