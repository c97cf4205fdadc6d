// SPDX-License-Identifier: BSD-3-Clause
#include "sim/dsm/state_graph.hpp"

#include <algorithm>
#include <utility>

#include "base/fatal.hpp"

namespace hiroba::sim_test {

using net::sim::Fiber;
using net::sim::Scheduler;

void StateGraph::ask(Questions questions) {
    const OutsideRunArena here;
    questions_ = std::move(questions);
    at_first_choice_ = true;
}

void StateGraph::begin_run() {
    depth_ = remembered_.empty() ? 0 : remembered_.back();
    at_known_state_ = false;
    ++runs_;
}

Fiber* StateGraph::take(std::span<Fiber* const> ready, const Frame& frame) {
    const std::uint32_t wanted = frame.open[frame.next];
    for (Fiber* const fiber : ready) {
        if (fiber->index == wanted) return fiber;
    }
    fatal("state %u: thread %u was ready and is not: equal choices gave different runs",
          frame.state, wanted);
}

void StateGraph::add_edge(std::uint32_t to) {
    if (path_.empty()) return;
    const Frame& last = path_.back();
    edges_.push_back({last.state, to, last.open[last.next]});
}

Fiber* StateGraph::choose(std::span<Fiber* const> ready) {
    const OutsideRunArena here;
    if (std::exchange(at_first_choice_, false) && questions_.first_choice)
        questions_.first_choice();
    if (depth_ < path_.size()) return take(ready, path_[depth_++]);
    const std::uint64_t digest = questions_.digest();
    const auto next_id = static_cast<std::uint32_t>(ids_.size() + 1);
    const auto [known, is_new] = ids_.try_emplace(digest, next_id);
    add_edge(known->second);
    if (!is_new) {
        at_known_state_ = true;
        return nullptr;
    }
    failure_ = questions_.broken();
    cut_off_ = ids_.size() >= states_max_;
    if (!failure_.empty() || cut_off_) return nullptr;
    add_frame(next_id, ready);
    const std::size_t last = remembered_.empty() ? 0 : remembered_.back();
    if (questions_.remember && ready.size() > 1 && depth_ >= last + steps_between_places) {
        remembered_.push_back(depth_);
        questions_.remember();
    }
    return take(ready, path_[depth_++]);
}

void StateGraph::add_frame(std::uint32_t state, std::span<Fiber* const> ready) {
    Frame frame{state, 0, {}};
    for (const Fiber* const fiber : ready) frame.open.push_back(fiber->index);
    path_.push_back(std::move(frame));
    longest_ = std::max(longest_, path_.size());
}

void StateGraph::end_run(Scheduler::Outcome outcome, const std::string& failure) {
    const OutsideRunArena here;
    if (failure_.empty()) failure_ = failure;
    if (outcome == Scheduler::Outcome::ended) {
        add_edge(the_end);
    } else if (!at_known_state_ && !cut_off_ && failure_.empty()) {
        failure_ = "the run neither ended nor came to a known state";
    }
    done_ = !failure_.empty() || cut_off_;
    if (!done_) step_back();
}

/// To the last state with a choice that has not been made.
void StateGraph::step_back() {
    while (!path_.empty() && ++path_.back().next == path_.back().open.size()) path_.pop_back();
    done_ = path_.empty();
    for (; !remembered_.empty() && remembered_.back() >= path_.size(); remembered_.pop_back())
        questions_.forget();
}

// Backwards from the end. Every state reached has a way to it; the others are deadlocks, or loops
// that nothing leaves.
std::uint64_t StateGraph::find_hanging_states() {
    std::vector<std::uint32_t> first(ids_.size() + 2, 0);
    for (const Edge& edge : edges_) ++first[edge.to + 1];
    for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
    std::vector<std::uint32_t> before(edges_.size()), filled(first.begin(), first.end() - 1);
    for (const Edge& edge : edges_) before[filled[edge.to]++] = edge.from;
    std::vector<bool> ends(ids_.size() + 1, false);
    std::vector<std::uint32_t> todo{the_end};
    std::uint64_t count = 0;
    while (!todo.empty()) {
        const std::uint32_t state = todo.back();
        todo.pop_back();
        for (std::uint32_t i = first[state]; i < first[state + 1]; ++i) {
            if (ends[before[i]]) continue;
            ends[before[i]] = true;
            ++count;
            todo.push_back(before[i]);
        }
    }
    const auto hangs = std::find(ends.begin() + 1, ends.end(), false);
    if (hangs != ends.end()) go_to(static_cast<std::uint32_t>(hangs - ends.begin()));
    return ids_.size() - count;
}

/// Makes path_ the one on which `state` was found: by the first edge that leads to each. To the
/// first state edges only lead back.
void StateGraph::go_to(std::uint32_t state) {
    std::vector<const Edge*> found_by(ids_.size() + 1, nullptr);
    for (const Edge& edge : edges_)
        if (found_by[edge.to] == nullptr) found_by[edge.to] = &edge;
    path_.clear();
    while (state != first_state) {
        const Edge* const edge = found_by[state];
        path_.push_back({edge->from, 0, {edge->thread}});
        state = edge->from;
    }
    std::reverse(path_.begin(), path_.end());
}

std::string StateGraph::way() const {
    std::string text;
    for (std::size_t i = 0; i < path_.size();) {
        const auto thread = [&](std::size_t at) { return path_[at].open[path_[at].next]; };
        std::size_t same = i;
        while (same < path_.size() && thread(same) == thread(i)) ++same;
        text += " " + std::to_string(thread(i)) + "x" + std::to_string(same - i);
        i = same;
    }
    return text;
}

}  // namespace hiroba::sim_test
