// SPDX-License-Identifier: BSD-3-Clause
// Role: which memory of this node others may name by global addresses.
// Source: ACP basic layer, sections 3.2 and 4.3: registrations are counted, keys name them.
// Invariant: what is pinned stays registered; a number that was given back is given out again only
// after all others, so that old addresses meet "not registered" rather than other memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "base/ids.hpp"
#include "base/latch.hpp"
#include "base/result.hpp"
#include "gas/address_layout.hpp"

namespace hiroba::gas {

/// Registered memory of this node.
struct Registration {
    std::byte* first = nullptr;
    std::uint64_t bytes = 0;
    std::uint32_t color = 0;
    std::uint64_t key = 0;            ///< global address of the first byte, as aligned as it is
    std::uint32_t count = 0;          ///< times registered; 0: being removed
    std::atomic<std::uint32_t> pins;  ///< accesses under way

    void unpin() noexcept { pins.fetch_sub(1, std::memory_order_release); }  // pairs with idle()
    bool idle() const noexcept { return pins.load(std::memory_order_acquire) == 0; }  // unpin()
};

/// A thread's copies of a registration that it used lately: an access by them looks at nothing that
/// may be gone.
struct RememberedRegistration {
    const void* table = nullptr;
    std::uint64_t changes = 0;  ///< RegistrationTable::changes() when it was remembered
    std::uint64_t first_place = 0;
    std::uint64_t bytes = 0;
    std::byte* first = nullptr;
    std::uint32_t color = 0;
};
/// The thread's last two; an access has two ends.
extern constinit thread_local RememberedRegistration remembered[2];

/// The registrations of one node. Any thread.
///
/// An access to memory that its thread used lately takes no latch and counts nothing: it announces
/// the memory in the thread's slot, looks whether anything was unregistered since, accesses, and
/// strikes the announcement out. unregister() counts itself first, then has all threads execute a
/// barrier, then waits for announcements (thread_slots.hpp has the argument).
class RegistrationTable {
public:
    /// @param first_segment  numbers below belong to others
    RegistrationTable(const AddressLayout& layout, NodeId self, std::uint64_t first_segment);

    /// Registers `bytes` >= 1 from `first`, of any alignment; the same memory with the same color
    /// again is counted and keeps its key. Refused: no bytes, memory that wraps around, no number
    /// left. @return the key
    Result<std::uint64_t> add(void* first, std::uint64_t bytes, std::uint32_t color);

    /// Takes one registration of `key` back. nullptr: `key` is not registered. When it was the last
    /// one the memory is out of reach at once; wait until idle(), then forget() it. Otherwise its
    /// `count` is not 0 and nothing remains to be done.
    Registration* remove(std::uint64_t key) noexcept;
    void forget(Registration* removed) noexcept;
    /// No thread accesses memory that remove() took out of reach.
    static bool is_unannounced(const Registration& removed) noexcept;

    /// Announces by `announcement` the memory at `place` if this thread remembers it. Then the
    /// caller accesses it and stores nullptr to `announcement`. nullptr: not remembered, nothing is
    /// announced.
    std::byte* announce(std::uint64_t place, std::uint32_t color, std::uint64_t bytes,
                        std::atomic<std::byte*>& announcement) const noexcept {
        for (const RememberedRegistration& known : remembered) {
            const std::uint64_t offset = place - known.first_place;
            const bool inside = known.table == this && known.color == color &&
                                offset <= known.bytes && bytes <= known.bytes - offset;
            if (!inside) continue;
            // Relaxed and a compiler's fence: the unregistering thread's barrier does the rest.
            announcement.store(known.first, std::memory_order_relaxed);
            std::atomic_signal_fence(std::memory_order_seq_cst);
            if (known.changes == changes_.load(std::memory_order_acquire))  // pairs with remove()
                return known.first + offset;
            announcement.store(nullptr, std::memory_order_relaxed);
            return nullptr;
        }
        return nullptr;
    }

    /// Pins the registration that has [place, place + bytes); nullptr when none has.
    /// @param place  AddressParts::place
    Registration* pin(std::uint64_t place, std::uint32_t color, std::uint64_t bytes,
                      std::byte** at) noexcept;
    /// The address of `byte` in the memory of `key`; 0 when it is not in there.
    std::uint64_t address_of(std::uint64_t key, const void* byte) const noexcept;
    /// Where a place is in a registration that begins before it: "60 + 8 of a registration of 64
    /// bytes". For error lines; empty if none begins there.
    std::string describe(std::uint64_t place, std::uint32_t color, std::uint64_t bytes) const;
    std::size_t size() const noexcept { return by_segment_.size(); }

private:
    /// Unregistrations and tables of this process: a table may lie where another one was.
    inline static std::atomic<std::uint64_t> changes_{0};
    void remember(const Registration& memory, std::uint64_t first_place) const noexcept;

    using Range = std::tuple<std::byte*, std::uint64_t, std::uint32_t>;
    std::uint64_t find_gap(std::uint64_t numbers) const noexcept;
    std::uint64_t gap_from(std::uint64_t start, std::uint64_t end,
                           std::uint64_t numbers) const noexcept;

    AddressLayout layout_;
    NodeId self_;
    std::uint64_t first_segment_;
    std::uint64_t next_segment_;  ///< where the search for free numbers starts
    mutable Latch latch_;
    std::map<std::uint64_t, Registration> by_segment_;  ///< by first segment number
    std::map<Range, Registration*> by_range_;           ///< those with a count
};

}  // namespace hiroba::gas
