// SPDX-License-Identifier: BSD-3-Clause
// Role: what is to run at the program's end, registered on any node.
// Invariant: node 0 alone ends the program, so its libc has all handlers of the program's code, in
// the order in which they were registered.
#pragma once

#include <cstdint>

namespace hiroba::abi {

struct CallArguments;

/// The calls that another node asks of node 0, numbered behind StreamCall. The words are the call's
/// own.
enum class HandlerCall : std::int64_t {
    at_exit = 1 << 21,  ///< __cxa_atexit, which atexit() and destructors of statics come to
    on_exit,
    at_quick_exit
};

/// On node 0, in the thread that serves other nodes: registers the handler with libc.
/// @return what libc says: 0, or another number
std::int64_t register_handler(HandlerCall call, const CallArguments& words) noexcept;

}  // namespace hiroba::abi
