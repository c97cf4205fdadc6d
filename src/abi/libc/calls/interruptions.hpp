// SPDX-License-Identifier: BSD-3-Clause
// Role: which handlers of the program end a system call that waits, where the call is not the
// kernel's alone: other nodes are asked for it.
// Invariant: as on one machine (signal(7)). A handler with SA_RESTART lets most calls go on.
#pragma once

#include <time.h>

#include <cstdint>

namespace hiroba::abi {

struct CallArguments;

/// A request of record locks that waits on node 0 (record_locks.hpp).
inline constexpr long record_lock_call = (1 << 22) + 3;

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

/// A call that waits and was interrupted by a signal of ours alone: it goes on for the rest of its
/// time. Others the kernel repeats by itself.
class RestOfWait {
public:
    RestOfWait(long number, const CallArguments& arguments) noexcept;
    RestOfWait(const RestOfWait&) = delete;
    RestOfWait& operator=(const RestOfWait&) = delete;

    /// @param result  what the call gave. True: it is to be made once more, with these arguments
    bool goes_on(long result, CallArguments& arguments) noexcept;

private:
    std::uint64_t left_ns() const noexcept;

    long number_;
    std::uint64_t handlers_before_;
    std::uint64_t until_ns_ = ~std::uint64_t{0};
    timespec left_{};
};

}  // namespace hiroba::abi
