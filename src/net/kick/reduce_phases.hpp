// SPDX-License-Identifier: BSD-3-Clause
// Role: the all-reduce as a state machine over any transport, on the barrier's tree. Source: Tanabe
// et al., DIMMnet-1, section 5.4.
// Invariant: a slot's value is complete when its phase word says so: the phase is kicked last. The
// slots exist twice, for even and odd phases, for the reason given in barrier_phases.hpp. Values
// are combined in a fixed order, so that every member gets the same bits. The upper half of the
// phase word says in which call its author is, which costs nothing: other members compare it.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "net/kick/tree.hpp"

namespace hiroba::net::kick {

/// One member's side. Owned by one thread at a time. T: trivially copyable, up to 16 bytes.
template <Lines Wire, class T>
class ReducePhases {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 16);

public:
    /// The part of every member's memory that it takes: zeroed, within a page.
    static constexpr std::uint32_t bytes = 2 * (tree_arity + 1) * 32;

    ReducePhases(Wire wire, std::uint32_t index, std::uint32_t members, Shape shape)
        : wire_(wire), node_{index, members}, shape_(shape) {}

    /// Contributes `value`. Only after the former phase has finished.
    /// @param call  what is equal on all members in one call, as a number
    void start(const T& value, std::uint32_t call = 0) noexcept {
        ++phase_;
        call_ = other_call_ = call;
        own_ = value;
        told_ = finished_ = false;
        if (shape_ == Shape::tree) return;
        for (std::uint32_t i = 1; i < node_.members; ++i)
            send((node_.index + i) % node_.members, node_.index, value);
        told_ = true;
    }

    /// Whether result() is there. Passes on what has come, as BarrierPhases::passed(). `combine(a,
    /// b)` must be associative; all members use the same.
    template <class Combine>
    bool finished(Combine&& combine) noexcept {
        if (finished_) return true;
        if (shape_ == Shape::all_to_all) {
            for (std::uint32_t i = 0; i < node_.members; ++i)
                if (i != node_.index && !arrived(i)) return false;
            T sum = value_of(0);
            for (std::uint32_t i = 1; i < node_.members; ++i) sum = combine(sum, value_of(i));
            return finish(sum);
        }
        if (!told_ && !gather(combine)) return false;
        if (!node_.is_root()) {
            if (!arrived(result_slot)) return false;
            own_ = slot_value(result_slot);
        }
        for (std::uint32_t branch = 0; branch < node_.children(); ++branch)
            send(node_.child(branch), result_slot, own_);
        return finish(own_);
    }

    /// Calls each(member) for those without whose value this member does not go on.
    template <class Each>
    void each_awaited(Each&& each) noexcept {
        if (finished_) return;
        if (shape_ == Shape::all_to_all) {
            for (std::uint32_t i = 0; i < node_.members; ++i)
                if (i != node_.index && !arrived(i)) each(i);
        } else if (told_) {
            if (!node_.is_root() && !arrived(result_slot)) each(node_.parent());
        } else {
            for (std::uint32_t branch = 0; branch < node_.children(); ++branch)
                if (!arrived(branch)) each(node_.child(branch));
        }
    }
    Wire& wire() noexcept { return wire_; }

    /// After finished().
    const T& result() const noexcept { return own_; }
    /// After finished(): the call that another member is in; this member's if no difference was
    /// seen. Of two neighbours whose calls differ, one at least sees it.
    std::uint32_t other_call() const noexcept { return other_call_; }

private:
    static constexpr std::uint32_t result_slot = tree_arity;
    static constexpr std::size_t words = (sizeof(T) + 7) / 8;

    std::uint32_t slot(std::uint32_t number) const noexcept {
        return (static_cast<std::uint32_t>(phase_ % 2) * (tree_arity + 1) + number) * 32;
    }
    bool arrived(std::uint32_t number) noexcept {
        // The slot holds a phase of the same parity, its former or this one: a half tells them.
        const std::uint64_t word = wire_.word_at(slot(number) + 16);
        if (static_cast<std::uint32_t>(word) != static_cast<std::uint32_t>(phase_)) return false;
        const auto call = static_cast<std::uint32_t>(word >> 32);
        if (call != call_) [[unlikely]]
            other_call_ = call;
        return true;
    }
    T slot_value(std::uint32_t number) noexcept {
        std::array<std::uint64_t, words> raw;
        for (std::uint32_t w = 0; w < words; ++w) raw[w] = wire_.word_at(slot(number) + 8 * w);
        T value;
        std::memcpy(&value, raw.data(), sizeof value);
        return value;
    }
    T value_of(std::uint32_t member) noexcept {
        return member == node_.index ? own_ : slot_value(member);
    }
    void send(std::uint32_t to, std::uint32_t number, const T& value) noexcept {
        std::array<std::uint64_t, words> raw{};
        std::memcpy(raw.data(), &value, sizeof value);
        for (std::uint32_t w = 0; w < words; ++w)
            wire_.kick_word_with_next(to, slot(number) + 8 * w, raw[w]);
        const auto phase = static_cast<std::uint32_t>(phase_);
        wire_.kick_word(to, slot(number) + 16, std::uint64_t{call_} << 32 | phase);
        wire_.flush(to);
    }
    template <class Combine>
    bool gather(Combine&& combine) noexcept {
        for (std::uint32_t branch = 0; branch < node_.children(); ++branch)
            if (!arrived(branch)) return false;
        for (std::uint32_t branch = 0; branch < node_.children(); ++branch)
            own_ = combine(own_, slot_value(branch));
        told_ = true;
        if (!node_.is_root()) send(node_.parent(), node_.branch(), own_);
        return true;
    }
    bool finish(const T& value) noexcept {
        own_ = value;
        finished_ = true;
        return true;
    }

    Wire wire_;
    TreeNode node_;
    Shape shape_;
    std::uint64_t phase_ = 0;
    std::uint32_t call_ = 0, other_call_ = 0;
    T own_{};  ///< contribution, then what the subtree makes, then the result
    bool told_ = true, finished_ = true;
};

}  // namespace hiroba::net::kick
