// SPDX-License-Identifier: BSD-3-Clause
// Role: acts on system calls of the program that change an attribute of its process or of a thread
// (attribute_table.hpp).
#pragma once

namespace hiroba::abi {

/// Before the call: ends the job with one line where the attribute would hold on this node alone,
/// and notes what threads inherit.
/// Async-signal-safe.
void before_attribute_call(long number, long first_argument, long third_argument) noexcept;

}  // namespace hiroba::abi
