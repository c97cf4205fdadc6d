// SPDX-License-Identifier: BSD-3-Clause
// Role: attach, map and unmap of the userfaultfd engine; uffd_collect.cpp has collect.
// Invariant: an `occupied` bit is set before the page table entry it stands for.
#include "dsm/memory/uffd_engine.hpp"

#include <linux/mman.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/address_hint.hpp"
#include "base/fatal.hpp"
#include "base/latch.hpp"
#include "base/own_descriptors.hpp"
#include "dsm/memory/attached_order.hpp"
#include "dsm/memory/fault_attached.hpp"
#include "dsm/memory/uffd_calls.hpp"
#include "dsm/memory/uffd_probe.hpp"

namespace hiroba::dsm {
namespace {

constexpr std::size_t table_bytes = std::size_t{2} << 20;  // what one page table maps

/// Zero is a chunk that nothing is known of.
constexpr std::size_t chunk_table_bytes(std::size_t chunks, std::size_t each) {
    return round_up(chunks * each, page_bytes);
}
constexpr std::size_t scattered_batch = 64;  // ranges for one process_madvise; more gain nothing
constexpr std::uint32_t retries_max = 10'000'000;

Error failed(const char* call, AddressRange range, long result) {
    char text[224];
    std::snprintf(text, sizeof text, "uffd engine: %s of %zu bytes at %#lx failed: %s", call,
                  range.bytes, range.address, std::strerror(static_cast<int>(-result)));
    return Error{ErrorKind::environment, text};
}

/// Drops the page table entries of a run. Never a whole page table in one piece: newer kernels
/// then free the table, and with it the entries that say which pages were written.
void drop(AddressRange range) noexcept {
    while (range.bytes > 0) {
        const std::uintptr_t half =
            round_down(range.address + table_bytes / 2, table_bytes) + table_bytes / 2;
        const std::size_t piece = std::min(range.bytes, half - range.address);
        page_calls.note_call();
        long result = kernel_call(SYS_madvise, range.address, piece, MADV_DONTNEED);
        if (result == -EINVAL) {  // the program has locked some of it, which is advice here
            kernel_call(SYS_munlock, range.address, piece);
            result = kernel_call(SYS_madvise, range.address, piece, MADV_DONTNEED);
        }
        HIROBA_INVARIANT(result == 0, "madvise of %lu bytes at 0x%lx gave %ld", piece,
                         range.address, result);
        range.address += piece;
        range.bytes -= piece;
    }
}

[[noreturn]] void die_without_page(AddressRange range, long result) noexcept {
    const char* const why = result == -ENOENT
                                ? "the program has mapped or unmapped memory over global memory "
                                  "there, by a call of the kernel's"
                            : result == -ENOMEM || result == -EFAULT ? "is memory short?"
                                                                     : "not expected";
    fatal("uffd engine: UFFDIO_CONTINUE of %lu bytes at 0x%lx gave %ld: %s", range.bytes,
          range.address, result, why);
}

}  // namespace

Result<std::unique_ptr<UffdEngine>> UffdEngine::create(std::string why) {
    std::unique_ptr<UffdEngine> engine{new UffdEngine};
    engine->facts_ = {"uffd", std::move(why), page_bytes, false, false};

    const long uffd = open_uffd();
    if (uffd < 0) return failed("userfaultfd", {}, uffd);
    engine->uffd_ = keep_descriptor(static_cast<int>(uffd));
    // Without it there are no quiet chunks, which are only faster.
    engine->uffd_of_faults_ =
        keep_descriptor(static_cast<int>(std::max(open_uffd(uffd_features_of_faults), -1L)));

    const long pagemap =
        kernel_call(SYS_openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC, 0);
    if (pagemap < 0) return failed("open of /proc/self/pagemap", {}, pagemap);
    engine->pagemap_ = keep_descriptor(static_cast<int>(pagemap));

    // Without it (or where the kernel refuses DONTNEED through it) runs are dropped one by one.
    engine->pidfd_ =
        keep_descriptor(static_cast<int>(kernel_call(SYS_pidfd_open, kernel_call(SYS_getpid), 0)));

    const std::size_t bytes = spans_max * sizeof(Span);
    const long spans = kernel_call(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (kernel_failed(spans)) return failed("mmap", {0, bytes}, spans);
    kernel_call(SYS_madvise, spans, bytes, MADV_DONTDUMP);
    engine->spans_ = reinterpret_cast<Span*>(spans);

    engine->attached_.reserve(attached_max);
    engine->ascending_.reserve(attached_max);
    engine->scan_skips_foreign_ = scan_skips_foreign(engine->uffd_, engine->pagemap_);
    return engine;
}

UffdEngine::~UffdEngine() {
    for (const Attached& each : attached_) {
        forget_attached(each.range);
        kernel_call(SYS_munmap, each.range.address, each.range.bytes);
        kernel_call(SYS_munmap, each.chunks, chunk_table_bytes(each.chunk_count, sizeof(Chunk)));
    }
    if (spans_ != nullptr) kernel_call(SYS_munmap, spans_, spans_max * sizeof(Span));
    for (const int fd : {pidfd_, pagemap_, uffd_, uffd_of_faults_})
        if (fd >= 0) close_kept_descriptor(fd);
}

Result<void> UffdEngine::attach(AddressRange range, int memory_fd, std::uint64_t memory_offset,
                                std::byte* alias) {
    if (attached_.size() == attached_max)
        return failed("attaching one range too many, that", range, -E2BIG);
    for (const Attached& other : attached_)
        if (range.address < other.range.end() && other.range.address < range.end())
            return failed("attaching over an attached range", range, -EEXIST);

    auto tracked = PageSet::create(range.bytes / page_bytes);
    if (!tracked) return tracked.error();
    auto asked = PageSet::create(range.bytes / page_bytes);
    if (!asked) return asked.error();
    auto dropped = PageSet::create(range.bytes / page_bytes);
    if (!dropped) return dropped.error();
    auto aged = PageSet::create(range.bytes / page_bytes);
    if (!aged) return aged.error();
    auto occupied = PageSet::create(range.bytes / page_bytes);
    if (!occupied) return occupied.error();
    auto untracked = PageSet::create(range.bytes / page_bytes);
    if (!untracked) return untracked.error();
    auto kept = PageSet::create(range.bytes / page_bytes);
    if (!kept) return kept.error();
    auto open = PageSet::create(range.bytes / page_bytes);
    if (!open) return open.error();
    const std::size_t chunk_count =
        (range.end() - 1) / chunk_bytes - range.address / chunk_bytes + 1;
    const std::size_t table_size = chunk_table_bytes(chunk_count, sizeof(Chunk));
    const long chunks =
        kernel_call(SYS_mmap, address_hint(table_size), table_size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (kernel_failed(chunks)) return failed("mmap of the table", range, chunks);
    kernel_call(SYS_madvise, chunks, table_size, MADV_DONTDUMP);

    // Inaccessible until its faults come here: what a thread touched before would stay unnoticed.
    const long at = kernel_call(SYS_mmap, range.address, range.bytes, PROT_NONE,
                                MAP_SHARED | MAP_FIXED | MAP_NORESERVE, memory_fd, memory_offset);
    if (kernel_failed(at)) return failed("mmap", range, at);
    const long registered = uffd_register(uffd_, range);
    if (registered < 0) return failed("UFFDIO_REGISTER", range, registered);
    kernel_call(SYS_madvise, range.address, range.bytes, MADV_NOHUGEPAGE);

    attached_.push_back({range, alias, std::move(*tracked), std::move(*asked), std::move(*dropped),
                         std::move(*aged), std::move(*occupied), std::move(*untracked),
                         std::move(*kept), std::move(*open), reinterpret_cast<Chunk*>(chunks),
                         chunk_count});
    insert_last(attached_, ascending_);
    note_attached(range);
    // Pairs with the acquire in attached_at(): the element is complete.
    attached_count_.store(attached_.size(), std::memory_order_release);
    const long opened =
        kernel_call(SYS_mprotect, range.address, range.bytes, PROT_READ | PROT_WRITE);
    if (opened < 0) return failed("mprotect", range, opened);
    return {};
}

UffdEngine::Attached& UffdEngine::attached_at(AddressRange range) noexcept {
    // Acquire: pairs with the release in attach(). The vector never moves its elements.
    const std::size_t count = attached_count_.load(std::memory_order_acquire);
    Attached* const all = attached_.data();
    const auto holds = [&](std::size_t i) {
        return all[i].range.contains(range.address) && range.end() <= all[i].range.end();
    };
    // Relaxed: a guess, which is checked.
    const std::size_t last = last_found_.load(std::memory_order_relaxed);
    if (last < count && holds(last)) return all[last];
    for (std::size_t i = 0; i < count; ++i) {
        if (!holds(i)) continue;
        last_found_.store(i, std::memory_order_relaxed);
        return all[i];
    }
    fatal("uffd engine: %lu bytes at 0x%lx lie in no attached range", range.bytes, range.address);
}

void UffdEngine::map(AddressRange range, Access access) noexcept {
    Attached& where = attached_at(range);
    while (range.bytes > 0) {
        const std::size_t bytes =
            std::min(range.bytes, where.chunk_end(range.address) - range.address);
        Chunk& chunk = where.chunk_at(range.address);
        if (chunk.quiet.load(std::memory_order_seq_cst))
            map_quiet(where, chunk, {range.address, bytes}, access);
        else
            map_scanned(where, {range.address, bytes}, access);
        range = {range.address + bytes, range.bytes - bytes};
    }
}

void UffdEngine::map_scanned(Attached& where, AddressRange range, Access access) noexcept {
    const PageRun all = where.pages_of(range);
    where.occupied.add(all);
    where.dropped.remove(all);
    where.aged.remove(all);  // before it is asked for: see forget_dropped()
    ask_for(where, all);

    if (access == Access::write) {
        where.tracked.add(all);
        if (continue_pages(uffd_, where, range, false)) unprotect(uffd_, range);
        return;
    }
    std::size_t page = all.first;
    bool fresh = where.tracked.add({page, 1});
    while (page < all.end()) {
        const bool run_fresh = fresh;
        PageRun run{page++, 1};
        for (; page < all.end() && (fresh = where.tracked.add({page, 1})) == run_fresh; ++page)
            ++run.count;
        if (run_fresh)
            continue_pages(uffd_, where, where.range_of(run), true);
        else
            continue_again(where, where.range_of(run));
    }
}

/// Has the next collect ask for the pages, but for those that are left untracked. Before their
/// entries are made; not of a quiet chunk.
void UffdEngine::ask_for(Attached& where, PageRun run) noexcept {
    bool more = false;
    for (std::size_t page = run.first; page < run.end(); ++page) {
        if (!where.untracked.contains(page)) more |= where.asked.add({page, 1});
    }
    if (more) asked_epoch_.fetch_add(1, std::memory_order_seq_cst);
}

// By the mapping's protection, which neighbours share: asynchronous write protection would note a
// first write, and let it happen.
bool UffdEngine::seal(AddressRange range) noexcept {
    page_calls.note_call();
    return kernel_call(SYS_mprotect, range.address, range.bytes, PROT_READ) == 0;
}

void UffdEngine::unseal(AddressRange range) noexcept {
    page_calls.note_call();
    const long result =
        kernel_call(SYS_mprotect, range.address, range.bytes, PROT_READ | PROT_WRITE);
    HIROBA_INVARIANT(result == 0, "mprotect of %lu bytes at 0x%lx gave %ld", range.bytes,
                     range.address, result);
}

void UffdEngine::unprotect(int uffd, AddressRange range) noexcept {
    const long result =
        in_pieces(range, [&](AddressRange piece) { return uffd_unprotect(uffd, piece); });
    HIROBA_INVARIANT(result == 0, "UFFDIO_WRITEPROTECT of %lu bytes at 0x%lx gave %ld", range.bytes,
                     range.address, result);
}

void UffdEngine::allow_execution(AddressRange range) noexcept {
    const long result =
        kernel_call(SYS_mprotect, range.address, range.bytes, PROT_READ | PROT_WRITE | PROT_EXEC);
    if (result != 0) die_without_execution(range, result);
    note_executable(range);
}

// A page that is protected yet is unprotected by the kernel, or by a fault, at its first write.
void UffdEngine::leave_untracked(AddressRange range) noexcept {
    Attached& where = attached_at(range);
    const PageRun run = where.pages_of(range);
    where.untracked.add(run);
    where.open.remove(run);
    if (where.asked.remove(run)) asked_epoch_.fetch_add(1, std::memory_order_seq_cst);
}

// A page that was written since has no protection, and so counts as written. adapt() may change the
// chunk at this moment: it looks at its pages behind that, and finds this one tracked, or the chunk
// is seen changed here.
void UffdEngine::track(AddressRange range) noexcept {
    Attached& where = attached_at(range);
    const PageRun run = where.pages_of(range);
    where.untracked.remove(run);
    for (std::size_t page = run.first; page < run.end(); ++page) {
        const std::atomic<bool>& quiet =
            where.chunk_at(where.range.address + page * page_bytes).quiet;
        if (!quiet.load(std::memory_order_seq_cst) && where.tracked.contains(page))
            ask_for(where, {page, 1});
        if (!quiet.load(std::memory_order_seq_cst)) continue;
        where.asked.remove({page, 1});
        open_pages(where, {page, 1});
    }
}

// A collect would find each of the pages written, and protect it by a call of its own. Pages of a
// quiet chunk are left: nobody protects them while its registration changes.
void UffdEngine::forget_writes(AddressRange range) noexcept {
    const Attached& where = attached_at(range);
    while (range.bytes > 0) {
        const std::size_t bytes =
            std::min(range.bytes, where.chunk_end(range.address) - range.address);
        // Refused where the chunk becomes quiet at this moment: its pages count as written.
        if (!where.chunk_at(range.address).quiet.load(std::memory_order_seq_cst))
            uffd_protect(uffd_, {range.address, bytes});
        range = {range.address + bytes, range.bytes - bytes};
    }
}

// We unmapped the page since the last collect, or the kernel took it (swap), or it is mapped. Where
// the entry is gone, what is left of it says whether it was written: then it comes back as written.
void UffdEngine::continue_again(const Attached& where, AddressRange range) noexcept {
    std::array<ScanRegion, 8> written;
    for (std::uintptr_t at = range.address; at < range.end();) {
        std::uintptr_t stopped = at;
        const long count =
            scan_written(pagemap_, at, range.end(), AfterScan::leave, written, stopped);
        HIROBA_INVARIANT(count >= 0 && stopped > at, "PAGEMAP_SCAN of 0x%lx to 0x%lx gave %ld", at,
                         range.end(), count);
        for (long i = 0; i < count; ++i) {
            const ScanRegion& region = written[static_cast<std::size_t>(i)];
            if (at < region.start) continue_pages(uffd_, where, {at, region.start - at}, true);
            continue_pages(uffd_, where, {region.start, region.end - region.start}, false);
            at = region.end;
        }
        if (at < stopped) continue_pages(uffd_, where, {at, stopped - at}, true);
        at = stopped;
    }
}

bool UffdEngine::lacks_page(AddressRange range) const noexcept {
    return dsm::lacks_page(pagemap_, range.address, range.end());
}

bool UffdEngine::continue_pages(int uffd, const Attached& where, AddressRange range,
                                bool protect) noexcept {
    bool existed = false;
    Backoff backoff;
    std::uintptr_t populated_at = 0, tried_at = 0;
    std::size_t step = range.bytes;
    while (range.bytes > 0) {
        const AddressRange piece{range.address, std::min(step, range.bytes)};
        std::size_t done = 0;
        const long result = uffd_continue(uffd, piece, protect, done);
        if (result == 0) {
            done = piece.bytes;
            step = 2 * piece.bytes;
        } else if (result == -EEXIST) {
            existed = true;
            done = page_bytes;
        } else if (result == -ENOENT && piece.bytes > page_bytes) {
            step = smaller_step(piece.bytes);
        } else if (result == -EFAULT && done == 0 && !protect && tried_at != range.address) {
            // The memory has no page here yet: one call makes and maps it, and those behind it.
            tried_at = range.address;
            if (uffd_zero(uffd, piece, done) == 0) done = piece.bytes;
        } else if (result == -EFAULT && populated_at != range.address) {
            // Likewise, to be protected before it is mapped: touch the rest through the alias.
            populated_at = range.address;
            kernel_call(SYS_madvise, where.alias + (range.address - where.range.address),
                        range.bytes, madv_populate_read);
        } else if (result == -EAGAIN && (done > 0 || backoff.yields() < retries_max)) {
            if (done == 0) backoff.pause();
        } else {
            die_without_page(piece, result);
        }
        range.address += done;
        range.bytes -= done;
    }
    return existed;
}

void UffdEngine::unmap(std::span<const AddressRange> ranges) noexcept {
    std::array<AddressRange, scattered_batch> runs;
    std::size_t count = 0;
    for (const AddressRange& range : ranges) {
        note_dropped(range);
        if (count > 0 && runs[count - 1].end() == range.address) {
            runs[count - 1].bytes += range.bytes;
            continue;
        }
        if (count == runs.size()) {
            drop_runs(runs);
            count = 0;
        }
        runs[count++] = range;
    }
    drop_runs({runs.data(), count});
}

void UffdEngine::note_dropped(AddressRange range) noexcept {
    Attached& where = attached_at(range);
    const PageRun all = where.pages_of(range);
    where.kept.remove(all);
    where.open.remove(all);
    for (std::size_t page = all.first; page < all.end(); ++page) {
        if (where.chunk_at(where.range.address + page * page_bytes)
                .quiet.load(std::memory_order_seq_cst)) {
            where.tracked.remove({page, 1});
            continue;
        }
        // An entry that never existed looks like a written one; do not believe it later.
        if (!where.tracked.contains(page)) continue;
        where.dropped.add({page, 1});
        // Relaxed: a collect that misses it now sees it the next time.
        any_dropped_.store(true, std::memory_order_relaxed);
    }
}

void UffdEngine::drop_runs(std::span<const AddressRange> runs) noexcept {
    std::array<iovec, scattered_batch> vectors;
    long bytes = 0;
    bool together = pidfd_ >= 0 && runs.size() > 1;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        vectors[i] = {reinterpret_cast<void*>(runs[i].address), runs[i].bytes};
        bytes += static_cast<long>(runs[i].bytes);
        together &= runs[i].bytes < table_bytes;
    }
    if (together) page_calls.note_call();
    if (together && kernel_call(SYS_process_madvise, pidfd_, vectors.data(), runs.size(),
                                MADV_DONTNEED, 0) == bytes)
        return;
    // Refused (before Linux 6.13) or done in part: dropping what is dropped already is harmless.
    for (const AddressRange& run : runs) drop(run);
}

}  // namespace hiroba::dsm
