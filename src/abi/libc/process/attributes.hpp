// SPDX-License-Identifier: BSD-3-Clause
// Role: acts on system calls of the program that change an attribute of its process or of a thread
// (attribute_table.hpp).
#pragma once

namespace hiroba::abi {

/// Before the call: ends the job with one line where the attribute would hold on this node alone,
/// and notes what threads inherit.
/// Async-signal-safe.
void before_attribute_call(long number, long first_argument, long third_argument) noexcept;

/// Behind the call, where it has succeeded: notes what the other nodes are to have.
void after_attribute_call(long number, long first_argument, long second_argument) noexcept;

/// prctl() with what it points to fit for the kernel, wherever that lies.
long perform_prctl(const long* arguments) noexcept;

/// What prctl() gives a process: node 0's, for the others.
struct ProcessSettings {
    static constexpr int count = 3;
    bool has[count] = {};
    long value[count] = {};
};
ProcessSettings process_settings() noexcept;
void take_process_settings(const ProcessSettings& wanted) noexcept;

}  // namespace hiroba::abi
