// SPDX-License-Identifier: BSD-3-Clause
// Role: what the communication layer keeps of a thread.
#pragma once

#include "base/thread_room.hpp"

namespace hiroba::net {

struct ThreadPart {
    /// Those that wait for the running one (net/offload); nullptr: none runs.
    void* callbacks = nullptr;
};
inline constexpr ThreadRoom<ThreadPart, 0> thread_part;

/// Whether the calling thread runs a callback of a request.
inline bool is_in_callback() noexcept { return thread_part().callbacks != nullptr; }

}  // namespace hiroba::net
