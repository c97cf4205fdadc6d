// SPDX-License-Identifier: BSD-3-Clause
// Role: the fault engine that any kernel can run: protection of mappings, and SIGSEGV for misses
// and first writes alike.
// Invariant: under the latch, `access` tells each page's protection; a page written since the last
// collect is in `written`, whatever its protection is now.
// When the kernel's limit on mappings (vm.max_map_count) is met, every attached range becomes
// inaccessible again except what is kept: few mappings, and the program faults its way back.
#pragma once

#include <vector>

#include "base/latch.hpp"
#include "dsm/memory/fault_engine.hpp"
#include "dsm/memory/page_set.hpp"

namespace hiroba::dsm {

class MprotectEngine final : public FaultEngine {
public:
    static Result<std::unique_ptr<MprotectEngine>> create(std::string why);
    ~MprotectEngine() override;

    const EngineFacts& facts() const noexcept override { return facts_; }
    Result<void> attach(AddressRange range, int memory_fd, std::uint64_t memory_offset,
                        std::byte* alias) override;
    void map(AddressRange range, Access access) noexcept override;
    void unmap(std::span<const AddressRange> ranges) noexcept override;
    void keep(AddressRange range) noexcept override;
    void watch(AddressRange range) noexcept override;
    void allow_execution(AddressRange range) noexcept override;
    void leave_untracked(AddressRange range) noexcept override;
    void track(AddressRange range) noexcept override;
    void collect(WrittenSink& sink) noexcept override;
    bool has_written() const noexcept override {
        return has_written_.load(std::memory_order_seq_cst);
    }

    /// How often the limit on mappings was met.
    std::uint64_t retreats() const noexcept { return retreats_; }

private:
    enum class PageAccess : std::uint8_t { none, read, write };
    struct Attached {
        AddressRange range;
        PageAccess* access = nullptr;  ///< one for each page, in sparse memory
        PageSet written;               ///< made writable since the last collect, or kept
        PageSet kept;
        PageSet executable;
        PageSet untracked;  ///< stay writable, although no collect reports that they were written
        PageRun pages_of(AddressRange part) const noexcept {
            return {(part.address - range.address) / page_bytes, part.bytes / page_bytes};
        }
        AddressRange range_of(PageRun run) const noexcept {
            return {range.address + run.first * page_bytes, run.count * page_bytes};
        }
    };
    static constexpr std::size_t attached_max = AddressMap::images_max + 16;

    MprotectEngine() = default;
    Attached& attached_at(AddressRange range) noexcept;
    void raise(Attached& where, PageRun run, PageAccess wanted) noexcept;
    template <class IsOne>
    void open_where(Attached& where, PageRun run, IsOne&& is_one) noexcept;
    void close_range(AddressRange range) noexcept;
    void add_written(Attached& where, PageRun run) noexcept;
    void protect_again(Attached& where, PageRun run) noexcept;
    /// False when the kernel's mappings have run out and retreat() has been done instead.
    bool protect(Attached& where, PageRun run, PageAccess wanted) noexcept;
    /// Protects pages that are all executable or all not.
    bool protect_equal(Attached& where, PageRun run, PageAccess wanted, int protection) noexcept;
    void retreat() noexcept;
    bool close_all_but_kept() noexcept;
    static void forget_access(PageAccess* first, std::size_t count) noexcept;

    EngineFacts facts_{};
    Latch latch_;  ///< guards everything below; never held while a sink is called
    std::vector<Attached> attached_;        ///< reserved: attach() allocates nothing here
    std::vector<std::uint16_t> ascending_;  ///< indices of attached_ by address
    std::uint64_t retreats_ = 0;
    bool any_executable_ = false;
    std::atomic<bool> has_written_{false};  ///< set after a page is added to `written`
};

}  // namespace hiroba::dsm
