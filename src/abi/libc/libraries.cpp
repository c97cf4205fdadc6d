// SPDX-License-Identifier: BSD-3-Clause
// Role: interposes dlopen(), dlmopen() and dlerror(): a library loaded after the start exists on
// one node only, its functions and variables on no other, so it is refused with a line.
// Invariant: what is loaded already is found as ever. The real calls are the last thing a function
// here does: libc looks at its caller to know whose search path counts.
#include <dlfcn.h>
#include <stdio.h>

#include <atomic>

#include "abi/libc/real.hpp"
#include "base/fatal.hpp"

HIROBA_REAL(dlopen);
HIROBA_REAL(dlmopen);
HIROBA_REAL(dlerror);

namespace hiroba::abi {
namespace {

constinit thread_local const char* refused [[gnu::tls_model("initial-exec")]] = nullptr;
constinit std::atomic<bool> said{false};

/// True when `file` is to be refused; found by asking for it without loading.
bool is_new(const char* file) noexcept {
    if (file == nullptr) return false;
    void* const handle = real_dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) {
        real_dlerror();  // it was our question
        return true;
    }
    dlclose(handle);
    return false;
}

void* refuse(const char* file) noexcept {
    refused = "a library cannot be loaded after the start on several nodes (hiroba)";
    if (!said.exchange(true)) {
        say("dlopen of %s after the start: the other nodes would not have it. Link the program "
            "with it, or name it in LD_PRELOAD",
            file);
    }
    return nullptr;
}

}  // namespace
}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

void* dlopen(const char* file, int mode) noexcept {
    if (HIROBA_CALL_OF_PROGRAM() && is_new(file)) return refuse(file);
    return real_dlopen(file, mode);
}

void* dlmopen(Lmid_t space, const char* file, int mode) noexcept {
    if (HIROBA_CALL_OF_PROGRAM() && (space != LM_ID_BASE || is_new(file))) return refuse(file);
    return real_dlmopen(space, file, mode);
}

char* dlerror() noexcept {
    if (refused == nullptr) return real_dlerror();
    const char* const text = refused;
    refused = nullptr;
    return const_cast<char*>(text);
}

}  // extern "C"
