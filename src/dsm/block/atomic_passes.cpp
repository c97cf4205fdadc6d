// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/block/atomic_passes.hpp"

#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <type_traits>

#include "base/atomic_window.hpp"
#include "base/latch.hpp"
#include "dsm/memory/kernel_calls.hpp"

namespace hiroba::dsm {

namespace {
/// Waits until the atomic under way at `word`, if any, is over where is_meant(its page).
template <class Meant>
void await_other(const std::atomic<std::uint64_t>& word, Meant&& is_meant) noexcept {
    // Acquire: what the thread has done there is seen.
    const std::uint64_t page = word.load(std::memory_order_acquire);
    if (page == 0 || page == AtomicWindow::preparing || !is_meant(page)) return;
    Backoff backoff;
    while (word.load(std::memory_order_acquire) == page) backoff.pause();
}
}  // namespace

void AtomicPasses::start() noexcept {
    if (table_ != nullptr ||
        kernel_failed(kernel_call(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0)))
        return;
    fences_ = true;
    make_table();
}

void AtomicPasses::start_for_tests() noexcept {
    if (table_ == nullptr) make_table();
}

// The child of a fork finds all closed.
void AtomicPasses::make_table() noexcept {
    constexpr std::size_t bytes = places * sizeof(std::atomic<std::uint64_t>);
    const long table =
        kernel_call(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (kernel_failed(table)) return;
    if (kernel_failed(kernel_call(SYS_madvise, table, bytes, MADV_WIPEONFORK))) {
        kernel_call(SYS_munmap, table, bytes);
        return;
    }
    table_ = reinterpret_cast<std::atomic<std::uint64_t>*>(table);
}

AtomicPasses::~AtomicPasses() {
    constexpr std::size_t bytes = places * sizeof(std::atomic<std::uint64_t>);
    // Trampolines look there as long as the process lives.
    if (table_ != nullptr && !fences_) kernel_call(SYS_munmap, table_, bytes);
}

void AtomicPasses::fence_others() const noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with enter()
    if (fences_) kernel_call(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

/// Calls visit(page) with the word of each thread: of its window, or of its place in tests.
template <class Visit>
void AtomicPasses::each_thread(Visit&& visit) const noexcept {
    fence_others();
    if (!fences_) {
        for (const Place& place : test_places_) visit(place.page);
        return;
    }
    each_atomic_window(
        [](AtomicWindow& window, void* of) {
            (*static_cast<std::remove_reference_t<Visit>*>(of))(window.page);
        },
        &visit);
}

void AtomicPasses::await_none(AddressRange range) const noexcept {
    if (table_ == nullptr) return;
    each_thread([&](const std::atomic<std::uint64_t>& word) {
        await_other(word, [&](std::uint64_t page) { return range.contains(page * page_bytes); });
    });
}

void AtomicPasses::await_all() const noexcept {
    if (table_ == nullptr) return;
    each_thread([](const std::atomic<std::uint64_t>& word) {
        await_other(word, [](std::uint64_t) { return true; });
    });
}

}  // namespace hiroba::dsm
