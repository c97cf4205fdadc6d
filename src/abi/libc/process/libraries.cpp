// SPDX-License-Identifier: BSD-3-Clause
// Role: interposes dlopen() and its kin. On node 0, outside parallel regions, a new library is
// opened so that the other nodes can have it too (later_libraries.hpp); elsewhere it is refused
// with a line. Invariant: what is loaded already is found as ever. The real calls are the last
// thing a function here does: libc looks at its caller to know whose search path counts, and what
// RTLD_NEXT is.
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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
HIROBA_REAL(dlinfo);
HIROBA_REAL(mmap);
HIROBA_REAL(munmap);

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

/// Whether one of the folders has it in which the loader would look for the caller's sake.
bool is_in_search_path(const char* file, const void* caller) noexcept {
    Dl_info where;
    void* object = nullptr;
    if (dladdr1(caller, &where, &object, RTLD_DL_LINKMAP) == 0 || object == nullptr) return false;
    Dl_serinfo size{};
    if (dlinfo(object, RTLD_DI_SERINFOSIZE, &size) != 0) return false;
    auto* const folders = static_cast<Dl_serinfo*>(malloc(size.dls_size));
    if (folders == nullptr) return false;
    memcpy(static_cast<void*>(folders), &size, sizeof size);
    bool found = false;
    if (dlinfo(object, RTLD_DI_SERINFO, folders) == 0) {
        for (unsigned i = 0; i < folders->dls_cnt && !found; ++i) {
            char path[PATH_MAX];
            const int length =
                snprintf(path, sizeof path, "%s/%s", folders->dls_serpath[i].dls_name, file);
            found = length < static_cast<int>(sizeof path) && access(path, F_OK) == 0;
        }
    }
    free(folders);
    return found;
}

/// The loader's cache is a table, and behind it the names, each between zeros.
bool is_in_cache(const char* file) noexcept {
    const int fd = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    struct stat status {};
    bool found = false;
    if (fstat(fd, &status) == 0 && status.st_size > 0) {
        const auto bytes = static_cast<std::size_t>(status.st_size);
        void* const cache = real_mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
        if (cache != MAP_FAILED) {
            found = memmem(cache, bytes, file, strlen(file) + 1) != nullptr;
            real_munmap(cache, bytes);
        }
    }
    close(fd);
    return found;
}

bool is_there(const char* file, const void* caller) noexcept {
    if (strchr(file, '/') != nullptr) return access(file, F_OK) == 0;
    return is_in_search_path(file, caller) || is_in_cache(file);
}

/// What no node has fails as ever: programs look for libraries that they can do without.
void* refuse_in_region(const char* file, const void* caller) noexcept {
    if (!is_there(file, caller)) {
        refused = "cannot open shared object file: No such file or directory";
        return nullptr;
    }
    die(exit_environment,
        "dlopen of %s in a parallel region: the other nodes would not have it. Open it outside of "
        "parallel regions, link the program with it, or name it in LD_PRELOAD",
        file);
}

void* open_new(const char* file, int mode, const void* caller) noexcept {
    // The kernel reads the name; that in global memory may be on another node.
    char name[PATH_MAX];
    if (strlen(file) >= sizeof name) return refuse(file, "the name is too long");
    strcpy(name, file);
    if (world()->job.self.value != 0 || world()->omp->place().team_size > 1)
        return refuse_in_region(name, caller);
    const Result<void*> opened = open_library(name, mode, caller);
    if (!opened) return refuse(name, opened.error().text.c_str());
    return *opened;
}

/// This node's handle, opened: the loader makes a list of the libraries that one needs when it is
/// opened first, and looks for symbols there. Another node's thread may have opened this one.
void* usable_handle(void* handle) noexcept {
    static constinit std::atomic<const void*> opened[dsm::AddressMap::images_max]{};
    void* const own = own_handle(handle);
    if (own == RTLD_DEFAULT || own == RTLD_NEXT) return own;
    for (std::atomic<const void*>& each : opened) {
        const void* before = each.load(std::memory_order_acquire);
        if (before == own) return own;
        if (before != nullptr) continue;
        const link_map* known = _r_debug.r_map;
        while (known != nullptr && known != own) known = known->l_next;
        if (known == nullptr)
            die(exit_environment,
                "dlsym, dlinfo or dlclose with handle 0x%lx, which another node's loader gave "
                "and this node's has not: open the library in main",
                reinterpret_cast<std::uintptr_t>(own));
        real_dlopen(known->l_name, RTLD_LAZY | RTLD_NOLOAD);
        each.compare_exchange_strong(before, own);
        return own;
    }
    return own;
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
    return real_dlsym()(HIROBA_CALL_OF_PROGRAM() ? usable_handle(handle) : handle, name);
}

/// What no thread of this node has opened stays open: a library is loaded until the end.
int dlclose(void* handle) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_dlclose(handle);
    if (real_dlclose(usable_handle(handle)) != 0) real_dlerror();
    return 0;
}

int dlinfo(void* handle, int what, void* to) noexcept {
    return real_dlinfo(HIROBA_CALL_OF_PROGRAM() ? usable_handle(handle) : handle, what, to);
}

char* dlerror() noexcept {
    if (refused == nullptr) return kept_for(real_dlerror(), __builtin_return_address(0));
    const char* const text = refused;
    refused = nullptr;
    return const_cast<char*>(text);
}

}  // extern "C"
