// SPDX-License-Identifier: BSD-3-Clause
// Role: watches over a running job: signals, ends of nodes, time limits, and the exit status.
// Invariant: once the verdict is final every node is being killed, and run() returns within
// reap_limit_ns. The first cause decides; what follows from it is not reported.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "tools/run/control_server.hpp"
#include "tools/run/node_set.hpp"
#include "tools/run/plan.hpp"
#include "tools/run/signals.hpp"
#include "tools/run/stillness.hpp"

namespace hiroba::tools {

class Supervisor {
public:
    static constexpr std::uint64_t second_ns = 1'000'000'000;
    /// How long nodes may take to leave once rank 0 has, and rank 0 once a node has.
    static constexpr std::uint64_t leave_limit_ns = second_ns;
    /// As long as the kernel works for those that are left: gives back their memory, mostly.
    static constexpr std::uint64_t leave_most_ns = 30 * second_ns;
    /// How long the slowest node may come after the first to a collective of the start-up.
    static constexpr std::uint64_t collective_limit_ns = 60 * second_ns;
    /// How long a node may be stopped before a line names it.
    static constexpr std::uint64_t stop_limit_ns = 3 * second_ns;
    /// How long the kernel may take to end killed processes.
    static constexpr std::uint64_t reap_limit_ns = 2 * second_ns;

    Supervisor(const RunPlan& plan, NodeSet& nodes, ControlServer& control, SignalWatch& signals)
        : plan_(plan),
          nodes_(nodes),
          control_(control),
          signals_(signals),
          stillness_(plan.still_ns, now_ns()),
          stopped_at_ns_(nodes.count()),
          told_lost_(nodes.count(), false) {}

    /// Calls `tell` as often as the plan says (RunPlan::progress_ns).
    void tell_progress_by(std::function<void()> tell) { tell_progress_ = std::move(tell); }

    /// Serves the job until no node is left; returns the command's exit status.
    int run();

private:
    void wait_for_events();
    void take_signals();
    void on_interrupt();
    void on_user_signal(const signalfd_siginfo& info);
    bool is_for_nodes(const signalfd_siginfo& info) const;
    void forward(const signalfd_siginfo& info);
    void reap();
    void on_stop(std::uint32_t rank, int signal_number);
    void follow_stop(int signal_number);
    void name_stopped_nodes(std::uint64_t now);
    void judge(const NodeEvent& ended);
    int status_of(const NodeEvent& ended) const;
    void judge_first_node(const NodeEvent& ended);
    void judge_success(std::uint32_t rank);
    /// A node died: ends the job with `status` and one line, at once or after HIROBA_LOSS_GRACE.
    void lose(std::uint32_t rank, int status, const std::string& line);
    /// The same when a host is lost with all its nodes.
    void lose_host();
    void check_control();
    void check_deadlines();
    void tell_progress(std::uint64_t now);
    void tell_stillness(std::uint64_t now);
    void end_job(int status);
    void end_job(int status, const std::string& line);
    bool any_alive() const;
    bool look_at_leaving(std::uint64_t now);
    int poll_timeout_ms(std::uint64_t now) const;

    const RunPlan& plan_;
    NodeSet& nodes_;
    ControlServer& control_;
    SignalWatch& signals_;
    Stillness stillness_;
    std::vector<std::uint64_t> stopped_at_ns_;  ///< per node; 0: it runs, or its stop was named

    std::vector<bool> told_lost_;  ///< per node: the others know that it is dead
    std::optional<int> verdict_;   ///< the exit status, once rank 0 ended or the job was ended
    bool killing_ = false;         ///< every node has been sent SIGKILL
    std::uint64_t killed_at_ns_ = 0;
    std::uint64_t left_at_ns_ = 0;    ///< when rank 0 ended in order; 0: it has not
    std::uint64_t looked_at_ns_ = 0;  ///< since then, when the workers left were looked at last
    std::vector<std::uint64_t> kernel_ns_;  ///< per node, as it was then
    std::uint64_t early_at_ns_ = 0;  ///< when `early_rank_` left though the program runs; 0: none
    std::uint32_t early_rank_ = 0;
    std::uint64_t lost_at_ns_ = 0;  ///< when the first node died, if the others go on; 0: none
    std::uint64_t interrupted_at_ns_ = 0;
    std::function<void()> tell_progress_;
    std::uint64_t progress_at_ns_ = 0;  ///< when it was told last, or the job began
};

}  // namespace hiroba::tools
