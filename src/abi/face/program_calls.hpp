// SPDX-License-Identifier: BSD-3-Clause
// Role: what the program calls by the C++ face of the shared memory, checked: collective calls
// match on all nodes, and locks are taken and given back by those who may. Wrong use ends the job
// with a line, where it would wait for ever or give wrong answers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/latch.hpp"
#include "dsm/sync/news_barrier.hpp"

namespace hiroba {

/// A collective call as NewsBarrier::Word::call: its kind, and the root of a broadcast.
struct CollectiveCall {
    enum class Kind : std::uint8_t { barrier, all_gather, broadcast, leave };
    Kind kind = Kind::barrier;
    std::uint32_t root = 0;
    constexpr std::uint64_t packed() const noexcept {
        return static_cast<std::uint64_t>(kind) | std::uint64_t{root} << 32;
    }
    static constexpr CollectiveCall unpack(std::uint64_t packed) noexcept {
        return {static_cast<Kind>(packed & 255), static_cast<std::uint32_t>(packed >> 32)};
    }
};

/// Ends the job if the nodes' calls differ. `words`: of the barrier just passed.
void check_collective_calls(std::uint32_t self,
                            std::span<const dsm::NewsBarrier::Word> words) noexcept;

/// The locks that threads of this node hold. Thread: any.
class HeldLocks {
public:
    /// Ends the job if the calling thread holds `key`: it would wait for itself.
    void before_lock(std::uint64_t key) noexcept;
    void locked(std::uint64_t key) noexcept;
    /// Ends the job unless a thread of this node holds `key`.
    void before_unlock(std::uint64_t key) noexcept;
    /// Ends the job if a lock is held: the others could wait for it for ever.
    void before_leaving() noexcept;

private:
    struct Held {
        std::uint64_t key;
        const void* thread;
    };
    Latch latch_;
    std::vector<Held> held_;  ///< few: a search from the end finds the latest first
};

}  // namespace hiroba
