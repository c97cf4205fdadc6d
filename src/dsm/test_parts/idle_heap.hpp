// SPDX-License-Identifier: BSD-3-Clause
// Role: for unit tests, a heap that does nothing.
#pragma once

#include "dsm/heap/heap.hpp"
#include "dsm/memory/address_map.hpp"

namespace hiroba::dsm::test {

class IdleHeap final : public Heap {
public:
    void attach() override {}
    void* allocate(std::size_t, std::size_t, bool*) noexcept override { return nullptr; }
    void* reserve(std::size_t) noexcept override { return nullptr; }
    void commit(AddressRange) noexcept override {}
    bool is_reserved(const void*) noexcept override { return false; }
    AddressRange first_committed(AddressRange) noexcept override { return {}; }
    void deallocate(void*) noexcept override {}
    bool resize(void*, std::size_t) noexcept override { return false; }
    std::size_t usable_bytes(const void*) noexcept override { return 0; }
    bool owns(const void*) const noexcept override { return false; }
    std::size_t bytes_free() noexcept override { return 0; }
    void flush_remote_frees() noexcept override {}
    void accept_remote_frees() noexcept override {}
    bool has_freed_pages() const noexcept override { return false; }
    void return_freed_pages() noexcept override {}
    void before_fork() noexcept override {}
    void after_fork() noexcept override {}
};

}  // namespace hiroba::dsm::test
