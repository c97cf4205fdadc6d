// SPDX-License-Identifier: BSD-3-Clause
// Role: interposes what registers handlers of exit() and quick_exit(): a static variable whose
// destructor is due, made first in a region on another node than 0, is destroyed by node 0.
// Invariant: a handler of code whose variables are global is registered before the call returns.
// Handlers of system libraries, whose variables are private, stay with their node, whose libc never
// runs them.
#include "abi/libc/process/exit_handlers.hpp"

#include <stdlib.h>

#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/files/remote_files.hpp"
#include "abi/libc/process/job_end.hpp"
#include "abi/libc/real.hpp"
#include "abi/world.hpp"
#include "base/program_call.hpp"
#include "omp/process/system_libraries.hpp"

extern "C" {
int __cxa_atexit(void (*function)(void*), void* argument, void* object) noexcept;
int __cxa_at_quick_exit(void (*function)(), void* object) noexcept;
}

HIROBA_REAL(__cxa_atexit);
HIROBA_REAL(__cxa_at_quick_exit);
HIROBA_REAL(on_exit);

namespace hiroba::abi {
namespace {

/// Whether node 0 must have what this call registers. A region's function that ends in the call
/// shows the place that called it.
bool is_for_node_0(const void* return_address) noexcept {
    const World* const node = world();
    if (node == nullptr || node->job.self.value == 0 || !node->files || !is_node_process())
        return false;
    if (is_program_call(return_address)) return true;
    return !is_own_code(return_address) && !omp::is_system_code(return_address);
}

int ask_node_0(HandlerCall call, long function, long argument, long object) noexcept {
    const CallArguments words{{function, argument, object}};
    return static_cast<int>(
        world()->files->call(NodeId{0}, static_cast<std::int64_t>(call), words, -1, {}, {}));
}

template <class Pointer>
Pointer pointer_in(long word) noexcept {
    return reinterpret_cast<Pointer>(static_cast<std::uintptr_t>(word));
}

template <class Function>
long word_of(Function* function) noexcept {
    return static_cast<long>(reinterpret_cast<std::uintptr_t>(function));
}

}  // namespace

std::int64_t register_handler(HandlerCall call, const CallArguments& words) noexcept {
    const long* const w = words.word;
    switch (call) {
        case HandlerCall::at_exit:
            return real___cxa_atexit(pointer_in<void (*)(void*)>(w[0]), pointer_in<void*>(w[1]),
                                     pointer_in<void*>(w[2]));
        case HandlerCall::on_exit:
            return real_on_exit(pointer_in<void (*)(int, void*)>(w[0]), pointer_in<void*>(w[1]));
        case HandlerCall::at_quick_exit:
            return real___cxa_at_quick_exit(pointer_in<void (*)()>(w[0]), pointer_in<void*>(w[2]));
    }
    return -1;
}

}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

int __cxa_atexit(void (*function)(void*), void* argument, void* object) noexcept {
    if (!is_for_node_0(__builtin_return_address(0)))
        return real___cxa_atexit(function, argument, object);
    return ask_node_0(HandlerCall::at_exit, word_of(function), word_of(argument), word_of(object));
}

int on_exit(void (*function)(int, void*), void* argument) noexcept {
    if (!is_for_node_0(__builtin_return_address(0))) return real_on_exit(function, argument);
    return ask_node_0(HandlerCall::on_exit, word_of(function), word_of(argument), 0);
}

int __cxa_at_quick_exit(void (*function)(), void* object) noexcept {
    if (!is_for_node_0(__builtin_return_address(0)))
        return real___cxa_at_quick_exit(function, object);
    return ask_node_0(HandlerCall::at_quick_exit, word_of(function), 0, word_of(object));
}

}  // extern "C"
