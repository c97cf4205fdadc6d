// SPDX-License-Identifier: BSD-3-Clause
#include "sim/dsm/software_engine.hpp"

#include <algorithm>

#include "base/fatal.hpp"

namespace hiroba::sim_test {

using dsm::AddressRange;

SoftwareEngine::SoftwareEngine(net::sim::Scheduler& scheduler, const SoftwareEngineOptions& options)
    : scheduler_(scheduler),
      options_(options),
      facts_{.name = "software",
             .why = "simulated nodes share one process",
             .block_bytes = page_bytes,
             .write_faults = options.as_mprotect,
             .kept_always_reported = options.as_mprotect} {}

Result<void> SoftwareEngine::attach(AddressRange range, int, std::uint64_t, std::byte* alias) {
    HIROBA_INVARIANT(pages_.empty(), "a second range at 0x%lx", range.address);
    range_ = range;
    alias_ = alias;
    pages_.resize(range.bytes / page_bytes);
    for (std::size_t i = 0; i < pages_.size(); ++i)
        pages_[i].quiet = (i * 0x9E37'79B9u >> 16) % 100 < options_.quiet;
    return {};
}

SoftwareEngine::Page& SoftwareEngine::page(std::uintptr_t address) noexcept {
    HIROBA_INVARIANT(range_.contains(address), "0x%lx is not attached", address);
    return pages_[(address - range_.address) / page_bytes];
}

template <class Visit>
void SoftwareEngine::for_pages(AddressRange range, Visit&& visit) noexcept {
    for (std::uintptr_t at = range.address; at < range.end(); at += page_bytes) visit(page(at));
}

void SoftwareEngine::take_time() const noexcept {
    if (options_.steps) return scheduler_.step();
    if (scheduler_.random().happens(options_.slow_calls)) scheduler_.pass();
}

void SoftwareEngine::map(AddressRange range, dsm::Access access) noexcept {
    take_time();
    for_pages(range, [&](Page& page) {
        page.readable = true;
        if (access == dsm::Access::write || page.kept) page.writable = page.written = true;
    });
    take_time();
}

void SoftwareEngine::unmap(std::span<const AddressRange> ranges) noexcept {
    take_time();
    for (const AddressRange& range : ranges) {
        for_pages(range, [&](Page& page) {
            page.readable = page.writable = page.kept = false;
            if (scheduler_.random().happens(options_.forgotten)) page.written = false;
        });
    }
    take_time();
}

void SoftwareEngine::keep(AddressRange range) noexcept {
    for_pages(range, [](Page& page) {
        page.kept = true;
        if (page.readable) page.writable = page.written = true;
    });
}

void SoftwareEngine::leave_untracked(AddressRange range) noexcept {
    take_time();
    for_pages(range, [](Page& page) {
        page.untracked = true;
        if (page.readable) page.writable = true;
    });
}

void SoftwareEngine::track(AddressRange range) noexcept {
    take_time();
    for_pages(range, [](Page& page) {
        page.untracked = false;
        page.written |= page.writable;
    });
}

void SoftwareEngine::watch(AddressRange range) noexcept {
    take_time();
    for_pages(range, [](Page& page) {
        page.kept = false;
        if (page.quiet && !page.untracked) page.writable = page.written = false;
    });
    take_time();
}

bool SoftwareEngine::seal(AddressRange range) noexcept {
    take_time();
    for_pages(range, [](Page& page) { page.sealed = true; });
    return true;
}

void SoftwareEngine::unseal(AddressRange range) noexcept {
    take_time();
    for_pages(range, [](Page& page) { page.sealed = false; });
    take_time();
}

// What was collected just now is clean: no thread has run since.
void SoftwareEngine::adapt() noexcept {
    if (options_.quiet == 0) return;
    for (Page& page : pages_) {
        if (!scheduler_.random().happens(5)) continue;
        page.quiet = !page.quiet;
        if (!page.quiet) {
            page.written |= page.writable;
        } else if (page.kept && page.readable) {
            page.writable = page.written = true;
        } else if (!page.untracked) {
            page.writable = page.written = false;
        }
    }
}

void SoftwareEngine::collect(dsm::WrittenSink& sink) noexcept {
    take_time();
    for (std::size_t i = 0; i < pages_.size(); ++i) {
        Page& page = pages_[i];
        // The scan may walk over it: then it is protected again, and reported.
        if (page.untracked &&
            (options_.as_mprotect || page.quiet || scheduler_.random().happens(50)))
            continue;
        if (page.quiet && page.writable) {
            page.written = true;
            sink.written({range_.address + i * page_bytes, page_bytes});
            continue;
        }
        const bool always = always_reports(page);
        const bool stray = !page.readable && scheduler_.random().happens(options_.stray_reports);
        const bool reported = page.written || always || stray;
        page.written = false;
        // Where first writes fault, kept pages stay writable: they are reported always.
        if (!always) page.writable = false;
        if (reported) sink.written({range_.address + i * page_bytes, page_bytes});
        if (page.readable) take_time();  // others write on: it is not one moment
    }
    take_time();
}

bool SoftwareEngine::has_written() const noexcept {
    take_time();
    return std::ranges::any_of(pages_, [&](const Page& page) {
        return (page.written && !page.untracked) || always_reports(page);
    });
}

/// Asynchronous write protection: the machine notes a first write and lets it happen. First writes
/// to quiet pages are faults.
void SoftwareEngine::note_write(Page& page) noexcept {
    if (page.sealed) return;
    if (page.readable && !options_.as_mprotect && !page.quiet) page.writable = true;
    if (page.writable) page.written = true;
}

std::byte* SoftwareEngine::touch(std::uintptr_t address, bool write) noexcept {
    Page& page = this->page(address);
    const bool evicted = scheduler_.random().happens(options_.evict);
    if (evicted && page.holds == 0) page.readable = page.writable = false;
    for (;;) {
        if (write) note_write(page);
        if (write ? page.writable && !page.sealed : page.readable)
            return alias_ + (address - range_.address);
        const bool resolved = target_ != nullptr && target_->on_fault(address, write);
        HIROBA_INVARIANT(resolved, "nobody resolves the fault at 0x%lx", address);
    }
}

std::byte* SoftwareEngine::kernel_touch(std::uintptr_t address, bool write) noexcept {
    Page& page = this->page(address);
    if (write) note_write(page);
    const bool allowed = write ? page.writable && !page.sealed : page.readable;
    return allowed ? alias_ + (address - range_.address) : nullptr;
}

}  // namespace hiroba::sim_test
