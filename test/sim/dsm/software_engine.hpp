// SPDX-License-Identifier: BSD-3-Clause
// Role: a fault engine whose pages are looked up by calls instead of the machine's page tables, so
// that many nodes of one process have the same addresses. Reads and writes of the simulated program
// go through touch(); what the machine would notice is noticed there, and faults go the way they go
// in a real node.
// Invariant: keeps FaultEngine's promises and uses every freedom they leave: pages fault although
// they are mapped, unmapped pages are reported, calls take time in which others run.
#pragma once

#include <string>
#include <vector>

#include "dsm/memory/fault_engine.hpp"
#include "net/provider/sim/scheduler.hpp"

namespace hiroba::sim_test {

struct SoftwareEngineOptions {
    bool as_mprotect = false;         ///< first writes fault; else as uffd, which notes them
    std::uint32_t evict = 0;          ///< percent of accesses that find their page dropped
    std::uint32_t slow_calls = 0;     ///< percent of calls in which others get a turn
    std::uint32_t stray_reports = 0;  ///< percent of pages reported that are not mapped
    std::uint32_t quiet = 0;       ///< percent of pages that stay open when written, until watch()
    std::uint32_t forgotten = 50;  ///< percent of pages whose write unmap() forgets
    bool steps = false;            ///< each call is a step of its own (Scheduler::step)
};

/// The engine of one node. Thread: those of the scheduler.
class SoftwareEngine final : public dsm::FaultEngine {
public:
    SoftwareEngine(net::sim::Scheduler& scheduler, const SoftwareEngineOptions& options);

    const dsm::EngineFacts& facts() const noexcept override { return facts_; }
    Result<void> attach(dsm::AddressRange range, int memory_fd, std::uint64_t memory_offset,
                        std::byte* alias) override;
    void map(dsm::AddressRange range, dsm::Access access) noexcept override;
    void unmap(std::span<const dsm::AddressRange> ranges) noexcept override;
    void keep(dsm::AddressRange range) noexcept override;
    void leave_untracked(dsm::AddressRange range) noexcept override;
    void track(dsm::AddressRange range) noexcept override;
    void watch(dsm::AddressRange range) noexcept override;
    bool seal(dsm::AddressRange range) noexcept override;
    void unseal(dsm::AddressRange range) noexcept override;
    void collect(dsm::WrittenSink& sink) noexcept override;
    void adapt() noexcept override;
    bool has_written() const noexcept override;
    void begin_faults(dsm::FaultTarget& target) noexcept override { target_ = &target; }
    void end_faults(dsm::FaultTarget&) noexcept override { target_ = nullptr; }

    /// Where the program's bytes at `address` are, for one access right after the call; faults
    /// until the page allows it. One page.
    std::byte* touch(std::uintptr_t address, bool write) noexcept;
    /// As touch() for the kernel, which takes no fault: nullptr where it would say EFAULT.
    std::byte* kernel_touch(std::uintptr_t address, bool write) noexcept;

    bool is_readable(std::uintptr_t address) noexcept { return page(address).readable; }
    /// No write since the last collect() that this engine would have noticed.
    bool is_clean(std::uintptr_t address) noexcept { return !page(address).written; }
    /// The books of one page, for explorers that tell states apart.
    std::uint32_t page_state(std::uintptr_t address) noexcept {
        const Page& p = page(address);
        return static_cast<std::uint32_t>(p.readable) | p.writable << 1 | p.written << 2 |
               p.kept << 3 | p.untracked << 4 | p.quiet << 5 | p.sealed << 6;
    }
    /// The kernel holds on to the page of `address` for a call, or lets go: it drops no mapping of
    /// it meanwhile.
    void hold(std::uintptr_t address, bool on) noexcept { page(address).holds += on ? 1 : -1; }

private:
    struct Page {
        std::int32_t holds = 0;
        bool readable = false, writable = false, written = false, kept = false;
        bool untracked = false, quiet = false, sealed = false;
    };
    Page& page(std::uintptr_t address) noexcept;
    bool always_reports(const Page& page) const noexcept {
        return facts_.kept_always_reported && page.kept && page.readable;
    }
    template <class Visit>
    void for_pages(dsm::AddressRange range, Visit&& visit) noexcept;
    void note_write(Page& page) noexcept;
    void take_time() const noexcept;

    net::sim::Scheduler& scheduler_;
    SoftwareEngineOptions options_;
    dsm::EngineFacts facts_;
    dsm::FaultTarget* target_ = nullptr;
    dsm::AddressRange range_;
    std::byte* alias_ = nullptr;
    std::vector<Page> pages_;
};

}  // namespace hiroba::sim_test
