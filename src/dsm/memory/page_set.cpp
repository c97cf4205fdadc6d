// SPDX-License-Identifier: BSD-3-Clause
// Role: the memory of a PageSet, and its changes.
#include "dsm/memory/page_set.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/address_hint.hpp"
#include "base/bytes.hpp"
#include "dsm/memory/kernel_calls.hpp"

namespace hiroba::dsm {
namespace {

/// Bits [from, to) of one word; 0 <= from < to <= 64.
constexpr std::uint64_t bits_between(std::size_t from, std::size_t to) {
    return (~std::uint64_t{0} >> (64 - (to - from))) << from;
}

/// Calls `visit(word, mask)` for each word that the run touches.
template <class Visit>
void for_each_mask(PageRun run, Visit&& visit) {
    for (std::size_t page = run.first; page < run.end();) {
        const std::size_t stop = std::min(run.end(), page / 64 * 64 + 64);
        visit(page / 64, bits_between(page % 64, stop - page / 64 * 64));
        page = stop;
    }
}

/// A store that others may find done already costs them a cache line: look first.
bool set_bits(std::atomic<std::uint64_t>& word, std::uint64_t mask) noexcept {
    if ((word.load(std::memory_order_seq_cst) & mask) == mask) return false;
    return (word.fetch_or(mask, std::memory_order_seq_cst) & mask) != mask;
}

}  // namespace

Result<PageSet> PageSet::create(std::size_t pages) {
    PageSet set;
    const std::size_t words = pages / 64 + 1;
    const std::size_t summaries = words / 64 + 1;
    set.top_words_ = summaries / 64 + 1;
    // Whole words at every level: a walk may read all 64 words below any bit it finds.
    const std::size_t summaries_held = set.top_words_ * 64;
    const std::size_t words_held = summaries_held * 64;
    set.bytes_ =
        round_up((words_held + summaries_held + set.top_words_) * sizeof(Word), page_bytes);

    const long memory =
        kernel_call(SYS_mmap, address_hint(set.bytes_), set.bytes_, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (kernel_failed(memory)) {
        char text[160];
        std::snprintf(text, sizeof text,
                      "no address space for a page set of %zu bytes: %s; raise ulimit -v or lower "
                      "HIROBA_HEAP",
                      set.bytes_, std::strerror(static_cast<int>(-memory)));
        return Error{ErrorKind::environment, text};
    }
    set.words_ = reinterpret_cast<Word*>(memory);
    set.summaries_ = set.words_ + words_held;
    set.tops_ = set.summaries_ + summaries_held;
    return set;
}

PageSet::PageSet(PageSet&& other) noexcept
    : words_(std::exchange(other.words_, nullptr)),
      summaries_(other.summaries_),
      tops_(other.tops_),
      top_words_(std::exchange(other.top_words_, 0)),
      bytes_(other.bytes_) {}

PageSet::~PageSet() {
    if (words_ != nullptr) kernel_call(SYS_munmap, words_, bytes_);
}

bool PageSet::add(PageRun run) noexcept {
    bool fresh = false;
    for_each_mask(run, [&](std::size_t word, std::uint64_t mask) {
        fresh |= set_bits(words_[word], mask);
        // Even if the page was a member: its adder may not have come this far yet.
        set_bits(summaries_[word / 64], std::uint64_t{1} << word % 64);
        set_bits(tops_[word / 4096], std::uint64_t{1} << word / 64 % 64);
    });
    return fresh;
}

bool PageSet::remove(PageRun run) noexcept {
    bool found = false;
    for_each_mask(run, [&](std::size_t word, std::uint64_t mask) {
        if ((words_[word].load(std::memory_order_seq_cst) & mask) == 0) return;
        found |= (words_[word].fetch_and(~mask, std::memory_order_seq_cst) & mask) != 0;
    });
    return found;
}

}  // namespace hiroba::dsm
