// SPDX-License-Identifier: BSD-3-Clause
// Role: the fault engine of Linux 6.7 and later: userfaultfd in MINOR mode raises SIGBUS where a
// page is not mapped, asynchronous write protection lets the kernel itself note first writes, and
// PAGEMAP_SCAN collects and protects again in one pass. Where little is written, in chunks of what
// one page table maps, first writes are faults of the program instead and pages stay open, so that
// a collect asks the kernel nothing (docs/decisions/quiet-chunks.md; docs/layers/dsm-memory.md has
// the costs).
// Invariant: a page that is mapped and write-protected has not been written since the last collect;
// hot pages (hot_pages.hpp) are reported by each.
// A page table entry that the kernel dropped (swap, migration) counts as written, so a scan must
// never ask for present pages only; therefore it must never walk what was never mapped either.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <vector>

#include "dsm/memory/fault_engine.hpp"
#include "dsm/memory/hot_pages.hpp"
#include "dsm/memory/kernel_constants.hpp"
#include "dsm/memory/page_set.hpp"

namespace hiroba::dsm {

class UffdEngine final : public FaultEngine {
public:
    static Result<std::unique_ptr<UffdEngine>> create(std::string why);
    ~UffdEngine() override;

    const EngineFacts& facts() const noexcept override { return facts_; }
    Result<void> attach(AddressRange range, int memory_fd, std::uint64_t memory_offset,
                        std::byte* alias) override;
    void map(AddressRange range, Access access) noexcept override;
    bool lacks_page(AddressRange range) const noexcept override;
    void unmap(std::span<const AddressRange> ranges) noexcept override;
    void allow_execution(AddressRange range) noexcept override;
    void leave_untracked(AddressRange range) noexcept override;
    void track(AddressRange range) noexcept override;
    void forget_writes(AddressRange range) noexcept override;
    void keep(AddressRange range) noexcept override;
    void unchanged(AddressRange range) noexcept override;
    void watch(AddressRange range) noexcept override;
    bool seal(AddressRange range) noexcept override;
    void unseal(AddressRange range) noexcept override;
    void collect(WrittenSink& sink) noexcept override;
    void adapt() noexcept override;
    bool has_written() const noexcept override;

    /// Whether the kernel is asked nothing in the chunk that `address` lies in.
    bool is_quiet(std::uintptr_t address) noexcept;

private:
    /// What one page table maps, clipped to an attached range.
    struct Chunk {
        std::atomic<bool> quiet{false};        ///< first writes are faults; changes in adapt()
        std::atomic<std::uint32_t> faults{0};  ///< first writes to quiet pages, since it is quiet
        std::uint32_t written = 0;             ///< pages that the collect `written_at` has reported
        std::uint64_t written_at = 0;
        std::uint64_t busy_at = 0;      ///< the last collect that reported many
        std::uint32_t patience = 0;     ///< how often it was quiet in vain
        std::uint32_t faults_seen = 0;  ///< that were found to pay, since window_at
        std::uint32_t reports = 0;      ///< pages reported since window_at
        std::uint64_t window_at = 0;    ///< the collect since which faults and reports count
        std::uint64_t quiet_at = 0;     ///< the collect since which it is quiet
        std::int64_t credit = 0;        ///< tenths of us that being quiet has saved
        std::uint32_t scan_cost = 0;    ///< tenths of us a collect: calls, regions
        std::uint64_t cost_epoch = 0;   ///< spans_epoch_ of scan_cost
    };
    struct Attached {
        AddressRange range;
        std::byte* alias = nullptr;
        PageSet tracked;    ///< mapped, or dropped: the entry counts
        PageSet asked;      ///< tracked, of chunks that are not quiet, and not untracked
        PageSet dropped;    ///< unmapped and not mapped again; tracked for two collects yet
        PageSet aged;       ///< dropped before the last collect
        PageSet occupied;   ///< mapped at some time: where page table entries may exist
        PageSet untracked;  ///< whether they were written is not asked
        PageSet kept;       ///< a live stack or a system call's buffer: never protected if quiet
        PageSet open;       ///< of quiet chunks: writable, and reported by each collect
        Chunk* chunks = nullptr;  ///< in sparse memory
        std::size_t chunk_count = 0;
        Chunk& chunk_at(std::uintptr_t address) const noexcept {
            return chunks[address / chunk_bytes - range.address / chunk_bytes];
        }
        /// Up to where the chunk of `address` reaches.
        std::uintptr_t chunk_end(std::uintptr_t address) const noexcept {
            return std::min(range.end(), (address / chunk_bytes + 1) * chunk_bytes);
        }
        AddressRange chunk_range(std::uintptr_t address) const noexcept {
            const std::uintptr_t start =
                std::max(range.address, address / chunk_bytes * chunk_bytes);
            return {start, chunk_end(start) - start};
        }
        PageRun pages_of(AddressRange part) const noexcept {
            return {(part.address - range.address) / page_bytes, part.bytes / page_bytes};
        }
        AddressRange range_of(PageRun run) const noexcept {
            return {range.address + run.first * page_bytes, run.count * page_bytes};
        }
    };
    /// What one scan call walks.
    struct Span {
        std::uintptr_t start;
        std::uintptr_t end;
        bool mixed;  ///< holds untracked pages: in one range
    };
    static constexpr std::size_t attached_max = AddressMap::images_max + 16;
    static constexpr std::size_t chunk_bytes = std::size_t{2} << 20;
    static constexpr std::size_t spans_max = 65536;
    static constexpr std::size_t regions_max = 512;
    static constexpr std::size_t regions_usual = 128;  // more cost .1 us a call

