// SPDX-License-Identifier: BSD-3-Clause
// Role: quiet chunks of the userfaultfd engine: where few pages are written, and each collect would
// ask the kernel in vain, first writes are faults of the program and pages stay open from then on
// (docs/decisions/quiet-chunks.md).
// Invariant: of a quiet chunk, every mapped page is open, untracked or protected; kept pages are
// never protected. A chunk changes only in adapt(), while no thread of the program runs.
#include <algorithm>

#include "base/fatal.hpp"
#include "dsm/memory/uffd_calls.hpp"
#include "dsm/memory/uffd_engine.hpp"

namespace hiroba::dsm {
namespace {

// Written before one collect, in a chunk that is calm; more where scanning it costs more.
constexpr std::uint32_t pages_few = 8;
constexpr std::uint32_t pages_few_max = 256;
constexpr std::uint64_t collects_calm = 64;     // in a row, before it becomes quiet
constexpr std::uint64_t collects_between = 64;  // in which adapt() looks for such chunks
// In tenths of a microsecond: a scan, and what the kernel takes for a page that it finds written;
// the program's fault at a first write, with its signal.
constexpr std::int64_t scan_cost = 6;
constexpr std::int64_t report_cost = 5;
constexpr std::int64_t fault_cost = 60;
// A chunk may lose so much before it has saved anything, and keeps so much of what it has.
constexpr std::int64_t credit_first = 1280;
constexpr std::int64_t credit_max = 10000;
constexpr std::uint64_t collects_worth = 256;  // so long quiet was worth the change
constexpr std::uint32_t faults_max = 16;       // before the sum is drawn
constexpr std::uint32_t faults_too_many = 1'000'000;
constexpr std::uint32_t open_pages_max = 96;  // compared at each release, perhaps in vain
constexpr std::size_t changes_max = 64;       // in one adapt(), 10 us each
// A chunk apart from its neighbours is a mapping of its own, of which a process may have 65,530.
constexpr std::size_t quiet_chunks_max = 16384;

}  // namespace

void UffdEngine::map_quiet(Attached& where, Chunk& chunk, AddressRange range,
                           Access access) noexcept {
    const PageRun all = where.pages_of(range);
    where.occupied.add(all);
    where.tracked.add(all);
    if (access == Access::write) {
        open_pages(where, all);
        if (!continue_pages(uffd_of_faults_, where, range, false)) return;
        unprotect(uffd_of_faults_, range);
        // Relaxed: counted for adapt(), which looks at it while no thread of the program runs.
        if (chunk.faults.fetch_add(1, std::memory_order_relaxed) > chunk.faults_seen + faults_max)
            any_loud_.store(true, std::memory_order_relaxed);
        return;
    }
    const auto is_open = [&](std::size_t page) {
        return where.open.contains(page) || where.kept.contains(page) ||
               where.untracked.contains(page);
    };
    for (std::size_t page = all.first; page < all.end();) {
        PageRun run{page, 1};
        const bool writable = is_open(page++);
        for (; page < all.end() && is_open(page) == writable; ++page) ++run.count;
        if (writable) open_pages(where, run);
        continue_pages(uffd_of_faults_, where, where.range_of(run), !writable);
    }
}

void UffdEngine::protect(int uffd, AddressRange range) noexcept {
    const long result =
        in_pieces(range, [&](AddressRange piece) { return uffd_protect(uffd, piece); });
    HIROBA_INVARIANT(result == 0, "UFFDIO_WRITEPROTECT of %lu bytes at 0x%lx gave %ld", range.bytes,
                     range.address, result);
}

// Before they are writable: no write goes unreported.
void UffdEngine::open_pages(Attached& where, PageRun run) noexcept {
    for (std::size_t page = run.first; page < run.end(); ++page) {
        if (!where.untracked.contains(page)) where.open.add({page, 1});
    }
    any_open_.store(true, std::memory_order_seq_cst);
}

void UffdEngine::keep(AddressRange range) noexcept {
    Attached& where = attached_at(range);
    where.kept.add(where.pages_of(range));
}

void UffdEngine::unchanged(AddressRange range) noexcept {
    for (std::uintptr_t page = range.address; page < range.end(); page += page_bytes)
        hot_pages_.unchanged(page);
}

void UffdEngine::watch(AddressRange range) noexcept {
    Attached& where = attached_at(range);
    const PageRun run = where.pages_of(range);
    where.kept.remove(run);
    for (std::size_t page = run.first; page < run.end(); ++page) {
        if (!where.open.contains(page)) continue;
        protect(uffd_of_faults_, where.range_of({page, 1}));
        where.open.remove({page, 1});
    }
}

bool UffdEngine::is_quiet(std::uintptr_t address) noexcept {
    return attached_at({address, page_bytes}).chunk_at(address).quiet.load();
}

// Asked pages may have been written. Those that have been asked for since the last collect count as
// such.
bool UffdEngine::has_written() const noexcept {
    return any_open_.load(std::memory_order_seq_cst) ||
           asked_epoch_.load(std::memory_order_seq_cst) !=
               all_quiet_epoch_.load(std::memory_order_seq_cst);
}

void UffdEngine::report_open(WrittenSink& sink) noexcept {
    if (!any_open_.exchange(false, std::memory_order_seq_cst)) return;
    bool any = false;
    for (const std::uint16_t index : ascending_) {
        const Attached& each = attached_[index];
        each.open.for_each_run([&](PageRun run) {
            any = true;
            note_written(each, each.range_of(run));
            sink.written(each.range_of(run));
        });
    }
    if (any) any_open_.store(true, std::memory_order_seq_cst);
}

// How much is written in each chunk.
void UffdEngine::note_written(const Attached& where, AddressRange region) noexcept {
    while (region.bytes > 0) {
        const std::uintptr_t end = std::min(region.end(), where.chunk_end(region.address));
        Chunk& chunk = where.chunk_at(region.address);
        if (chunk.written_at != collect_) chunk.written = 0;
        chunk.written_at = collect_;
        chunk.written += static_cast<std::uint32_t>((end - region.address) / page_bytes);
        chunk.reports += static_cast<std::uint32_t>((end - region.address) / page_bytes);
        if (chunk.written > std::min(pages_few + chunk.scan_cost, pages_few_max))
            chunk.busy_at = collect_;
        if (chunk.written > open_pages_max && chunk.quiet.load(std::memory_order_relaxed)) {
            chunk.faults.store(faults_too_many, std::memory_order_relaxed);
            any_loud_.store(true, std::memory_order_relaxed);
        }
        region = {end, region.end() - end};
    }
}

// In tenths of a microsecond, since window_at: what the kernel would have cost, less what the
// program's faults did.
std::int64_t UffdEngine::saved(const Chunk& chunk) const noexcept {
    const auto collects = static_cast<std::int64_t>(collect_ - chunk.window_at);
    return collects * (scan_cost + chunk.scan_cost) + chunk.reports * report_cost -
           chunk.faults.load(std::memory_order_relaxed) * fault_cost;
}

void UffdEngine::begin_window(Chunk& chunk) const noexcept {
    chunk.faults.store(0, std::memory_order_relaxed);
    chunk.faults_seen = chunk.reports = 0;
    chunk.window_at = collect_;
}

void UffdEngine::adapt() noexcept {
    if (uffd_of_faults_ < 0) return;
    if (any_loud_.load(std::memory_order_relaxed)) {
        any_loud_.store(false, std::memory_order_relaxed);
        for_occupied_chunks([&](Attached& where, std::uintptr_t address) {
            Chunk& chunk = where.chunk_at(address);
            const std::uint32_t faults = chunk.faults.load(std::memory_order_relaxed);
            if (!chunk.quiet.load(std::memory_order_relaxed) ||
                faults <= chunk.faults_seen + faults_max)
                return true;
            chunk.faults_seen = faults;
            if (chunk.credit + saved(chunk) < 0) make_scanned(where, address);
            return true;
        });
    }
    if (collect_ % collects_between == 0 && span_count_ > 0) find_quiet_chunks();
}

bool UffdEngine::has_quiet(const Attached& where, AddressRange part) noexcept {
    for (std::uintptr_t at = part.address; at < part.end(); at = where.chunk_end(at)) {
        if (where.chunk_at(at).quiet.load(std::memory_order_seq_cst)) return true;
    }
    return false;
}

/// Until `visit` returns false.
template <class Visit>
void UffdEngine::for_occupied_chunks(Visit&& visit) noexcept {
    bool goes_on = true;
    for (Attached& each : attached_) {
        std::uintptr_t next = each.range.address;
        each.occupied.for_each_run([&](PageRun run) {
            const AddressRange range = each.range_of(run);
            next = std::max(next, range.address);
            while (goes_on && next < range.end()) {
                goes_on = visit(each, next);
                next = each.chunk_end(next);
            }
        });
    }
}

void UffdEngine::find_quiet_chunks() noexcept {
    std::size_t changes = 0;
    for_occupied_chunks([&](Attached& where, std::uintptr_t address) {
        Chunk& chunk = where.chunk_at(address);
        if (chunk.quiet.load(std::memory_order_relaxed)) {
            chunk.credit = std::min(chunk.credit + saved(chunk), credit_max);
            begin_window(chunk);
        } else if (chunk.cost_epoch == spans_epoch_ &&  // it is scanned
                   collect_ - chunk.busy_at >= collects_calm << chunk.patience) {
            make_quiet(where, address);
            ++changes;
        }
        return changes < changes_max && quiet_count_ < quiet_chunks_max;
    });
}

// Its pages were collected just now, and no thread has written since: what is not kept is clean.
void UffdEngine::make_quiet(Attached& where, std::uintptr_t address) noexcept {
    const AddressRange range = where.chunk_range(address);
    const PageRun all = where.pages_of(range);
    change_registration(range, uffd_, uffd_of_faults_);
    Chunk& chunk = where.chunk_at(address);
    chunk.quiet.store(true, std::memory_order_seq_cst);  // before it looks: see track()
    const auto close = [&](PageRun run) {
        if (run.count > 0) protect(uffd_of_faults_, where.range_of(run));
    };
    PageRun closed{all.first, 0};
    for (std::size_t page = all.first; page < all.end(); ++page) {
        const bool kept = where.kept.contains(page);
        if (kept) open_pages(where, {page, 1});
        if (where.dropped.remove({page, 1})) where.tracked.remove({page, 1});
        if (!kept && !where.untracked.contains(page)) {
            ++closed.count;
            continue;
        }
        close(closed);
        closed = {page + 1, 0};
    }
    close(closed);
    where.aged.remove(all);
    where.asked.remove(all);
    begin_window(chunk);
    chunk.credit = credit_first;
    chunk.quiet_at = collect_;
    ++quiet_count_;
    asked_epoch_.fetch_add(1, std::memory_order_seq_cst);
}

// None of its pages is protected any more: the next scan reports all that are mapped.
void UffdEngine::make_scanned(Attached& where, std::uintptr_t address) noexcept {
    const AddressRange range = where.chunk_range(address);
    constexpr std::uint32_t patience_max = 20;
    Chunk& chunk = where.chunk_at(address);
    chunk.quiet.store(false, std::memory_order_seq_cst);
    const bool was_worth_it = collect_ - chunk.quiet_at >= collects_worth;
    chunk.patience = was_worth_it ? 0 : std::min(chunk.patience + 2, patience_max);
    chunk.busy_at = collect_;
    --quiet_count_;
    change_registration(range, uffd_of_faults_, uffd_);
    const PageRun all = where.pages_of(range);
    where.open.remove(all);
    for (std::size_t page = all.first; page < all.end(); ++page)
        if (where.tracked.contains(page)) ask_for(where, {page, 1});
}

void UffdEngine::change_registration(AddressRange range, int from, int to) noexcept {
    const long ended = uffd_unregister(from, range);
    HIROBA_INVARIANT(ended == 0, "UFFDIO_UNREGISTER of %lu bytes at 0x%lx gave %ld", range.bytes,
                     range.address, ended);
    const long registered = uffd_register(to, range);
    HIROBA_INVARIANT(registered == 0, "UFFDIO_REGISTER of %lu bytes at 0x%lx gave %ld", range.bytes,
                     range.address, registered);
}

}  // namespace hiroba::dsm
