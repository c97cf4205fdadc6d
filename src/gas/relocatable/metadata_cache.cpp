// SPDX-License-Identifier: BSD-3-Clause
#include "gas/relocatable/metadata_cache.hpp"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <mutex>
#include <string>
#include <utility>

#include "base/trace.hpp"
#include "gas/relocatable/thread_slots.hpp"

namespace hiroba::gas {

Result<std::unique_ptr<MetadataCache>> MetadataCache::make(const SpaceShape& shape, NodeId self,
                                                           const DeadNodes& dead) {
    const std::size_t bytes = shape.pages() * sizeof(CachedPage);
    // Untouched entries cost nothing, and zeroed ones are unknown.
    void* const table = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (table == MAP_FAILED) {
        return Error{ErrorKind::environment, "mmap of " + std::to_string(bytes) +
                                                 " bytes of metadata: " + strerror(errno) +
                                                 "; see ulimit -v, or lower HIROBA_GAS"};
    }
    return std::unique_ptr<MetadataCache>(
        new MetadataCache(shape, self, dead, static_cast<CachedPage*>(table)));
}

MetadataCache::MetadataCache(const SpaceShape& shape, NodeId self, const DeadNodes& dead,
                             CachedPage* table)
    : shape_(shape), self_(self), dead_(dead), table_(table) {}

MetadataCache::~MetadataCache() { munmap(table_, shape_.pages() * sizeof(CachedPage)); }

void MetadataCache::attach(std::vector<std::byte*> bases, std::uint64_t spare_bytes_max,
                           bool is_pinned) {
    is_pinned_ = is_pinned;
    bases_ = std::move(bases);
    spare_.limit_to(spare_bytes_max >> shape_.page_shift);
}

/// The metadata word of a page once nodes have died: messages of the dead may come late.
CacheWord MetadataCache::after_losses(CacheWord word) const noexcept {
    const bool is_moving = word.state == PageState::stopped || word.state == PageState::moved ||
                           word.state == PageState::leaving;
    if (is_moving && dead_.contains(word.mover)) {
        word.state = PageState::lost;
        word.owner = word.mover;
    } else if (word.state == PageState::live && dead_.contains(word.owner)) {
        word.state = PageState::lost;
    }
    return word;
}

/// Publishes `word` and where hits may go by it. The page's latch is held.
void MetadataCache::set(std::uint64_t page, const CacheWord& wanted) noexcept {
    const CacheWord word = after_losses(wanted);
    CachedPage& entry = table_[page];
    std::byte* const base = word.is_readable() ? reach(page, word.owner) : nullptr;
    std::byte* const writes = word.state == PageState::live ? base : nullptr;
    // Release, all: a thread that follows a pointer finds the limit. The barrier behind stop() and
    // move() (fence()) orders the accesses that a mover waits for.
    if (writes == nullptr) entry.writes.store(nullptr, std::memory_order_release);
    entry.word.store(word.pack(), std::memory_order_release);
    entry.reads.store(base, std::memory_order_release);
    if (writes != nullptr) entry.writes.store(writes, std::memory_order_release);
    trace("gas.page", page, static_cast<std::uint64_t>(word.state));
}

// --- answers -------------------------------------------------------------------------------------

/// Called before the first change of the page's entry. The page's latch is held.
void MetadataCache::note_known(std::uint64_t page) noexcept {
    if (table_[page].word.load(std::memory_order_relaxed) != 0) return;
    const std::scoped_lock list{known_latch_};
    known_.push_back(page);
}

/// Takes in what the directory node says of a page that is `now` asked for. The page's latch is
/// held.
void MetadataCache::take_in(std::uint64_t page, CacheWord now, const PageWord& told) noexcept {
    now.state = !told.live ? PageState::refused : told.lost ? PageState::lost : PageState::live;
    now.fixed = told.fixed;
    now.owner = told.owner;
    now.version = told.version;
    table_[page].limit.store(told.limit, std::memory_order_relaxed);  // set() publishes it
    set(page, now);
}

std::optional<std::uint16_t> MetadataCache::begin_ask(std::uint64_t page) noexcept {
    const PageState state = word(page).state;
    if (state != PageState::unknown && state != PageState::refused) return std::nullopt;
    const std::scoped_lock guard{latch_of(page)};
    CacheWord now = word(page);
    if (now.state != PageState::unknown && now.state != PageState::refused) return std::nullopt;
    note_known(page);
    now = {.state = PageState::asking, .token = now.next_token()};
    set(page, now);
    return now.token;
}

void MetadataCache::told(std::uint64_t page, std::uint16_t token, const PageWord& told) noexcept {
    const std::scoped_lock guard{latch_of(page)};
    CacheWord now = word(page);
    // A mover's message came first, or the question was asked anew.
    if (now.state != PageState::asking || now.token != token) return;
    take_in(page, now, told);
}

bool MetadataCache::learn(std::uint64_t page, Directory& directory) noexcept {
    const std::scoped_lock guard{latch_of(page)};
    CacheWord now = word(page);
    if (now.state != PageState::unknown && now.state != PageState::refused) return false;
    const std::optional<PageWord> told = directory.look(page);
    if (!told) return false;
    note_known(page);
    now = {.token = now.next_token()};
    take_in(page, now, *told);
    return true;
}

void MetadataCache::abandon(std::uint64_t page) noexcept {
    const std::scoped_lock guard{latch_of(page)};
    CacheWord now = word(page);
    if (now.state != PageState::asking) return;
    now.state = PageState::unknown;
    set(page, now);
}

void MetadataCache::forget(std::uint64_t page) noexcept {
    const std::scoped_lock guard{latch_of(page)};
    CacheWord now = word(page);
    if (now.state != PageState::live || now.owner == self_.value) return;
    now.state = PageState::unknown;
    set(page, now);
}

// --- the waves -----------------------------------------------------------------------------------

void MetadataCache::stop(std::uint64_t page, const PageWord& next, std::uint32_t former) noexcept {
    bool left = false;
    {
        const std::scoped_lock guard{latch_of(page)};
        CacheWord now = word(page);
        const bool comes_here = next.mover == self_.value;
        switch (now.state) {
            case PageState::leaving:
            case PageState::lost:
                // A page that is not used here need not stop; but the mover has to know its own
                // page.
                if (!comes_here) return;
                break;
            case PageState::moved:
                // The last mover's resume is still under way, or this would not have begun.
                left = now.former == self_.value && now.owner != self_.value;
                break;
            // Accesses that began before it was forgotten may still be under way.
            case PageState::unknown:
            case PageState::refused:
            case PageState::asking:
            case PageState::live:
            case PageState::stopped: break;
        }
        note_known(page);
        now.state = PageState::stopped;
        now.owner = static_cast<std::uint16_t>(former);
        now.mover = next.mover;
        now.fixed = next.fixed;
        now.version = (next.version - 1) & version_mask;
        table_[page].limit.store(next.limit, std::memory_order_relaxed);
        if (comes_here) {
            spare_.drop(page);
            left = false;
        }
        set(page, now);
        fence();
    }
    if (left) keep_frame(page);
}

void MetadataCache::move(std::uint64_t page, const PageWord& next, std::uint32_t former) noexcept {
    const std::scoped_lock guard{latch_of(page)};
    CacheWord now = word(page);
    if (now.state != PageState::stopped && now.state != PageState::lost) return;
    now.state = !next.live ? PageState::leaving : next.lost ? PageState::lost : PageState::moved;
    now.former = static_cast<std::uint16_t>(former);
    now.owner = next.owner;
    now.mover = next.mover;
    now.version = next.version;
    set(page, now);
    fence();
}

void MetadataCache::resume(std::uint64_t page, const PageWord& next,
                           std::uint32_t former) noexcept {
    bool left = false;
    {
        const std::scoped_lock guard{latch_of(page)};
        CacheWord now = word(page);
        if (!next.live) {
            if (now.state == PageState::leaving) {
                now.state = PageState::unknown;
                set(page, now);
            }
            spare_.drop(page);
            scrub(reach(page, self_.value), shape_.page_bytes(), is_pinned_);
            return;
        }
        if (now.state == PageState::moved && now.version == next.version) {
            now.state = PageState::live;
            set(page, now);
            left = former == self_.value && next.owner != self_.value;
        } else if (now.state == PageState::unknown) {
            left = former == self_.value && next.owner != self_.value;
        }
    }
    if (left) keep_frame(page);
}

/// The page has left this node, and no thread reads what is here.
void MetadataCache::keep_frame(std::uint64_t page) noexcept {
    const auto oldest = spare_.keep(page);
    if (!oldest) return;
    const std::scoped_lock guard{latch_of(*oldest)};
    if (spare_.drop(*oldest)) scrub(reach(*oldest, self_.value), shape_.page_bytes(), is_pinned_);
}

bool MetadataCache::is_announced(std::byte* base,
                                 std::atomic<std::byte*> ThreadSlot::*where) const noexcept {
    if (base == nullptr) return false;
    for (const ThreadSlot& slot : thread_slots()) {
        // Acquire, pairs with ~Announced(): what the thread stored is there.
        if ((slot.*where).load(std::memory_order_acquire) == base) return true;
    }
    return false;
}

bool MetadataCache::writes_drained(std::uint64_t page) const noexcept {
    const CacheWord now = word(page);
    if (now.state != PageState::stopped) return true;
    // In this order: a guard is counted while it is announced (space::pin_hit()).
    return !is_announced(reach(page, now.owner), &ThreadSlot::writing) &&
           table_[page].writers.load() == 0;
}

bool MetadataCache::reads_drained(std::uint64_t page) const noexcept {
    const CacheWord now = word(page);
    if (now.state != PageState::moved && now.state != PageState::leaving) return true;
    return table_[page].readers[(now.version - 1) & 1].load() == 0 &&
           !is_announced(reach(page, now.former), &ThreadSlot::reading);
}

void MetadataCache::lose() noexcept {
    std::vector<std::uint64_t> known;
    {
        const std::scoped_lock list{known_latch_};
        known = known_;
    }
    for (const std::uint64_t page : known) {
        const std::scoped_lock guard{latch_of(page)};
        const CacheWord now = word(page);
        if (after_losses(now) != now) set(page, now);
    }
}

// --- posted accesses and guards ------------------------------------------------------------------

bool MetadataCache::begin_write(std::uint64_t page, CacheWord& now) noexcept {
    // The count first: set() and then writes_drained() look the other way round.
    table_[page].writers.fetch_add(1);
    now = word(page);
    if (now.state == PageState::live) return true;
    end_write(page);
    return false;
}

bool MetadataCache::begin_read(std::uint64_t page, CacheWord& now) noexcept {
    now = word(page);
    while (now.is_readable()) {
        table_[page].readers[now.version & 1].fetch_add(1);
        const CacheWord again = word(page);
        if (again.is_readable() && again.version == now.version && again.owner == now.owner) {
            return true;
        }
        end_read(page, now.version);
        now = again;
    }
    return false;
}

}  // namespace hiroba::gas
