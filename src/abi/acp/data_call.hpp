// SPDX-License-Identifier: BSD-3-Clause
// Role: how the functions of the middle layer's data call it.
#pragma once

#include <utility>

#include "abi/acp/process.hpp"
#include "acp/data/call.hpp"

namespace hiroba::abi_acp {

/// `work(call)`, or `failure` if anything in it went wrong, which is told.
template <class Value, class Work>
Value in_call(const char* function, Value failure, Work&& work) {
    if (!is_ready(function)) [[unlikely]]
        return failure;
    acp::data::Call call(*current_node());
    Value value = call.ok() ? work(call) : failure;
    if (!call.ok()) [[unlikely]]
        return fail(function, call.error(), std::move(failure));
    return value;
}

/// As above, for functions that return nothing.
template <class Work>
void in_call(const char* function, Work&& work) {
    in_call(function, 0, [&](acp::data::Call& call) {
        work(call);
        return 0;
    });
}

}  // namespace hiroba::abi_acp
