// SPDX-License-Identifier: BSD-3-Clause
// Role: handles of libc's objects. The program holds a record in global memory; each node works on
// a twin of libc's own, made from the record at its first use there.
// Invariant: a twin belongs to one record for ever: records have ids that never come again, so one
// that lies where another was gets a twin of its own. Threads use no record that is being freed.
// Twins of other nodes stay until another record lies there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>

#include "abi/libc/memory/malloc_place.hpp"
#include "abi/world.hpp"
#include "base/latch.hpp"

namespace hiroba::abi {

/// Twins of one kind. `Made` is what libc makes, `free_made` gives it back; neither runs under the
/// latch. Records have a field `id`. Thread: any. The table's own nodes lie in libc's heap.
template <class Record, class Made, void (*free_made)(Made&)>
class Twins {
public:
    struct Twin {
        Twin* next;
        const Record* record;
        std::uint64_t id;
        Made made;
    };

    static std::uint64_t next_id() noexcept {
        static constinit std::atomic<std::uint64_t> last{0};
        const World* const node = world();
        const std::uint64_t rank = node != nullptr ? node->job.self.value : 0;
        return rank << 48 | last.fetch_add(1, std::memory_order_relaxed);  // counts alone
    }

    /// A twin without a record; nullptr: no room.
    static Twin* allocate() noexcept {
        void* const room = libc_malloc(sizeof(Twin));
        return room == nullptr ? nullptr : new (room) Twin{};
    }
    static void release(Twin* twin) noexcept {
        if (twin == nullptr) return;
        free_made(twin->made);
        libc_free(twin);
    }

    /// nullptr: this node has none yet.
    Twin* find(const Record* record) noexcept {
        const std::uint64_t id = record->id;  // outside the latch: it may be faulted in
        const std::scoped_lock guard{latch_};
        for (Twin* each = row_of(record); each != nullptr; each = each->next)
            if (each->record == record && each->id == id) return each;
        return nullptr;
    }

    /// The twin for which `is` is true; nullptr: none.
    template <class Predicate>
    const Twin* find_any(Predicate is) noexcept {
        const std::scoped_lock guard{latch_};
        for (const Twin* each : rows_)
            for (; each != nullptr; each = each->next)
                if (is(*each)) return each;
        return nullptr;
    }

    /// Makes `twin` the record's, unless another thread was faster; what stays is returned.
    Twin* keep(Twin* twin, const Record* record) noexcept {
        twin->record = record;
        twin->id = record->id;
        Twin *faster = nullptr, *stale = nullptr;
        {
            const std::scoped_lock guard{latch_};
            stale = take_from(record, [&](const Twin& each) { return each.id != twin->id; });
            for (Twin* each = row_of(record); each != nullptr; each = each->next)
                if (each->record == record) faster = each;
            if (faster == nullptr) {
                twin->next = row_of(record);
                row_of(record) = twin;
            }
        }
        release(stale);
        if (faster == nullptr) return twin;
        release(twin);
        return faster;
    }

    /// Before the record is freed: this node's twin goes with it.
    void drop(const Record* record) noexcept {
        Twin* mine;
        {
            const std::scoped_lock guard{latch_};
            mine = take_from(record, [](const Twin&) { return true; });
        }
        release(mine);
    }

private:
    static constexpr std::size_t row_count = 256;

    Twin*& row_of(const Record* record) noexcept {
        return rows_[reinterpret_cast<std::uintptr_t>(record) / 64 % row_count];
    }

    template <class Predicate>
    Twin* take_from(const Record* record, Predicate is) noexcept {
        for (Twin** link = &row_of(record); *link != nullptr; link = &(*link)->next) {
            Twin* const each = *link;
            if (each->record != record || !is(*each)) continue;
            *link = each->next;
            return each;
        }
        return nullptr;
    }

    Twin* rows_[row_count] = {};  ///< by the record's address; under the latch
    Latch latch_;
};

}  // namespace hiroba::abi
