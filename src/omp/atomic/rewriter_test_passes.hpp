// SPDX-License-Identifier: BSD-3-Clause
// Role: memory of the rewriter's tests, its pages that are open to atomics without a call, and what
// a hook may overwrite. Invariant: included by one test.
#pragma once

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "base/atomic_window.hpp"
#include "base/bytes.hpp"
#include "base/thread_context.hpp"
#include "dsm/dsm.hpp"
#include "omp/atomic/rewriter_test_run.hpp"

namespace hiroba::omp {
namespace {

constexpr std::size_t arena_bytes = 64 << 10;

/// Memory of a test; whether it is global is decided by where it lies.
std::byte* map_arena() {
    void* arena =
        mmap(nullptr, arena_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return arena == MAP_FAILED ? nullptr : static_cast<std::byte*>(arena);
}

/// As OwnAtomics::passes: none is open until a test says so.
std::array<std::atomic<std::uint64_t>, dsm::OwnAtomics::places> open_pages{};

/// While one lives, the calling thread's atomics on the pages of `arena` go by.
class GoingBy {
public:
    explicit GoingBy(const std::byte* arena) {
        this_thread();  // makes the window
        for (std::size_t at = 0; at < arena_bytes; at += page_bytes) open(arena + at);
        open(form_word);
        window().given = many;
        window().left = many;
    }
    GoingBy(const GoingBy&) = delete;
    GoingBy& operator=(const GoingBy&) = delete;
    ~GoingBy() {
        for (auto& page : open_pages) page = 0;
        window().settle();
    }
    static AtomicWindow& window() { return *own_atomic_window; }
    /// How many have gone by since the last call.
    static std::uint32_t taken() {
        const std::uint32_t made = window().made();
        window().given = many;
        window().left = many;
        return made;
    }

private:
    static constexpr int many = 1000;
    static void open(const void* address) {
        const std::uint64_t page = reinterpret_cast<std::uintptr_t>(address) / page_bytes;
        open_pages[page % open_pages.size()] = page;
    }
};

/// Overwrites what a hook is allowed to: all vectors and errno.
void clobber() {
    if (__builtin_cpu_supports("avx512f")) {
        asm volatile(
            ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,"
            "29,30,31\n vpternlogd $0xff, %%zmm\\n, %%zmm\\n, %%zmm\\n\n .endr\n"
            "kxnorw %%k0, %%k0, %%k1\n kxnorw %%k0, %%k0, %%k7\n" ::
                : "memory");
    }
    asm volatile(
        "pcmpeqd %%xmm0, %%xmm0\n pcmpeqd %%xmm15, %%xmm15\n fld1\n fstp %%st(0)\n cmp %%eax, "
        "%%eax" ::
            : "xmm0", "xmm15", "cc");
    errno = 99;
}

}  // namespace
}  // namespace hiroba::omp
