// SPDX-License-Identifier: BSD-3-Clause
// Role: walks through every order of steps of a small job, depth first. Each run begins at the
// first choice, or at a later one that is remembered (Checkpoint), and repeats those that lead from
// there to the state where the next one is open. A
// run ends where it comes to a state that was there before: what follows is known. Invariant:
// states are told apart by a digest of 64 bits over all that decides what happens next; two
// different ones with one digest would go unnoticed, with n states at odds of n²/2⁶⁵. Source:
// Godefroid, "Model checking for programming languages using VeriSoft", POPL 1997, with state
// hashing (Holzmann, "An analysis of bitstate hashing", 1998).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "net/provider/sim/scheduler.hpp"
#include "sim/dsm/run_arena.hpp"

namespace hiroba::sim_test {

class StateGraph final : public net::sim::Chooser {
public:
    struct Questions {
        std::function<std::uint64_t()> digest;  ///< of the state between two steps
        std::function<std::string()> broken;    ///< asked in each new state; empty: nothing
        std::function<void()> first_choice;     ///< called before the first is made; may be empty
        /// Called before a choice, where later runs may begin: then it returns again. forget: the
        /// last such place leads nowhere any more. Both may be empty.
        std::function<void()> remember, forget;
    };

    explicit StateGraph(std::uint64_t states_max) : states_max_(states_max) {}

    /// Runs ask these, until others are set.
    void ask(Questions questions);
    void begin_run();
    /// @param failure  what the run itself found wrong; empty: nothing
    void end_run(net::sim::Scheduler::Outcome outcome, const std::string& failure);
    /// Nothing is open any more, or something is wrong, or there are too many states.
    bool is_done() const noexcept { return done_; }

    net::sim::Fiber* choose(std::span<net::sim::Fiber* const> ready) override;

    /// After the last run: from how many states no order of steps leads to the end of the program.
    /// way() is then how the first of them was come to.
    std::uint64_t find_hanging_states();

    const std::string& failure() const noexcept { return failure_; }
    bool is_complete() const noexcept { return done_ && failure_.empty() && !cut_off_; }
    std::uint64_t states() const noexcept { return ids_.size(); }
    std::uint64_t runs() const noexcept { return runs_; }
    std::uint64_t steps() const noexcept { return edges_.size(); }
    std::size_t longest() const noexcept { return longest_; }
    /// The choices of the last run, to see how it went wrong: threads, and how many steps each.
    std::string way() const;

private:
    static constexpr std::uint32_t the_end = 0, first_state = 1;
    /// A place to begin costs what some steps cost, and going back to it the same.
    static constexpr std::size_t steps_between_places = 8;
    struct Frame {
        std::uint32_t state;
        std::uint32_t next = 0;
        std::vector<std::uint32_t> open;  ///< threads that may go on
    };
    struct Edge {
        std::uint32_t from, to;
        std::uint32_t thread;  ///< whose step it is
    };
    net::sim::Fiber* take(std::span<net::sim::Fiber* const> ready, const Frame& frame);
    void add_edge(std::uint32_t to);
    void step_back();
    void add_frame(std::uint32_t state, std::span<net::sim::Fiber* const> ready);
    void go_to(std::uint32_t state);

    std::uint64_t states_max_;
    Questions questions_;
    std::vector<Frame> path_;
    std::size_t depth_ = 0;                ///< of path_ that this run has repeated or found
    std::vector<std::size_t> remembered_;  ///< positions in path_, ascending
    bool at_known_state_ = false, at_first_choice_ = false;
    std::unordered_map<std::uint64_t, std::uint32_t> ids_;
    std::vector<Edge> edges_;
    std::uint64_t runs_ = 0;
    std::size_t longest_ = 0;
    std::string failure_;
    bool done_ = false, cut_off_ = false;
};

}  // namespace hiroba::sim_test
