// SPDX-License-Identifier: BSD-3-Clause
// Role: sigwait() and its kin on several nodes: a signal for the process may wait at any of them.
// Invariant: who waits takes a signal from one node, once.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"

namespace hiroba::abi {

struct CallArguments;

/// What another node is asked, numbered behind HandlerCall: the words are a mask and for how many
/// nanoseconds it waits; the answer is as the kernel's, with its siginfo.
enum class SignalCall : std::int64_t { wait = 1 << 22 };
inline constexpr std::size_t siginfo_bytes = 128;

/// rt_sigtimedwait() of a thread of the program. @return as the kernel
long wait_for_signal(const CallArguments& arguments) noexcept;
/// For another node, in a thread that has all signals blocked.
std::int64_t wait_for_signal_here(const CallArguments& words, void* info) noexcept;

}  // namespace hiroba::abi