    UffdEngine() = default;
    Attached& attached_at(AddressRange range) noexcept;
    void map_quiet(Attached& where, Chunk& chunk, AddressRange range, Access access) noexcept;
    void map_scanned(Attached& where, AddressRange range, Access access) noexcept;
    static void unprotect(int uffd, AddressRange range) noexcept;
    static void protect(int uffd, AddressRange range) noexcept;
    void open_pages(Attached& where, PageRun run) noexcept;
    /// Installs page table entries; true when some page had one already.
    bool continue_pages(int uffd, const Attached& where, AddressRange range, bool protect) noexcept;
    /// As above for reading, where the entries may be gone but tell of writes not yet collected.
    void continue_again(const Attached& where, AddressRange range) noexcept;
    void ask_for(Attached& where, PageRun run) noexcept;
    void note_dropped(AddressRange range) noexcept;
    void forget_dropped() noexcept;
    /// Drops the entries of at most 64 disjoint runs.
    void drop_runs(std::span<const AddressRange> runs) noexcept;
    void rebuild_spans() noexcept;
    void add_span(AddressRange run, const Attached& within, const Attached* before) noexcept;
    enum class Gap : std::uint8_t { none, plain, mixed };
    Gap gap_between(const Span& last, AddressRange run, const Attached& within,
                    const Attached* before) const noexcept;
    void note_scan_cost(AddressRange span, const Attached& within, std::uint32_t cost) noexcept;
    void collect_span(const Span& span, std::span<const std::uintptr_t> hot,
                      WrittenSink& sink) noexcept;
    void scan(const Span& span, WrittenSink& sink) noexcept;
    void scan_around(std::span<const std::uintptr_t> hot, WrittenSink& sink) noexcept;
    void scan_among(const Span& span, std::span<const std::uintptr_t> hot,
                    WrittenSink& sink) noexcept;
    void scan_mixed(const Span& span, std::span<const std::uintptr_t> hot,
                    WrittenSink& sink) noexcept;
    template <class Visit>
    void scan_in_parts(const Span& span, Visit&& visit) noexcept;
    void take_written(const Attached& where, AddressRange region,
                      std::span<const std::uintptr_t> hot, WrittenSink& sink) noexcept;
    void report(AddressRange region, WrittenSink& sink) noexcept;
    void report_open(WrittenSink& sink) noexcept;
    void note_written(const Attached& where, AddressRange region) noexcept;
    template <class Visit>
    void for_occupied_chunks(Visit&& visit) noexcept;
    static bool has_quiet(const Attached& where, AddressRange part) noexcept;
    void find_quiet_chunks() noexcept;
    std::int64_t saved(const Chunk& chunk) const noexcept;
    void begin_window(Chunk& chunk) const noexcept;
    void make_quiet(Attached& where, std::uintptr_t address) noexcept;
    void make_scanned(Attached& where, std::uintptr_t address) noexcept;
    void change_registration(AddressRange range, int from, int to) noexcept;

    EngineFacts facts_{};
    int uffd_ = -1;
    int uffd_of_faults_ = -1;  ///< what quiet chunks are registered with; -1: there are none
    int pagemap_ = -1;
    int pidfd_ = -1;                              ///< of this process, for process_madvise
    std::vector<Attached> attached_;              ///< reserved; grows under attach() only
    std::atomic<std::size_t> attached_count_{0};  ///< released after the element it publishes
    std::atomic<std::size_t> last_found_{0};      ///< by attached_at(), among hundreds of libraries
    std::vector<std::uint16_t> ascending_;        ///< indices of attached_ by address
    std::atomic<std::uint64_t> asked_epoch_{1};   ///< raised when other pages are asked
    std::uint64_t spans_epoch_ = 0;
    std::atomic<std::uint64_t> all_quiet_epoch_{0};  ///< for which there is nothing to scan
    Span* spans_ = nullptr;
    std::size_t span_count_ = 0;
    std::size_t report_at_ = 0;  ///< index in ascending_ where the next region is looked for
    HotPages hot_pages_;
    bool scan_skips_foreign_ = false;
    std::atomic<bool> any_dropped_{false};  ///< there may be dropped pages
    std::uint64_t collect_ = 0;
    std::atomic<bool> any_loud_{false};  ///< some quiet chunk is written much
    std::atomic<bool> any_open_{false};  ///< there may be open pages
    std::size_t quiet_count_ = 0;
    std::array<ScanRegion, regions_max> regions_{};
};

}  // namespace hiroba::dsm
