// SPDX-License-Identifier: BSD-3-Clause
// Role: what each system call reads and writes through its pointers.
// Invariant: data only. A call without a row hands no memory of the program to the kernel, or only
// memory the program's thread is using anyway (its own stack, which is pinned).
#pragma once

#include <cstdint>
#include <span>

namespace hiroba::abi {

enum class Use : std::uint8_t {
    none,
    text,          ///< a string the kernel reads
    texts,         ///< a vector of strings up to a null: argv
    in,            ///< the kernel reads `bytes`, times argument `count` if there is one
    out,           ///< the kernel writes as many (and may read them)
    in_vector,     ///< an iovec array of argument `count` entries; the kernel reads what they name
    out_vector,    ///< ... writes what they name
    in_message,    ///< a msghdr and all it names
    out_message,   ///< ... for the kernel to fill
    in_messages,   ///< mmsghdr array of argument `count` entries
    out_messages,  ///< ...
    address,     ///< a sockaddr whose length the socklen_t at argument `count` holds; both written
    bits,        ///< an fd_set of argument 0 bits
    in_letter,   ///< a msgbuf with a text of argument `count` bytes, for the kernel to read
    out_letter,  ///< ... to fill
};

inline constexpr std::uint8_t no_count = 0xff;

struct Touch {
    std::uint8_t argument = 0;
    Use use = Use::none;
    std::uint16_t bytes = 0;
    std::uint8_t count = no_count;
};

struct SystemCall {
    static constexpr unsigned touches_max = 5;
    std::uint16_t number = 0;
    bool descriptor = false;  ///< argument 0 is one
    bool opens = false;       ///< the result is one
    Touch touches[touches_max] = {};
};

/// nullptr for calls without a row. Async-signal-safe.
const SystemCall* find_system_call(long number) noexcept;

std::span<const SystemCall> all_system_calls() noexcept;

}  // namespace hiroba::abi
