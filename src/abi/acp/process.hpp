// SPDX-License-Identifier: BSD-3-Clause
// Role: what the files of this interface share: the process's node, and how a function fails.
#pragma once

#include <errno.h>

#include <type_traits>

#include "acp/node.hpp"
#include "base/fatal.hpp"

#define HIROBA_ACP_PUBLIC extern "C" __attribute__((visibility("default")))

namespace hiroba::abi_acp {

/// The process's part of the job; nullptr before acp_init and after acp_finalize.
acp::Node* current_node() noexcept;

int errno_of(const Error& error) noexcept;

/// Returns false, prints why and sets errno if acp_init has not been called.
bool is_ready(const char* function);

/// Prints why `function` fails and sets errno. @return `value`
template <class Value>
Value fail(const char* function, const Error& error, Value value) {
    say("%s: %s", function, error.text.c_str());
    errno = errno_of(error);
    return value;
}

}  // namespace hiroba::abi_acp
