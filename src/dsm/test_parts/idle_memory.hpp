// SPDX-License-Identifier: BSD-3-Clause
// Role: for unit tests, a shared memory that does nothing; a test overrides what it looks at.
#pragma once

#include "dsm/dsm.hpp"

namespace hiroba::dsm::test {

class IdleMemory : public SharedMemory {
public:
    explicit IdleMemory(const AddressMap& map) : map_(map) {}
    const AddressMap& map() const noexcept override { return map_; }
    const EngineFacts& engine() const noexcept override { return facts_; }
    Result<void> attach(AddressRange) override { return {}; }
    Result<void> adopt(AddressRange) override { return {}; }
    std::size_t news_for(NodeId, MutableBytes) noexcept override { return 0; }
    void everyone_knows_through(std::span<const NodeId>) noexcept override {}
    void prefetch(const void*, std::size_t) noexcept override {}
    void make_accessible(const void*, std::size_t, bool) noexcept override {}
    void pin(const void*, std::size_t, bool) noexcept override {}
    void unpin(const void*, std::size_t) noexcept override {}
    bool lacks_page(const void*, std::size_t) const noexcept override { return false; }
    void hold_stack(AddressRange, std::size_t) noexcept override {}
    void allow_execution(AddressRange) noexcept override {}
    void drop_stack(AddressRange, std::size_t) noexcept override {}
    bool discard(std::span<const AddressRange>) noexcept override { return true; }
    void discarded_everywhere() noexcept override {}
    bool enter_atomic(void*, std::size_t) noexcept override { return false; }
    void leave_atomic(void*, std::size_t) noexcept override {}
    void flush() noexcept override {}
    bool flush_aside() noexcept override { return false; }
    void on_race(RaceReport, void*) noexcept override {}
    MemoryCounts counts() const noexcept override { return {}; }

private:
    const AddressMap& map_;
    EngineFacts facts_{};
};

}  // namespace hiroba::dsm::test
