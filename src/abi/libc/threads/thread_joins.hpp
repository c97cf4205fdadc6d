// SPDX-License-Identifier: BSD-3-Clause
// Role: joining and detaching of threads that another node has made: libc does it there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hiroba::abi {

struct CallArguments;

/// Numbered behind those of names.
enum class JoinCall : std::int64_t { join = (1 << 22) + 32, detach };

/// For another node, in a thread that serves it: waits for the thread's end. What the thread has
/// written is told to all nodes. @return 0 or a negated error number; -ESRCH: made elsewhere
std::int64_t join_thread_here(const CallArguments& words, std::byte* data) noexcept;
std::int64_t detach_thread_here(const CallArguments& words) noexcept;

}  // namespace hiroba::abi
