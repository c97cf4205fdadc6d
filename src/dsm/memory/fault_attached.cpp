// SPDX-License-Identifier: BSD-3-Clause
// Role: the tables behind fault_attached.hpp.
#include "dsm/memory/fault_attached.hpp"

#include <array>
#include <atomic>
#include <cstring>

#include "base/fatal.hpp"

namespace hiroba::dsm {
namespace {

/// Ranges that a signal handler may look up at any time.
class RangeTable {
public:
    void add(AddressRange range) noexcept {
        for (std::size_t i = 0; i < slots_.size(); ++i) {
            if (slots_[i].taken.exchange(true, std::memory_order_seq_cst)) continue;
            slots_[i].address.store(range.address, std::memory_order_seq_cst);
            slots_[i].bytes.store(range.bytes, std::memory_order_seq_cst);
            std::size_t used = used_.load(std::memory_order_seq_cst);
            while (used <= i && !used_.compare_exchange_weak(used, i + 1)) {
            }
            return;
        }
    }
    /// Removes what lies in `range`; the first one alone, or all.
    void remove(AddressRange range, bool all) noexcept {
        const std::size_t used = used_.load(std::memory_order_seq_cst);
        for (std::size_t i = 0; i < used; ++i) {
            const AddressRange each{slots_[i].address.load(), slots_[i].bytes.load()};
            if (each.bytes == 0 || each.address < range.address || each.end() > range.end())
                continue;
            slots_[i].bytes.store(0, std::memory_order_seq_cst);
            slots_[i].taken.store(false, std::memory_order_seq_cst);
            if (!all) return;
        }
    }
    bool contains(std::uintptr_t address) const noexcept {
        const std::size_t used = used_.load(std::memory_order_seq_cst);
        for (std::size_t i = 0; i < used; ++i)
            if (address - slots_[i].address.load() < slots_[i].bytes.load()) return true;
        return false;
    }

private:
    struct Slot {
        std::atomic<std::uintptr_t> address{0};
        std::atomic<std::size_t> bytes{0};
        std::atomic<bool> taken{false};
    };
    std::array<Slot, 4096> slots_{};
    std::atomic<std::size_t> used_{0};  // slots at and above were never taken
};

constinit RangeTable attached;
constinit RangeTable executable;
constinit std::atomic<std::uintptr_t> touched_guard{0};

}  // namespace

void note_attached(AddressRange range) noexcept { attached.add(range); }

void forget_attached(AddressRange range) noexcept {
    attached.remove(range, false);
    if (!is_attached(range.address)) executable.remove(range, true);
}

bool is_attached(std::uintptr_t address) noexcept { return attached.contains(address); }

void note_executable(AddressRange range) noexcept {
    // The same memory becomes a stack again and again.
    if (is_executable(range.address) && is_executable(range.end() - 1)) return;
    executable.add(range);
}

bool is_executable(std::uintptr_t address) noexcept { return executable.contains(address); }

void note_guard(std::uintptr_t address) noexcept { touched_guard.store(address); }

bool is_touched_guard(std::uintptr_t address) noexcept {
    return address != 0 && touched_guard.load() == address;
}

void die_without_execution(AddressRange range, long result) noexcept {
    die(exit_environment,
        "the program has code on its stack, and %lu bytes of shared memory at 0x%lx cannot be made "
        "executable: %s. Allow it (SELinux: execmem), or build the program without nested "
        "functions whose address is taken",
        static_cast<unsigned long>(range.bytes), static_cast<unsigned long>(range.address),
        std::strerror(static_cast<int>(-result)));
}

}  // namespace hiroba::dsm
