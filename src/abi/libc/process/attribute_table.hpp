// SPDX-License-Identifier: BSD-3-Clause
// Role: one table of all attributes that POSIX and Linux give a process and a thread and that the
// program can change: what hiroba makes of each, and the system calls that change it.
// Invariant: an attribute has one row, a system call (with its first argument) leads to one row.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace hiroba::abi {

/// What bears it, to POSIX or Linux.
enum class Bearer : std::uint8_t { process, thread };

/// What becomes of it on several nodes.
enum class Way : std::uint8_t {
    shared,     ///< node 0's is the program's: the others take it over before their next region
    inherited,  ///< a new thread of a region starts with its leader's
    refused,    ///< it would hold on one node alone, and that matters: the job ends
    own,        ///< each node's or thread's own, as each thread's is alone
};

struct AttributeCall {
    std::uint16_t number = 0;           ///< of the system call; 0: there is none here
    std::int16_t first_argument = any;  ///< with which it changes the attribute
    static constexpr std::int16_t any = -1;
};

struct Attribute {
    const char* name = "";
    Bearer bearer = Bearer::process;
    Way way = Way::own;
    std::array<AttributeCall, 6> calls = {};  ///< none: libc or the processor keeps it
};

/// The row that a call changes, null when it changes none. Async-signal-safe.
const Attribute* attribute_changed_by(long number, long first_argument) noexcept;

std::span<const Attribute> all_attributes() noexcept;

}  // namespace hiroba::abi
