// SPDX-License-Identifier: BSD-3-Clause
// Role: the barrier as a state machine over any transport: it never waits, so that a simulator can
// run it under a virtual clock. Source: Tanabe et al., DIMMnet-1, section 5.3.
//
// It is the one barrier between nodes once they are connected (docs/decisions/one-barrier.md). How
// members tell each other is the marks' affair: bytes that are kicked (byte_marks.hpp), or mails
// with memory's news (omp/team/team_link.hpp, dsm/sync/news_barrier.hpp).
//
// Up to eight members tell each other, one way. More form a tree of arity 8: up it goes who has
// arrived, with all below it, and down it goes that all have.
#pragma once

#include <concepts>
#include <cstdint>
#include <utility>

#include "net/kick/tree.hpp"

namespace hiroba::net::kick {

/// Where marks go: from each to all others, from children to parents, from parents to children.
enum class Way : std::uint8_t { across, up, down };

/// How a member tells others of a phase and learns of theirs. have_come() says whether all for whom
/// `here` waits along `way` have told of `phase`, and changes nothing; take() follows it once.
template <class M>
concept Marks = requires(M marks, Way way, const TreeNode& here, std::uint64_t phase) {
    marks.tell(way, here, phase);
    { marks.have_come(way, here, phase) } -> std::same_as<bool>;
    marks.take(way, here, phase);
};

/// One member's side. Owned by one thread at a time.
template <Marks M>
class BarrierPhases {
public:
    /// @param first_phase  equal on all members
    BarrierPhases(M marks, const TreeNode& here, Shape shape, std::uint64_t first_phase = 0)
        : marks_(std::move(marks)), here_(here), shape_(shape), phase_(first_phase) {}

    /// Announces this member's arrival; only after the former phase has passed. In the tree nobody
    /// is told before passed() or go_on() is called.
    void arrive() noexcept {
        ++phase_;
        is_passed_ = false;
        awaited_ = shape_ == Shape::all_to_all ? Way::across : Way::up;
        if (awaited_ == Way::across) marks_.tell(Way::across, here_, phase_);
    }

    /// Whether this member has left the barrier.
    bool is_passed() const noexcept { return is_passed_; }
    /// Whether go_on() would. Changes nothing, so a waiting thread may ask as often as it likes.
    bool may_go_on() noexcept {
        if (is_passed_) return true;
        if (awaited_ == Way::down && here_.is_root()) return true;
        return marks_.have_come(awaited_, here_, phase_);
    }
    /// Takes what has come and passes it on. Only when may_go_on() and not is_passed().
    void go_on() noexcept {
        if (awaited_ != Way::down || !here_.is_root()) marks_.take(awaited_, here_, phase_);
        if (awaited_ == Way::up) {
            if (!here_.is_root()) marks_.tell(Way::up, here_, phase_);
            awaited_ = Way::down;
            return;
        }
        if (awaited_ == Way::down) marks_.tell(Way::down, here_, phase_);
        is_passed_ = true;
    }
    /// Goes on as far as it may; true when all have arrived. Every member has to ask again and
    /// again until then: in the tree, asking passes on what has come.
    bool passed() noexcept {
        while (!is_passed_) {
            if (!may_go_on()) return false;
            go_on();
        }
        return true;
    }

    /// Calls each(member) for those without whose mark this member does not go on. Where marks
    /// tell.
    template <class Each>
    void each_awaited(Each&& each) noexcept {
        if (is_passed_ || (awaited_ == Way::down && here_.is_root())) return;
        marks_.each_awaited(awaited_, here_, phase_, each);
    }
    M& marks() noexcept { return marks_; }

    std::uint64_t phase() const noexcept { return phase_; }

private:
    M marks_;
    TreeNode here_;
    Shape shape_;
    std::uint64_t phase_;
    bool is_passed_ = true;
    Way awaited_ = Way::across;  ///< unless passed
};

}  // namespace hiroba::net::kick
