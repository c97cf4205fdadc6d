// SPDX-License-Identifier: BSD-3-Clause
// Role: collect() of the userfaultfd engine: which spans to scan, the scan, its report; and what is
// reported without a scan (docs/decisions/hot-pages.md).
// Invariant: the spans cover every asked page: what the kernel may let the program write.
//
// A scan costs 0.34 us by itself, 2 ns for each page table entry it walks, 10 to 20 for one that
// nobody asks about and that counts as written, and nothing for space that no mapping covers.
// Entries that never existed count as written and are *made* by the scan, page tables included
// (64 GiB: 33 ms and 128 MiB). So the spans follow the asked pages, bridging gaps only where
// walking them is cheaper than another call.
#include <algorithm>
#include <cerrno>

#include "base/fatal.hpp"
#include "base/latch.hpp"
#include "dsm/memory/uffd_calls.hpp"
#include "dsm/memory/uffd_engine.hpp"

namespace hiroba::dsm {
namespace {

constexpr std::size_t gap_bytes_max = 128 * page_bytes;  // walked in the time of a call
// Untracked pages in between: what is written is found by a scan, and protected by further calls.
constexpr std::size_t mixed_gap_bytes_max = 32 * page_bytes;
// Libraries lie close together. Further apart, unknown mappings in between may be many.
constexpr std::size_t foreign_gap_bytes_max = std::size_t{64} << 20;
constexpr std::uint32_t standstills_max = 10'000'000;
constexpr std::size_t hot_group_min = 3;    // close together: fewer are gone around
constexpr std::uint32_t call_cost = 4;      // in tenths of a microsecond
constexpr std::uint32_t mixed_a_tenth = 4;  // pages between, each a region of its own at worst

}  // namespace

void UffdEngine::rebuild_spans() noexcept {
    // Read before the walk: pages added during it are seen by the next collect at the latest.
    const std::uint64_t epoch = asked_epoch_.load(std::memory_order_seq_cst);
    if (epoch == spans_epoch_) return;
    spans_epoch_ = epoch;
    span_count_ = 0;
    const Attached* before = nullptr;
    for (const std::uint16_t index : ascending_) {
        const Attached& each = attached_[index];
        each.asked.for_each_run([&](PageRun run) { add_span(each.range_of(run), each, before); });
        before = &each;
    }
    if (span_count_ == 0) all_quiet_epoch_.store(epoch, std::memory_order_seq_cst);
}

/// What lies between the end of the last span and a run of asked pages: nothing that a scan of both
/// may not protect, untracked pages, or too much.
UffdEngine::Gap UffdEngine::gap_between(const Span& last, AddressRange run, const Attached& within,
                                        const Attached* before) const noexcept {
    const auto untracked_in = [](const Attached& where, AddressRange gap) {
        std::size_t count = 0;
        const PageRun pages = where.pages_of(gap);
        for (std::size_t page = pages.first; page < pages.end(); ++page)
            count += where.untracked.contains(page) ? 1 : 0;
        return count;
    };
    if (last.end > within.range.address) {
        const std::size_t gap = run.address - last.end;
        if (gap > gap_bytes_max) return Gap::none;
        if (untracked_in(within, {last.end, gap}) == 0) return last.mixed ? Gap::mixed : Gap::plain;
        const bool may_mix = last.start >= within.range.address && gap <= mixed_gap_bytes_max;
        return may_mix ? Gap::mixed : Gap::none;
    }
    // The kernel passes over what lies between the two ranges. Only attached pages cost their walk.
    if (before == nullptr || last.end <= before->range.address || last.mixed ||
        !scan_skips_foreign_)
        return Gap::none;
    const AddressRange tail{last.end, before->range.end() - last.end};
    const AddressRange head{within.range.address, run.address - within.range.address};
    if (within.range.address - before->range.end() > foreign_gap_bytes_max ||
        tail.bytes + head.bytes > gap_bytes_max ||
        untracked_in(*before, tail) + untracked_in(within, head) > 0 || has_quiet(*before, tail) ||
        has_quiet(within, head))
        return Gap::none;
    return Gap::plain;
}

/// Notes what each collect pays for the chunks while they are scanned.
void UffdEngine::note_scan_cost(AddressRange span, const Attached& within,
                                std::uint32_t cost) noexcept {
    constexpr std::uint32_t cost_max = 1000;
    for (std::uintptr_t at = span.address; at < span.end(); at = within.chunk_end(at)) {
        Chunk& chunk = within.chunk_at(at);
        if (chunk.cost_epoch != spans_epoch_) chunk.scan_cost = 0;
        chunk.cost_epoch = spans_epoch_;
        chunk.scan_cost = std::min(chunk.scan_cost + cost, cost_max);
    }
}

void UffdEngine::add_span(AddressRange run, const Attached& within,
                          const Attached* before) noexcept {
    if (span_count_ > 0) {
        Span& last = spans_[span_count_ - 1];
        const Gap gap = gap_between(last, run, within, before);
        if (gap != Gap::none) {
            if (gap == Gap::mixed)
                note_scan_cost({last.end, run.address - last.end}, within,
                               (run.address - last.end) / page_bytes / mixed_a_tenth);
            last.mixed = gap == Gap::mixed;
            last.end = run.end();
            return;
        }
        if (span_count_ == spans_max) {  // untracked pages may be protected, too
            last.mixed = last.start >= within.range.address;
            last.end = run.end();
            return;
        }
    }
    note_scan_cost(run, within, call_cost);
    spans_[span_count_++] = {run.address, run.end(), false};
}

void UffdEngine::collect(WrittenSink& sink) noexcept {
    rebuild_spans();
    ++collect_;
    report_at_ = 0;
    const std::span<const std::uintptr_t> hot = hot_pages_.begin_collect();
    for (std::size_t i = 0; i < span_count_; ++i) collect_span(spans_[i], hot, sink);
    hot_pages_.end_collect();
    report_open(sink);
    // Only now: an entry that a scan has not passed yet may be all that tells of a write.
    forget_dropped();
}

/// A page that was unmapped during the whole of a collect is asked for no more. One that is mapped
/// meanwhile is first no longer dropped, nor aged, then asked for and tracked: either that comes
/// behind this, or this finds it out and puts it back.
void UffdEngine::forget_dropped() noexcept {
    if (!any_dropped_.exchange(false, std::memory_order_relaxed)) return;
    bool any = false, forgot = false;
    for (Attached& each : attached_) {
        each.dropped.for_each_run([&](PageRun run) {
            for (std::size_t page = run.first; page < run.end(); ++page) {
                const PageRun one{page, 1};
                if (!each.aged.contains(page)) {
                    any = true;
                    each.aged.add(one);
                    each.tracked.remove(one);
                    if (each.dropped.contains(page)) continue;
                    each.aged.remove(one);
                    each.tracked.add(one);
                    continue;
                }
                forgot |= each.asked.remove(one);
                if (each.aged.remove(one))
                    each.dropped.remove(one);
                else
                    ask_for(each, one);
            }
        });
    }
    if (any) any_dropped_.store(true, std::memory_order_relaxed);
    if (forgot) asked_epoch_.fetch_add(1, std::memory_order_seq_cst);
}

/// Hot pages are reported and stay writable: the scan goes around a few, and protects nothing where
/// there are many.
void UffdEngine::collect_span(const Span& span, std::span<const std::uintptr_t> hot,
                              WrittenSink& sink) noexcept {
    if (span.mixed) return scan_mixed(span, hot, sink);
    std::uintptr_t at = span.start;
    const auto first = std::lower_bound(hot.begin(), hot.end(), span.start);
    for (auto next = first; next != hot.end() && *next < span.end;) {
        const AddressRange within = attached_at({*next, page_bytes}).range;
        const std::uintptr_t end = std::min(span.end, within.end());
        auto last = next;
        while (last + 1 != hot.end() && last[1] < end && last[1] - *last <= gap_bytes_max) ++last;
        const std::span<const std::uintptr_t> group{next, last + 1};
        scan({at, *next, false}, sink);
        at = *last + page_bytes;
        if (group.size() < hot_group_min) {
            scan_around(group, sink);
        } else {
            scan_among({*next, at, true}, group, sink);
        }
        next = last + 1;
    }
    scan({at, span.end, false}, sink);
}

/// Scans what lies between the pages of `hot`, and reports these.
void UffdEngine::scan_around(std::span<const std::uintptr_t> hot, WrittenSink& sink) noexcept {
    std::uintptr_t at = hot.front();
    for (const std::uintptr_t page : hot) {
        scan({at, page, false}, sink);
        report({page, page_bytes}, sink);
        at = page + page_bytes;
    }
}

void UffdEngine::scan(const Span& span, WrittenSink& sink) noexcept {
    Backoff backoff;
    for (std::uintptr_t at = span.start; at < span.end;) {
        std::uintptr_t stopped = at;
        const long count = scan_written(pagemap_, at, span.end, AfterScan::protect,
                                        std::span{regions_}.first(regions_usual), stopped);
        HIROBA_INVARIANT(count >= 0 || count == -EINTR, "PAGEMAP_SCAN of 0x%lx to 0x%lx gave %ld",
                         at, span.end, count);
        for (long i = 0; i < count; ++i) {
            const ScanRegion& region = regions_[static_cast<std::size_t>(i)];
            report({region.start, region.end - region.start}, sink);
            hot_pages_.found(region.start, region.end - region.start);
        }
        if (stopped == at) {
            HIROBA_INVARIANT(backoff.yields() < standstills_max, "PAGEMAP_SCAN stays at 0x%lx", at);
            backoff.pause();
        }
        at = stopped;
    }
}

/// Finds out first what else was written among the hot pages: protecting that run by run, or the
/// hot pages along with it, whichever costs less.
void UffdEngine::scan_among(const Span& span, std::span<const std::uintptr_t> hot,
                            WrittenSink& sink) noexcept {
    const Attached& where = attached_at({span.start, span.end - span.start});
    scan_in_parts(span, [&](std::span<const ScanRegion> regions, AddressRange part) {
        std::size_t others = 0;
        for (const ScanRegion& region : regions) {
            for (std::uintptr_t at = region.start, before = 1; at < region.end; at += page_bytes) {
                const bool is_hot = std::binary_search(hot.begin(), hot.end(), at);
                others += !is_hot && before != 0 ? 1 : 0;
                before = is_hot ? 1 : 0;
            }
        }
        const auto hot_here = std::lower_bound(hot.begin(), hot.end(), part.end()) -
                              std::lower_bound(hot.begin(), hot.end(), part.address);
        if (others > static_cast<std::size_t>(hot_here)) {
            return scan({part.address, part.end(), false}, sink);
        }
        for (const ScanRegion& region : regions)
            take_written(where, {region.start, region.end - region.start}, hot, sink);
    });
}

/// A scan that protects what it finds would protect untracked pages too, and each of their next
/// writes would be a fault of the kernel's.
void UffdEngine::scan_mixed(const Span& span, std::span<const std::uintptr_t> hot,
                            WrittenSink& sink) noexcept {
    const Attached& where = attached_at({span.start, span.end - span.start});
    scan_in_parts(span, [&](std::span<const ScanRegion> regions, AddressRange) {
        for (const ScanRegion& region : regions)
            take_written(where, {region.start, region.end - region.start}, hot, sink);
    });
}

/// Calls `visit(regions, part)` with what was written in each part of the span, protecting nothing.
template <class Visit>
void UffdEngine::scan_in_parts(const Span& span, Visit&& visit) noexcept {
    Backoff backoff;
    for (std::uintptr_t at = span.start; at < span.end;) {
        std::uintptr_t stopped = at;
        const long count =
            scan_written(pagemap_, at, span.end, AfterScan::leave, regions_, stopped);
        HIROBA_INVARIANT(count >= 0 || count == -EINTR, "PAGEMAP_SCAN of 0x%lx to 0x%lx gave %ld",
                         at, span.end, count);
        if (count > 0) {
            const std::span all{regions_};
            visit(all.first(static_cast<std::size_t>(count)), AddressRange{at, stopped - at});
        }
        if (stopped == at) {
            HIROBA_INVARIANT(backoff.yields() < standstills_max, "PAGEMAP_SCAN stays at 0x%lx", at);
            backoff.pause();
        }
        at = stopped;
    }
}

/// Reports the tracked pages of a region that was found written, protected again but for the hot
/// ones. What is written before the protection is in this report, what comes later in the next.
void UffdEngine::take_written(const Attached& where, AddressRange region,
                              std::span<const std::uintptr_t> hot, WrittenSink& sink) noexcept {
    const PageRun pages = where.pages_of(region);
    PageRun run{pages.first, 0};
    const auto take = [&](bool is_hot) {
        if (run.count == 0) return;
        const AddressRange part = where.range_of(run);
        if (!is_hot) {
            protect(uffd_, part);
            hot_pages_.found(part.address, part.bytes);
        }
        report(part, sink);
    };
    for (std::size_t page = pages.first; page < pages.end(); ++page) {
        const std::uintptr_t address = where.range.address + page * page_bytes;
        const bool is_hot = std::binary_search(hot.begin(), hot.end(), address);
        if (!is_hot && where.asked.contains(page)) {
            ++run.count;
            continue;
        }
        take(false);
        if (is_hot) {
            run = {page, 1};
            take(true);
        }
        run = {page + 1, 0};
    }
    take(false);
}

/// The kernel joins pages of neighbouring mappings into one region; callers want them apart.
void UffdEngine::report(AddressRange region, WrittenSink& sink) noexcept {
    while (region.bytes > 0 && report_at_ < ascending_.size()) {
        const AddressRange range = attached_[ascending_[report_at_]].range;
        if (range.end() <= region.address) {
            ++report_at_;
            continue;
        }
        if (region.end() <= range.address) return;  // foreign
        const std::uintptr_t start = std::max(region.address, range.address);
        const std::uintptr_t end = std::min(region.end(), range.end());
        note_written(attached_[ascending_[report_at_]], {start, end - start});
        sink.written({start, end - start});
        region = {end, region.end() - end};
    }
}

}  // namespace hiroba::dsm
