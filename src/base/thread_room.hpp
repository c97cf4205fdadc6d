// SPDX-License-Identifier: BSD-3-Clause
// Role: what a layer keeps of each thread: a room in the thread's context, of which base knows how
// large it is, and the layer what lies there.
// Invariant: a room is one layer's (test/house/check_layers.py looks): net 0, dsm 1, omp 2, the
// entry points of clang's runtime 3.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>

#include "base/thread_context.hpp"

namespace hiroba {

/// Finds the `Content` in the `number`th room of a context. That begins as zero bytes, which must
/// be its initial value, and nothing is called at its end. Async-signal-safe.
template <class Content, unsigned number>
struct ThreadRoom {
    static_assert(number < ThreadContext::rooms_count);
    static_assert(sizeof(Content) <= ThreadContext::room_bytes);
    static_assert(alignof(Content) <= alignof(std::max_align_t));
    static_assert(std::is_aggregate_v<Content> && std::is_trivially_copyable_v<Content>);

    Content& operator()(ThreadContext& thread) const noexcept {
        return *std::launder(reinterpret_cast<Content*>(thread.rooms[number]));
    }
    const Content& operator()(const ThreadContext& thread) const noexcept {
        return *std::launder(reinterpret_cast<const Content*>(thread.rooms[number]));
    }
    /// Finds that of the calling thread.
    Content& operator()() const noexcept { return (*this)(this_thread()); }
};

}  // namespace hiroba
