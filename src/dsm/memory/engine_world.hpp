// SPDX-License-Identifier: BSD-3-Clause
// Role: for tests of fault engines: one attached range, real faults of the test process, and what
// collect() reports.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "base/latch.hpp"
#include "dsm/memory/fault_engine.hpp"
#include "dsm/memory/private_memory.hpp"

namespace hiroba::dsm {

using Pages = std::set<std::size_t>;

/// An engine with one attached range, and a target that maps whatever faults in it.
class World : public FaultTarget, public WrittenSink {
public:
    World(const std::string& engine_name, std::size_t pages)
        : pages_(pages), memory_(std::move(*PrivateMemory::create(pages * page_bytes))) {
        engine_ = std::move(*make_fault_engine(engine_name));
        range_ = {next_address.fetch_add(round_up(pages * page_bytes, 1u << 30) + (1u << 30)),
                  pages * page_bytes};
        const auto attached = engine_->attach(range_, memory_.fd(), 0, memory_.at(0));
        EXPECT_TRUE(attached) << attached.error().text;
        add_fault_target(*this);
    }
    ~World() override { remove_fault_target(*this); }

    bool on_fault(std::uintptr_t address, bool write) noexcept override {
        if (!range_.contains(address)) return false;
        const std::scoped_lock guard{latch};
        ++(write ? write_faults : read_faults);
        if (write && sealed.contains(address) && ++writes_refused == 2) engine_->unseal(sealed);
        engine_->map(range_of((address - range_.address) / page_bytes),
                     write ? Access::write : Access::read);
        return true;
    }
    void written(AddressRange range) noexcept override {
        if (range.address < last_reported_) ++descents_;
        EXPECT_LE(descents_, 1) << "open pages come after the others, both ascending";
        last_reported_ = range.end();
        for (std::size_t at = 0; at < range.bytes; at += page_bytes)
            EXPECT_TRUE(reported_.insert((range.address - range_.address + at) / page_bytes).second)
                << "a page twice";
    }

    Pages collect() {
        reported_.clear();
        last_reported_ = 0;
        descents_ = 0;
        engine_->collect(*this);
        ++collects_;
        for (const std::size_t page : reported_) {
            const auto [before, is_first] = reported_in_.try_emplace(page, collects_);
            if (!is_first && collects_ - std::exchange(before->second, collects_) <= 2)
                often_reported_.insert(page);
        }
        return reported_;
    }
    /// As the protocol does it, after `written` and nothing else was written: an engine may report
    /// pages that were written before two collects close to each other, and is told that they have
    /// not changed. Of pages that are not `mapped` it may say what it likes.
    Pages collect_and_compare(const Pages& written, const Pages* mapped = nullptr) {
        const Pages often_before = often_reported_;
        const Pages reported = collect();
        for (const std::size_t page : written) EXPECT_EQ(reported.count(page), 1u) << page;
        for (const std::size_t page : reported) {
            if (written.count(page) != 0 || (mapped != nullptr && mapped->count(page) == 0))
                continue;
            ++vain;
            EXPECT_EQ(often_before.count(page), 1u) << page << " was not written";
            engine_->unchanged(range_of(page));
        }
        return reported;
    }
    AddressRange range_of(std::size_t first, std::size_t count = 1) const {
        return {range_.address + first * page_bytes, count * page_bytes};
    }
    volatile char& byte(std::size_t page, std::size_t offset = 0) {
        return *reinterpret_cast<volatile char*>(range_.address + page * page_bytes + offset);
    }
    void read(std::size_t page) { [[maybe_unused]] const char value = byte(page); }
    char alias(std::size_t page, std::size_t offset = 0) const {
        return static_cast<char>(*memory_.at(page * page_bytes + offset));
    }
    void fill(std::size_t page, char value) {
        std::memset(memory_.at(page * page_bytes), value, page_bytes);
    }
    void unmap(std::size_t first, std::size_t count = 1) {
        const AddressRange range = range_of(first, count);
        engine_->unmap({&range, 1});
    }
    void map(std::size_t first, std::size_t count, Access access) {
        engine_->map(range_of(first, count), access);
    }
    FaultEngine& engine() { return *engine_; }
    std::size_t pages() const { return pages_; }
    int faults() const { return read_faults + write_faults; }

    std::atomic<int> read_faults{0};
    std::atomic<int> write_faults{0};
    AddressRange sealed;     ///< unsealed at the second write that is refused there
    int writes_refused = 0;  ///< in `sealed`
    int vain = 0;            ///< pages that collect_and_compare() found unchanged
    Latch latch;             ///< faults wait for it

private:
    static inline std::atomic<std::uintptr_t> next_address{0x2000'0000'0000};
    std::size_t pages_;
    PrivateMemory memory_;
    std::unique_ptr<FaultEngine> engine_;
    AddressRange range_;
    Pages reported_;
    std::uintptr_t last_reported_ = 0;
    int descents_ = 0;
    std::uint32_t collects_ = 0;
    std::map<std::size_t, std::uint32_t> reported_in_;  ///< the last collect, by page
    Pages often_reported_;                              ///< by two collects close to each other
};

}  // namespace hiroba::dsm
