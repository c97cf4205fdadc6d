// SPDX-License-Identifier: BSD-3-Clause
// Role: poll and select on descriptors of which some are another node's.
// Invariant: the kernel of this node is never asked of such a number, which it does not know.
#pragma once

#include <optional>

#include "abi/libc/calls/system_calls.hpp"

namespace hiroba::abi {

/// The result, if `number` is such a call and any of its descriptors is another node's. A handler
/// of the program ends the wait (EINTR).
std::optional<long> wait_elsewhere(long number, const CallArguments& given) noexcept;

}  // namespace hiroba::abi
