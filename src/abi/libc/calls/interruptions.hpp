// SPDX-License-Identifier: BSD-3-Clause
// Role: which handlers of the program end a system call that waits, where the call is not the
// kernel's alone: other nodes are asked for it.
// Invariant: as on one machine (signal(7)). A handler with SA_RESTART lets most calls go on.
#pragma once

#include <cstdint>

namespace hiroba::abi {

enum class Endings : std::uint8_t {
    none,              ///< the call does not wait for what others do
    by_some_handlers,  ///< those without SA_RESTART; the kernel repeats it behind the others
    by_any_handler
};

/// Async-signal-safe.
Endings endings_of(long number) noexcept;

/// What has begun in the calling thread since this was made.
class Interruption {
public:
    explicit Interruption(long number) noexcept;
    /// Whether a handler has run that ends the call.
    // Not inlined, so that test/cluster/switched_off.py can switch it off.
    [[gnu::noinline]] bool has_come() const noexcept;

private:
    std::uint64_t handlers() const noexcept;

    Endings endings_;
    std::uint64_t before_;
};

}  // namespace hiroba::abi
