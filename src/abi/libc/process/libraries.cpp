// SPDX-License-Identifier: BSD-3-Clause
// Role: interposes dlopen() and its kin. On node 0, outside parallel regions, a new library is
// opened so that the other nodes can have it too (later_libraries.hpp); elsewhere it is refused
// with a line. Invariant: what is loaded already is found as ever. The real calls are the last
// thing a function here does: libc looks at its caller to know whose search path counts, and what
// RTLD_NEXT is.
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <atomic>

#include "abi/libc/memory/kept_texts.hpp"
#include "abi/libc/process/later_libraries.hpp"
#include "abi/libc/real.hpp"
#include "abi/world.hpp"
#include "base/fatal.hpp"

HIROBA_REAL(dlopen);
HIROBA_REAL(dlmopen);
HIROBA_REAL(dlerror);
HIROBA_REAL(dlclose);

namespace hiroba::abi {
namespace {

constinit thread_local const char* refused [[gnu::tls_model("initial-exec")]] = nullptr;
constinit std::atomic<bool> said{false};

/// True when `file` is not loaded; found by asking for it without loading.
bool is_new(const char* file) noexcept {
    if (file == nullptr) return false;
    void* const handle = real_dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) {
        real_dlerror();  // it was our question
        return true;
    }
    real_dlclose(handle);
    return false;
}

void* refuse(const char* file, const char* why) noexcept {
    refused = "a library cannot be opened here on several nodes (hiroba)";
    if (!said.exchange(true)) {
        say("dlopen of %s: %s. Link the program with it, or name it in LD_PRELOAD", file, why);
    }
    return nullptr;
}

void* open_new(const char* file, int mode, const void* caller) noexcept {
    if (world()->job.self.value != 0)
        return refuse(file, "on another node than 0 the others would not have it");
    if (world()->omp->place().team_size > 1)
        return refuse(file, "in a parallel region the other nodes would not have it");
    // The kernel reads the name; that in global memory may be on another node.
    char name[PATH_MAX];
    if (strlen(file) >= sizeof name) return refuse(file, "the name is too long");
    strcpy(name, file);
    const Result<void*> opened = open_library(name, mode, caller);
    if (!opened) return refuse(name, opened.error().text.c_str());
    return *opened;
}

/// `noexcept`, or the call of it would come back here, to a handler of what it throws.
using FindFunction = void*(void*, const char*) noexcept;

/// dlsym() would find itself here by HIROBA_REAL, which asks it. This version every glibc has.
FindFunction* real_dlsym() noexcept {
    static constinit std::atomic<FindFunction*> found{nullptr};
    FindFunction* real = found.load(std::memory_order_relaxed);  // every thread finds the same
    if (real == nullptr) {
        real = reinterpret_cast<FindFunction*>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5"));
        found.store(real, std::memory_order_relaxed);
    }
    return real;
}

}  // namespace
}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

void* dlopen(const char* file, int mode) noexcept {
    const bool loads = (mode & RTLD_NOLOAD) == 0;
    if (HIROBA_CALL_OF_PROGRAM() && loads && is_new(file))
        return open_new(file, mode, __builtin_return_address(0));
    return real_dlopen(file, mode);
}

void* dlmopen(Lmid_t space, const char* file, int mode) noexcept {
    if (HIROBA_CALL_OF_PROGRAM() && (space != LM_ID_BASE || is_new(file)))
        return refuse(file, "dlmopen would load it on this node alone");
    return real_dlmopen(space, file, mode);
}

/// Node 0's handles mean something on every node.
void* dlsym(void* handle, const char* name) noexcept {
    return real_dlsym()(own_handle(handle), name);
}

int dlclose(void* handle) noexcept { return real_dlclose(own_handle(handle)); }

char* dlerror() noexcept {
    if (refused == nullptr) return kept_for(real_dlerror(), __builtin_return_address(0));
    const char* const text = refused;
    refused = nullptr;
    return const_cast<char*>(text);
}

}  // extern "C"
