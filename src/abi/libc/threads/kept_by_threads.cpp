// SPDX-License-Identifier: BSD-3-Clause
// Role: interposes what tells a thread who it is, or where its own data is, to note it
// (kept_by_threads.hpp).
// Invariant: each does what libc's does, at the cost of one load where the thread leads, or runs no
// region.
#include "abi/libc/threads/kept_by_threads.hpp"

#include <pthread.h>
#include <threads.h>
#include <ucontext.h>

#include "abi/libc/calls/system_calls.hpp"

extern "C" {
/// A module of the loader's and an offset in it.
struct ThreadVariable {
    unsigned long module, offset;
};
void* __tls_get_addr(ThreadVariable* variable);
}

HIROBA_REAL(pthread_setcancelstate);
HIROBA_REAL(pthread_setcanceltype);
HIROBA_REAL(pthread_getattr_np);
HIROBA_REAL(getcontext);
HIROBA_REAL(swapcontext);
HIROBA_REAL(__tls_get_addr);

// A context goes back to the caller: libc's function must find the caller's stack as it is.
extern "C" {
[[gnu::visibility("hidden"), gnu::used]] void* hiroba_real_getcontext(const void* caller) noexcept {
    hiroba::abi::note_kept_by_caller(caller);
    return reinterpret_cast<void*>(real_getcontext.get());
}
[[gnu::visibility("hidden"), gnu::used]] void* hiroba_real_swapcontext(
    const void* caller) noexcept {
    hiroba::abi::note_kept_by_caller(caller);
    return reinterpret_cast<void*>(real_swapcontext.get());
}
}
#define HIROBA_GOES_ON_IN(function)                                                              \
    asm(".text\n.globl " #function "\n.type " #function ", @function\n" #function                \
        ":\n.cfi_startproc\nendbr64\npush %rdi\n.cfi_adjust_cfa_offset 8\npush %rsi\n"           \
        ".cfi_adjust_cfa_offset 8\nsub $8, %rsp\n.cfi_adjust_cfa_offset 8\nmov 24(%rsp), %rdi\n" \
        "call hiroba_real_" #function                                                            \
        "\nadd $8, %rsp\n.cfi_adjust_cfa_offset -8\npop %rsi\n.cfi_adjust_cfa_offset -8\n"       \
        "pop %rdi\n.cfi_adjust_cfa_offset -8\njmp *%rax\n.cfi_endproc\n.size " #function         \
        ", .-" #function)
HIROBA_GOES_ON_IN(getcontext);
HIROBA_GOES_ON_IN(swapcontext);

using namespace hiroba::abi;

namespace {

pthread_t own_thread() noexcept {
    pthread_t self;
    // The thread's descriptor holds its own address, which is what libc gives.
    asm("mov %%fs:0x10, %0" : "=r"(self));
    return self;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

pthread_t pthread_self() noexcept {
    note_kept_by_caller(HIROBA_CALLER);
    return own_thread();
}

thrd_t thrd_current() {
    note_kept_by_caller(HIROBA_CALLER);
    return own_thread();
}

int pthread_setcancelstate(int state, int* old) {
    note_kept_by_caller(HIROBA_CALLER);
    return real_pthread_setcancelstate(state, old);
}

int pthread_setcanceltype(int type, int* old) {
    note_kept_by_caller(HIROBA_CALLER);
    return real_pthread_setcanceltype(type, old);
}

int pthread_getattr_np(pthread_t thread, pthread_attr_t* attributes) noexcept {
    note_kept_by_caller(HIROBA_CALLER);
    return real_pthread_getattr_np(thread, attributes);
}

// Libraries reach their data of threads by it; the program's own data are reached without a call.
void* __tls_get_addr(ThreadVariable* variable) {
    note_kept_by_caller(HIROBA_CALLER);
    return real___tls_get_addr(variable);
}

}  // extern "C"
