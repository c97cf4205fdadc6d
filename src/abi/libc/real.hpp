// SPDX-License-Identifier: BSD-3-Clause
// Role: libc's own definitions of the functions this library interposes, and which callers may be
// refused.
// Invariant: after resolve_real_functions() a call through Real is one load and one jump, so it is
// as async-signal-safe as the function itself.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/thread_context.hpp"

namespace hiroba::abi {

/// Says whose definition: allocators define libc's names for memory, too, and would be asked for
/// what libc's has made, or call us again.
enum class Definition : std::uint8_t { next, of_libc };

/// The definition of `name` beside ours; ends the process when there is none.
void* find_real(const char* name, Definition definition = Definition::next) noexcept;
/// nullptr when there is none.
void* find_real_if_any(const char* name, Definition definition = Definition::next) noexcept;

/// One function of libc. Only by HIROBA_REAL and HIROBA_REAL_OF_LIBC, which put it where
/// resolve_real_functions() looks.
template <class Function>
class alignas(32) Real {  // the section is an array of them: compilers align what is larger than 16
public:
    constexpr Real(Function*, const char* name, Definition definition) noexcept  // deduces Function
        : name_(name), definition_(definition) {}

    template <class... Arguments>
    decltype(auto) operator()(Arguments... arguments) const {
        return get()(arguments...);
    }
    /// Looks it up if libc has it. One that it lacks (stat() before glibc 2.33) is missed when
    /// called.
    void look_up() const noexcept;
    Function* get() const noexcept {
        // Relaxed: a thread that finds null looks up the same address again; no order is needed.
        void* address = address_.load(std::memory_order_relaxed);
        if (address == nullptr) [[unlikely]] {
            address = find_real(name_, definition_);
            address_.store(address, std::memory_order_relaxed);
        }
        return reinterpret_cast<Function*>(address);
    }

private:
    const char* name_;
    Definition definition_;
    mutable std::atomic<void*> address_{nullptr};
};

template <class Function>
void Real<Function>::look_up() const noexcept {
    // Relaxed: as in get().
    address_.store(find_real_if_any(name_, definition_), std::memory_order_relaxed);
}

#define HIROBA_REAL_BY(function, definition)                                                   \
    [[gnu::section("hiroba_real"),                                                             \
      gnu::used]] static constinit ::hiroba::abi::Real real_##function(&::function, #function, \
                                                                       definition)
#define HIROBA_REAL(function) HIROBA_REAL_BY(function, ::hiroba::abi::Definition::next)
#define HIROBA_REAL_OF_LIBC(function) HIROBA_REAL_BY(function, ::hiroba::abi::Definition::of_libc)

/// Looks all of them up. At take-over, before a signal handler of the program can call one.
void resolve_real_functions() noexcept;

/// True when `return_address` lies in this library: its own calls go to libc as they are.
bool is_own_code(const void* return_address) noexcept;

namespace detail {
/// Set with the world: every interposed function looks here first.
extern constinit std::atomic<bool> has_several_nodes [[gnu::visibility("hidden")]];
}  // namespace detail

/// True when the caller of an interposed function is foreign and the job has several nodes.
inline bool spans_nodes() noexcept {
    if (!detail::has_several_nodes.load(std::memory_order_acquire)) return false;
    // The making of a context allocates, and so comes by here.
    const ThreadContext* const thread = this_thread_if_known();
    return thread == nullptr || !thread->in_own_library;
}
#define HIROBA_CALL_OF_PROGRAM() \
    (::hiroba::abi::spans_nodes() && !::hiroba::abi::is_own_code(__builtin_return_address(0)))

}  // namespace hiroba::abi
