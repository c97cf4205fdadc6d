// SPDX-License-Identifier: BSD-3-Clause
// Role: the system calls that change or look at pages, counted, and what tests add to the price of
// one (HIROBA_DEARER_CALL, HIROBA_DEARER_FAULT): machines differ by a factor of twenty in these.
// Invariant: async-signal-safe; of the process, not of a node.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.hpp"

namespace hiroba::dsm {

class PageCalls {
public:
    /// Before the first of them.
    void make_dearer(std::uint64_t call_ns, std::uint64_t fault_ns) noexcept {
        call_ns_ = call_ns;
        fault_ns_ = fault_ns;
    }
    void note_call() noexcept {
        count_.fetch_add(1, std::memory_order_relaxed);
        spend(call_ns_);
    }
    void note_fault() const noexcept { spend(fault_ns_); }
    std::uint64_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

private:
    static void spend(std::uint64_t ns) noexcept {
        if (ns == 0) [[likely]]
            return;
        for (const std::uint64_t begin = now_ns(); now_ns() - begin < ns;) {
        }
    }
    std::atomic<std::uint64_t> count_{0};
    std::uint64_t call_ns_ = 0, fault_ns_ = 0;
};

inline constinit PageCalls page_calls;

}  // namespace hiroba::dsm
