// SPDX-License-Identifier: BSD-3-Clause
// Role: collect() of the userfaultfd engine: which spans to scan, the scan, its report; and what is
// reported without a scan (docs/decisions/hot-pages.md).
// Invariant: the spans cover every page that may have a page table entry.
//
// A scan costs 0.34 us by itself, 2 ns for each page table entry it walks, and nothing for space
// that no mapping covers. Entries that never existed count as written and are *made* by the scan,
// page tables included (64 GiB: 33 ms and 128 MiB). So the spans follow the pages that have been
// mapped at some time, bridging gaps only where walking them is cheaper than another call.
#include <algorithm>
#include <cerrno>

#include "base/fatal.hpp"
#include "base/latch.hpp"
#include "dsm/memory/uffd_calls.hpp"
#include "dsm/memory/uffd_engine.hpp"

namespace hiroba::dsm {
namespace {

constexpr std::size_t gap_bytes_max = 128 * page_bytes;  // walked in the time of a call
// Libraries lie close together. Further apart, unknown mappings in between may be many.
constexpr std::size_t foreign_gap_bytes_max = std::size_t{64} << 20;
constexpr std::uint32_t standstills_max = 10'000'000;
// A page that is protected for nothing costs a fault of the kernel's, about half of a scan's call.
constexpr std::size_t untracked_pages_min = 4;

}  // namespace

void UffdEngine::rebuild_spans() noexcept {
    // Read before the walk: pages added during it are seen by the next collect at the latest.
    const std::uint64_t epoch = occupied_epoch_.load(std::memory_order_seq_cst);
    if (epoch == spans_epoch_) return;
    spans_epoch_ = epoch;
    span_count_ = 0;
    passed_quiet_ = false;
    std::uintptr_t former_end = 0;
    for (const std::uint16_t index : ascending_) {
        const Attached& each = attached_[index];
        const std::size_t foreign_before = each.range.address - former_end;
        each.occupied.for_each_run_outside(each.untracked, [&](PageRun run) {
            add_spans(each.range_of(run), each, foreign_before);
        });
        former_end = each.range.end();
    }
    if (span_count_ == 0) all_quiet_epoch_.store(epoch, std::memory_order_seq_cst);
}

/// Quiet chunks are none of the kernel's business.
void UffdEngine::add_spans(AddressRange run, const Attached& within,
                           std::size_t foreign_before) noexcept {
    while (run.bytes > 0) {
        const std::uintptr_t end = std::min(run.end(), within.chunk_end(run.address));
        if (within.chunk_at(run.address).quiet.load(std::memory_order_seq_cst)) {
            passed_quiet_ = true;
        } else {
            add_span({run.address, end}, within, foreign_before);
            passed_quiet_ = false;
        }
        run = {end, run.end() - end};
    }
}

/// Pages that nobody asks about are passed by where that costs less than to walk and to protect
/// them.
bool UffdEngine::passes_untracked(Span gap, const Attached& within) noexcept {
    if (gap.start < within.range.address || gap.end - gap.start < untracked_pages_min * page_bytes)
        return false;
    const PageRun pages = within.pages_of({gap.start, gap.end - gap.start});
    return within.untracked.contains(pages.first) || within.untracked.contains(pages.end() - 1);
}

void UffdEngine::add_span(Span span, const Attached& within, std::size_t foreign_before) noexcept {
    if (span_count_ > 0) {
        Span& last = spans_[span_count_ - 1];
        std::size_t gap = span.start - last.end;
        bool joins = gap <= gap_bytes_max && !passes_untracked({last.end, span.start}, within);
        if (last.end < within.range.address && foreign_before > 0) {
            gap -= std::min(gap, foreign_before);  // only attached pages cost their walk
            joins = scan_skips_foreign_ && foreign_before <= foreign_gap_bytes_max &&
                    gap <= gap_bytes_max;
        }
        joins &= !passed_quiet_;
        if (joins || span_count_ == spans_max) {
            last.end = span.end;
            return;
        }
    }
    spans_[span_count_++] = span;
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
    if (!any_dropped_) return;
    any_dropped_ = false;
    for (Attached& each : attached_)
        each.dropped.take_each_run([&](PageRun run) { each.tracked.remove(run); });
}

/// Hot pages are reported without a look and stay writable; the scan goes around them.
void UffdEngine::collect_span(const Span& span, std::span<const std::uintptr_t> hot,
                              WrittenSink& sink) noexcept {
    Span rest = span;
    for (const std::uintptr_t page : hot) {
        if (page < rest.start || page >= rest.end) continue;
        scan({rest.start, page}, sink);
        report({page, page_bytes}, sink);
        rest.start = page + page_bytes;
    }
    scan(rest, sink);
}

void UffdEngine::scan(const Span& span, WrittenSink& sink) noexcept {
    Backoff backoff;
    for (std::uintptr_t at = span.start; at < span.end;) {
        std::uintptr_t stopped = at;
        const long count =
            scan_written(pagemap_, at, span.end, AfterScan::protect, regions_, stopped);
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
