// SPDX-License-Identifier: BSD-3-Clause
// Role: the table behind fault_attached.hpp.
#include "dsm/memory/fault_attached.hpp"

#include <array>
#include <atomic>

namespace hiroba::dsm {
namespace {

struct Slot {
    std::atomic<std::uintptr_t> address{0};
    std::atomic<std::size_t> bytes{0};
    std::atomic<bool> taken{false};
};

constinit std::array<Slot, 4096> slots;
constinit std::atomic<std::size_t> slots_used{0};  // slots at and above were never taken

}  // namespace

void note_attached(AddressRange range) noexcept {
    for (std::size_t i = 0; i < slots.size(); ++i) {
        if (slots[i].taken.exchange(true, std::memory_order_seq_cst)) continue;
        slots[i].address.store(range.address, std::memory_order_seq_cst);
        slots[i].bytes.store(range.bytes, std::memory_order_seq_cst);
        std::size_t used = slots_used.load(std::memory_order_seq_cst);
        while (used <= i && !slots_used.compare_exchange_weak(used, i + 1)) {
        }
        return;
    }
}

void forget_attached(AddressRange range) noexcept {
    const std::size_t used = slots_used.load(std::memory_order_seq_cst);
    for (std::size_t i = 0; i < used; ++i) {
        if (slots[i].address.load() != range.address || slots[i].bytes.load() != range.bytes)
            continue;
        slots[i].bytes.store(0, std::memory_order_seq_cst);
        slots[i].taken.store(false, std::memory_order_seq_cst);
        return;
    }
}

bool is_attached(std::uintptr_t address) noexcept {
    const std::size_t used = slots_used.load(std::memory_order_seq_cst);
    for (std::size_t i = 0; i < used; ++i)
        if (address - slots[i].address.load() < slots[i].bytes.load()) return true;
    return false;
}

}  // namespace hiroba::dsm
