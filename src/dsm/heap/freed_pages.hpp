// SPDX-License-Identifier: BSD-3-Clause
// Role: gives free pages of the arenas back to the machine, on all nodes (docs/layers/heap.md).
// Invariant: a node has at most one round under way. Its pages are out of the arena's free ones
// from before the first node discards them until after the last one has, so no thread uses them.
//   owner: take -> discard here -> ask all -> (all have answered) -> over: tell all, free again
//   others: asked -> discard at the next point of synchronization -> answer -> told
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/latch.hpp"
#include "base/sparse_array.hpp"
#include "dsm/heap/arena.hpp"

namespace hiroba::net {
class Endpoint;
}

namespace hiroba::dsm {

class SharedMemory;

/// Thread: any.
class FreedPages {
public:
    struct Parts {
        net::Endpoint* endpoint;
        SharedMemory* memory;
        Arena* arena;
        /// So much of the arena may be free and yet in memory; more, up to keep_times_max times
        /// that, while the program takes it again.
        std::size_t keep_bytes;
    };
    /// Registers its handler; before Endpoint::connect(). Stays where it is from then on.
    explicit FreedPages(const Parts& parts, SparseArray<AddressRange> asked,
                        SparseArray<std::uint32_t> asked_counts) noexcept;
    FreedPages(const FreedPages&) = delete;
    FreedPages& operator=(const FreedPages&) = delete;

    /// Ranges that one round, and one message, may have.
    static constexpr std::size_t ranges_max = 64;
    static constexpr std::size_t keep_times_max = 32;

    /// Whether step() has something to do. One or two loads.
    bool has_work() const noexcept {
        // Relaxed: a hint; what is missed now is seen at the next look.
        return unanswered_.load(std::memory_order_relaxed) > 0 ||
               state_.load(std::memory_order_relaxed) == State::answered || is_too_much() ||
               is_kept_for_long();
    }
    /// Answers the other nodes, ends this node's round, or begins one. Between uses of the
    /// program's memory by this thread; with no role and no latch of the memory's held.
    void step() noexcept;

private:
    enum class Kind : std::uint32_t { ask, answer, over };
    struct Message {
        Kind kind;
        std::uint32_t value;  ///< ask: number of ranges, which follow; answer: 1, if all went
    };
    enum class State : std::uint8_t { idle, waiting, answered };

    bool is_too_much() const noexcept {
        const std::size_t freed = parts_.arena->freed_bytes();
        return freed > keep_.load(std::memory_order_relaxed) &&
               freed > futile_below_.load(std::memory_order_relaxed) &&
               state_.load(std::memory_order_relaxed) == State::idle;
    }
    bool is_kept_for_long() const noexcept {
        return keep_.load(std::memory_order_relaxed) > parts_.keep_bytes &&
               now_ns() >= look_at_ns_.load(std::memory_order_relaxed);
    }
    void keep_more() noexcept;
    void keep_less() noexcept;
    void keep_as_usual() noexcept;
    void begin_round() noexcept;
    void end_round() noexcept;
    void give_back(bool zero) noexcept;
    void note_futile() noexcept;
    void answer_others() noexcept;
    void on_message(NodeId from, Bytes body) noexcept;
    void on_answer(bool all_went) noexcept;
    void send_to_all(const Message& message, Bytes ranges) noexcept;

    Parts parts_;
    /// What may be free now; written under stepping_.
    std::atomic<std::size_t> keep_;
    std::atomic<std::uint64_t> look_at_ns_{0};  ///< when to look whether so much is needed
    std::size_t last_round_bytes_ = 0;          ///< taken by the last round, under stepping_
    Latch stepping_;
    std::atomic<State> state_{State::idle};
    std::array<AddressRange, ranges_max> taken_{};  ///< of the round, under stepping_
    std::size_t taken_count_ = 0;
    /// With less no round is begun: the last found only pieces too small, or some node kept its
    /// own.
    std::atomic<std::size_t> futile_below_{0};
    std::atomic<std::uint32_t> answers_missing_{0};
    std::atomic<bool> all_went_{true};

    /// By node: what it asked for, ranges_max places each, and how many it used. A count is written
    /// by the handler when it is 0, and set to 0 by the thread that answers.
    SparseArray<AddressRange> asked_;
    SparseArray<std::uint32_t> asked_counts_;
    std::atomic<std::uint32_t> unanswered_{0};
};

}  // namespace hiroba::dsm
