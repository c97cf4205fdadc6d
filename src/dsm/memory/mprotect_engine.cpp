// SPDX-License-Identifier: BSD-3-Clause
// Role: the mprotect engine: every change of access is a change of protection under one latch,
// which costs little, since the kernel lets one thread at a time change mappings anyway.
#include "dsm/memory/mprotect_engine.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/address_hint.hpp"
#include "base/fatal.hpp"
#include "base/mapping_count.hpp"
#include "dsm/memory/attached_order.hpp"
#include "dsm/memory/fault_attached.hpp"
#include "dsm/memory/fault_lock.hpp"
#include "dsm/memory/kernel_calls.hpp"
#include "dsm/memory/page_calls.hpp"

namespace hiroba::dsm {
namespace {

constexpr std::size_t mprotect_block_bytes = 16384;

Error failed(const char* call, AddressRange range, long result) {
    char text[224];
    std::snprintf(text, sizeof text, "mprotect engine: %s of %zu bytes at %#lx failed: %s", call,
                  range.bytes, range.address, std::strerror(static_cast<int>(-result)));
    return Error{ErrorKind::environment, text};
}

/// Calls `visit` for each run of pages in `run` for which `wanted` holds; stops when it says false.
template <class Wanted, class Visit>
bool for_each_run_where(PageRun run, Wanted&& wanted, Visit&& visit) {
    for (std::size_t page = run.first; page < run.end(); ++page) {
        if (!wanted(page)) continue;
        const std::size_t first = page;
        while (page < run.end() && wanted(page)) ++page;
        if (!visit(PageRun{first, page - first})) return false;
    }
    return true;
}

}  // namespace

Result<std::unique_ptr<MprotectEngine>> MprotectEngine::create(std::string why) {
    std::unique_ptr<MprotectEngine> engine{new MprotectEngine};
    engine->facts_ = {"mprotect", std::move(why), mprotect_block_bytes, true, true};
    engine->attached_.reserve(attached_max);
    engine->ascending_.reserve(attached_max);
    return engine;
}

MprotectEngine::~MprotectEngine() {
    for (const Attached& each : attached_) {
        forget_attached(each.range);
        kernel_call(SYS_munmap, each.range.address, each.range.bytes);
        kernel_call(SYS_munmap, each.access, round_up(each.range.bytes / page_bytes, page_bytes));
    }
}

Result<void> MprotectEngine::attach(AddressRange range, int memory_fd, std::uint64_t memory_offset,
                                    std::byte*) {
    const FaultSafeLock guard{latch_};
    if (attached_.size() == attached_max)
        return failed("attaching one range too many, that", range, -E2BIG);
    for (const Attached& other : attached_)
        if (range.address < other.range.end() && other.range.address < range.end())
            return failed("attaching over an attached range", range, -EEXIST);

    const std::size_t pages = range.bytes / page_bytes;
    auto written = PageSet::create(pages);
    if (!written) return written.error();
    auto kept = PageSet::create(pages);
    if (!kept) return kept.error();
    auto executable = PageSet::create(pages);
    if (!executable) return executable.error();
    auto untracked = PageSet::create(pages);
    if (!untracked) return untracked.error();
    const long access =
        kernel_call(SYS_mmap, address_hint(pages), round_up(pages, page_bytes),
                    PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (kernel_failed(access)) return failed("mmap of the table", range, access);
    kernel_call(SYS_madvise, access, round_up(pages, page_bytes), MADV_DONTDUMP);
    const long at = kernel_call(SYS_mmap, range.address, range.bytes, PROT_NONE,
                                MAP_SHARED | MAP_FIXED | MAP_NORESERVE, memory_fd, memory_offset);
    if (kernel_failed(at)) return failed("mmap", range, at);

    attached_.push_back({range, reinterpret_cast<PageAccess*>(access), std::move(*written),
                         std::move(*kept), std::move(*executable), std::move(*untracked)});
    insert_last(attached_, ascending_);
    note_attached(range);
    return {};
}

MprotectEngine::Attached& MprotectEngine::attached_at(AddressRange range) noexcept {
    for (Attached& each : attached_)
        if (each.range.contains(range.address) && range.end() <= each.range.end()) return each;
    fatal("mprotect engine: %lu bytes at 0x%lx lie in no attached range", range.bytes,
          range.address);
}

bool MprotectEngine::protect(Attached& where, PageRun run, PageAccess wanted) noexcept {
    if (wanted == PageAccess::none) return protect_equal(where, run, wanted, PROT_NONE);
    const int protection = wanted == PageAccess::read ? PROT_READ : PROT_READ | PROT_WRITE;
    if (!any_executable_) return protect_equal(where, run, wanted, protection);
    while (run.count > 0) {
        const bool executable = where.executable.contains(run.first);
        PageRun part{run.first, 1};
        while (part.end() < run.end() && where.executable.contains(part.end()) == executable)
            ++part.count;
        if (!protect_equal(where, part, wanted, executable ? protection | PROT_EXEC : protection))
            return false;
        run = {part.end(), run.end() - part.end()};
    }
    return true;
}

bool MprotectEngine::protect_equal(Attached& where, PageRun run, PageAccess wanted,
                                   int protection) noexcept {
    const AddressRange range = where.range_of(run);
    page_calls.note_call();
    const long result = kernel_call(SYS_mprotect, range.address, range.bytes, protection);
    if (result == -ENOMEM) {
        retreat();
        return false;
    }
    if (result != 0 && (protection & PROT_EXEC) != 0) die_without_execution(range, result);
    HIROBA_INVARIANT(result == 0, "mprotect of %lu bytes at 0x%lx gave %ld", range.bytes,
                     range.address, result);
    std::fill_n(where.access + run.first, run.count, wanted);
    return true;
}

void MprotectEngine::raise(Attached& where, PageRun run, PageAccess wanted) noexcept {
    if (wanted == PageAccess::write) add_written(where, run);
    const auto lacks = [&](std::size_t page) { return where.access[page] < wanted; };
    const auto give = [&](PageRun part) { return protect(where, part, wanted); };
    if (for_each_run_where(run, lacks, give)) return;
    // After the retreat there is room, and what the first attempt had done is undone.
    if (for_each_run_where(run, lacks, give)) return;
    die_without_mappings("access to memory", where.range_of(run).address);
}

/// Raises the pages of `run` of which `is_one` says true to write access.
template <class IsOne>
void MprotectEngine::open_where(Attached& where, PageRun run, IsOne&& is_one) noexcept {
    for_each_run_where(run, is_one, [&](PageRun part) {
        raise(where, part, PageAccess::write);
        return true;
    });
}

void MprotectEngine::map(AddressRange range, Access access) noexcept {
    const FaultSafeLock guard{latch_};
    Attached& where = attached_at(range);
    const PageRun run = where.pages_of(range);
    if (access == Access::write) return raise(where, run, PageAccess::write);
    raise(where, run, PageAccess::read);
    open_where(where, run, [&](std::size_t page) { return where.kept.contains(page); });
}

void MprotectEngine::keep(AddressRange range) noexcept {
    const FaultSafeLock guard{latch_};
    Attached& where = attached_at(range);
    const PageRun run = where.pages_of(range);
    where.kept.add(run);
    open_where(where, run,
               [&](std::size_t page) { return where.access[page] != PageAccess::none; });
}

// The next collect() protects them.
void MprotectEngine::watch(AddressRange range) noexcept {
    const FaultSafeLock guard{latch_};
    Attached& where = attached_at(range);
    where.kept.remove(where.pages_of(range));
}

void MprotectEngine::leave_untracked(AddressRange range) noexcept {
    const FaultSafeLock guard{latch_};
    Attached& where = attached_at(range);
    const PageRun run = where.pages_of(range);
    where.untracked.add(run);
    // A retreat instead, or a page that nothing maps now: the next access faults and is answered.
    for_each_run_where(
        run, [&](std::size_t page) { return where.access[page] == PageAccess::read; },
        [&](PageRun part) { return protect(where, part, PageAccess::write); });
}

void MprotectEngine::track(AddressRange range) noexcept {
    const FaultSafeLock guard{latch_};
    Attached& where = attached_at(range);
    const PageRun run = where.pages_of(range);
    where.untracked.remove(run);
    add_written(where, run);
}

void MprotectEngine::allow_execution(AddressRange range) noexcept {
    {
        const FaultSafeLock guard{latch_};
        Attached& where = attached_at(range);
        const PageRun run = where.pages_of(range);
        where.executable.add(run);
        any_executable_ = true;
        for (const PageAccess access : {PageAccess::read, PageAccess::write}) {
            const auto has = [&](std::size_t page) { return where.access[page] == access; };
            const auto give = [&](PageRun part) { return protect(where, part, access); };
            // After a retreat there is room for what is left: the kept pages.
            if (for_each_run_where(run, has, give) || for_each_run_where(run, has, give)) continue;
            die_without_mappings("code on a stack", range.address);
        }
    }
    note_executable(range);
}

void MprotectEngine::unmap(std::span<const AddressRange> ranges) noexcept {
    const FaultSafeLock guard{latch_};
    for (std::size_t i = 0; i < ranges.size();) {
        AddressRange whole = ranges[i++];
        const AddressRange within = attached_at(whole).range;
        while (i < ranges.size() && ranges[i].address == whole.end() &&
               ranges[i].end() <= within.end())
            whole.bytes += ranges[i++].bytes;
        close_range(whole);
    }
}

void MprotectEngine::close_range(AddressRange range) noexcept {
    Attached& where = attached_at(range);
    const auto open = [&](std::size_t page) { return where.access[page] != PageAccess::none; };
    const auto close = [&](PageRun part) { return protect(where, part, PageAccess::none); };
    const PageRun run = where.pages_of(range);
    where.kept.remove(run);
    if (for_each_run_where(run, open, close) || for_each_run_where(run, open, close)) return;
    die_without_mappings("making memory inaccessible", range.address);
}

void MprotectEngine::add_written(Attached& where, PageRun run) noexcept {
    where.written.add(run);
    has_written_.store(true, std::memory_order_seq_cst);
}

void MprotectEngine::collect(WrittenSink& sink) noexcept {
    // Before the pages are taken: a thread that adds one meanwhile sets it again.
    has_written_.store(false, std::memory_order_seq_cst);
    for (const std::uint16_t index : ascending_) {
        Attached& where = attached_[index];
        where.written.take_each_run([&](PageRun run) {
            {
                const FaultSafeLock guard{latch_};
                protect_again(where, run);
            }
            sink.written(where.range_of(run));
        });
    }
}

void MprotectEngine::protect_again(Attached& where, PageRun run) noexcept {
    const auto writable = [&](std::size_t page) {
        return where.access[page] == PageAccess::write && !where.kept.contains(page) &&
               !where.untracked.contains(page);
    };
    // When it retreats instead, the pages are inaccessible, which notices writes as well.
    for_each_run_where(run, writable,
                       [&](PageRun part) { return protect(where, part, PageAccess::read); });
    const auto stays = [&](std::size_t page) {
        return where.access[page] == PageAccess::write && where.kept.contains(page) &&
               !where.untracked.contains(page);
    };
    for_each_run_where(run, stays, [&](PageRun part) {
        add_written(where, part);
        return true;
    });
}

void MprotectEngine::retreat() noexcept {
    ++retreats_;
    // Closing may have to split a mapping at a kept page while there is none left: the first pass
    // closes what needs no split, which leaves thousands for the second.
    if (close_all_but_kept() || close_all_but_kept()) return;
    die_without_mappings("making memory inaccessible", attached_.front().range.address);
}

void MprotectEngine::forget_access(PageAccess* first, std::size_t count) noexcept {
    // Zero is PageAccess::none. Whole pages of the table go back to the kernel: a range may have
    // millions of entries of which thousands were ever touched.
    const auto begin = reinterpret_cast<std::uintptr_t>(first);
    const std::uintptr_t end = begin + count;
    const std::uintptr_t inner_begin = std::min(round_up(begin, page_bytes), end);
    const std::uintptr_t inner_end = std::max(round_down(end, page_bytes), inner_begin);
    std::memset(first, 0, inner_begin - begin);
    std::memset(reinterpret_cast<void*>(inner_end), 0, end - inner_end);
    if (inner_begin == inner_end) return;
    const long result =
        kernel_call(SYS_madvise, inner_begin, inner_end - inner_begin, MADV_DONTNEED);
    HIROBA_INVARIANT(result == 0, "madvise of %lu bytes of a table gave %ld",
                     inner_end - inner_begin, result);
}

bool MprotectEngine::close_all_but_kept() noexcept {
    bool all_closed = true;
    for (Attached& where : attached_) {
        std::size_t from = 0;
        const auto close_up_to = [&](std::size_t end) {
            if (from == end) return;
            const PageRun run{from, end - from};
            const AddressRange range = where.range_of(run);
            if (kernel_call(SYS_mprotect, range.address, range.bytes, PROT_NONE) == 0)
                forget_access(where.access + run.first, run.count);
            else
                all_closed = false;
        };
        where.kept.for_each_run([&](PageRun kept) {
            close_up_to(kept.first);
            from = kept.end();
        });
        close_up_to(where.range.bytes / page_bytes);
    }
    return all_closed;
}

EngineProbe probe_mprotect() { return {true, "changing protections is possible on any kernel"}; }

}  // namespace hiroba::dsm
