// SPDX-License-Identifier: BSD-3-Clause
// Role: makes a system call of the program on this node: its buffers in global memory pinned for
// as long as it takes, its descriptor found wherever it was opened.
// Invariant: result and error number are the kernel's, as on the bare machine; no count is shorter.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "abi/libc/calls/system_call_table.hpp"
#include "abi/libc/real.hpp"
#include "abi/libc/threads/cancellation.hpp"
#include "base/ids.hpp"
#include "dsm/memory/kernel_calls.hpp"

namespace hiroba::abi {

struct CallArguments {
    long word[6] = {};
};

/// The address that a word of a call is.
template <class T>
T* pointer(long word) noexcept {
    return reinterpret_cast<T*>(static_cast<std::uintptr_t>(word));
}

/// @return what the kernel gives: in [-4095, -1] the negated error number
long perform_system_call(long number, const CallArguments& arguments) noexcept;

/// The global memory of one system call, pinned until the end of the scope.
class PinnedBuffers {
public:
    PinnedBuffers() noexcept {}  // leaves `pinned_` as it is: it is large
    PinnedBuffers(const PinnedBuffers&) = delete;
    PinnedBuffers& operator=(const PinnedBuffers&) = delete;
    ~PinnedBuffers();

    /// Everything the row says of these arguments.
    void add(const SystemCall& row, const CallArguments& arguments) noexcept;
    void add(const void* address, std::size_t bytes, bool write) noexcept;

    bool is_empty() const noexcept { return count_ == 0; }

    /// Maps what is pinned once more, for a call that was refused all the same
    /// (docs/decisions/refused-calls.md). @return false when nothing is pinned
    // Not inlined, so that test/cluster/switched_off.py can switch it off.
    [[gnu::noinline]] bool map_again() const noexcept;

private:
    struct Range {
        const void* address;
        std::size_t bytes;
        bool write;
    };
    static constexpr std::size_t pinned_max = 1040;  ///< a vector of the longest kind, and more

    void add_touch(const Touch& touch, const CallArguments& arguments) noexcept;
    void add_text(const char* text) noexcept;
    void add_texts(const char* const* texts) noexcept;
    void add_vector(const void* vector, std::size_t count, bool write) noexcept;
    void add_message(const void* message, bool write) noexcept;
    void add_messages(const void* messages, std::size_t count, bool write) noexcept;
    void add_address(const void* address, const void* length) noexcept;

    std::size_t count_ = 0;
    Range pinned_[pinned_max];
};

inline long as_libc(long result) noexcept {
    if (!dsm::kernel_failed(result)) return result;
    errno = static_cast<int>(-result);
    return -1;
}

/// As perform_system_call(), for a function of libc's, which may be a cancellation point.
inline long call_of_program(long number, const CallArguments& arguments) {
    const bool is_point = is_cancellation_point(number, arguments.word[1]);
    const CancellableCall call{is_point};
    call.begin();
    const long result = perform_system_call(number, arguments);
    call.end();
    if (is_point && result == -EINTR) end_cancellation_point();
    return result;
}

/// Performs a call for an interposed function of libc: the program's as above; one of this library,
/// or of a process that is alone, as it is. -1 and errno on failure. May not return where the call
/// is a cancellation point.
#define HIROBA_CALLER __builtin_return_address(0)
template <class... Arguments>
long call_from(const void* return_address, long number, Arguments... arguments) {
    const bool of_program = spans_nodes() && !is_own_code(return_address);
    const long result =
        of_program ? call_of_program(number, CallArguments{{dsm::kernel::as_word(arguments)...}})
                   : dsm::kernel_call(number, arguments...);
    return as_libc(result);
}

/// The same for a function that is no cancellation point, whatever the number is.
template <class... Arguments>
long call_to_end_from(const void* return_address, long number, Arguments... arguments) noexcept {
    if (!spans_nodes() || is_own_code(return_address))
        return as_libc(dsm::kernel_call(number, arguments...));
    const CancellableCall call{false};
    const long result =
        perform_system_call(number, CallArguments{{dsm::kernel::as_word(arguments)...}});
    call.end();
    return as_libc(result);
}

}  // namespace hiroba::abi
