// SPDX-License-Identifier: BSD-3-Clause
// Role: the set, the multiset and the map of the middle layer: keys of any bytes in slots that are
// spread over ranks.
// Invariant: a key is at most once in its structure, in the slot that its bytes choose, and its
// element lies on the rank of that slot. A slot is read and changed with its lock held, so calls
// for one key may be made on all ranks at the same time. A call that holds a lock waits for no
// other lock. Source: the public interface of ACP 3; its programs look at directory, slots and
// elements.
//
//   control: address of a table for each rank     table: a slot for each number, 32 bytes
//   slot: lock, first, last, count                element: next, previous, ..., key, value
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "acp/data/call.hpp"
#include "acp/data/extent.hpp"

namespace hiroba::acp::data {

/// One set, multiset or map, for the time of one call.
class Buckets {
public:
    enum class Kind : std::uint8_t { set, multiset, map };
    /// What a program holds of one.
    struct Handle {
        std::uint64_t control = 0, ranks = 0, slots = 0;
    };
    /// A place: an element of a slot; the end is rank `Handle::ranks`, slot 0, element 0.
    struct Place {
        std::uint64_t rank = 0, slot = 0, element = 0;
    };
    /// What an element has. A count is of multisets, a value of maps.
    struct Content {
        Extent key, value;
        std::uint64_t count = 1;
    };

    /// @param ranks  where the slots lie, each at most once  @param slots  of each, at least 1
    /// @param rank  where the directory lies
    static Handle create(Call& call, std::span<const int> ranks, std::int64_t slots,
                         std::int64_t rank);

    /// Accesses nothing; the call fails for what can be no handle.
    Buckets(Call& call, Kind kind, Handle handle);

    void destroy();
    /// Erases all keys; those in the memory of this rank alone, if `local`.
    void clear(bool local);
    std::uint64_t size(bool local);
    Place begin(bool local);
    Place end() const noexcept { return {handle_.ranks, 0, 0}; }
    /// The first place behind this rank's keys.
    Place local_end();
    Place next(Place place);
    Content content(Place place);

    /// The key's place, or the end.
    Place find(Extent key);
    /// Puts the key, if it is not there; of a multiset, adds to its count. @return whether it was
    /// put or counted: false if a map has it, which keeps its value, or where the call failed
    bool insert(const Content& content);
    /// Takes `count` away from the key's count; with the last of it, the key goes.
    void remove(Extent key, std::uint64_t count);
    /// A multiset's count of the key; 0 if it is not there.
    std::uint64_t count(Extent key);
    /// Copies the value of the key to `to`, as much as fits. @return its bytes; 0 if it is not
    /// there
    std::uint64_t retrieve(Extent key, Extent to);

    /// Inserts the keys of `other`, or those in this rank's memory.
    void merge(Buckets& other, bool local);
    /// As merge(), and takes them out of `other`.
    void move(Buckets& other, bool local);
    /// Exchanges all keys; both keep their shapes.
    void swap(Buckets& other);

private:
    using KeyBytes = std::vector<std::byte>;
    /// A slot's words behind its lock.
    struct Ends {
        std::uint64_t first = 0, last = 0, count = 0;
    };
    struct Element {
        std::uint64_t next = 0, previous = 0, word = 0, key_bytes = 0;
    };
    /// As much of an element as each has room for: its words and the first bytes of its key, which
    /// begins where its head ends.
    struct Seen {
        Element words;
        std::byte more[32] = {};
    };
    /// A slot whose lock this call holds, and the key's element in it.
    struct Found {
        std::uint64_t address = 0;  ///< of the slot; 0: it is not held
        Ends ends;
        Place place;  ///< element 0: the key is not there
        Element element;
    };

    static constexpr std::uint64_t ends_at = 8;

    std::uint64_t head_bytes() const noexcept { return kind_ == Kind::set ? 24 : 32; }
    std::uint64_t table(std::uint64_t rank);
    bool is_mine(std::uint64_t rank) { return call_.rank_of(table(rank)) == call_.my_rank(); }
    Seen see(std::uint64_t element);
    Element read_element(std::uint64_t element) { return see(element).words; }
    bool is_key(std::uint64_t element, const Seen& seen, const KeyBytes& key);
    Content content_of(std::uint64_t element, const Element& words) const noexcept;
    KeyBytes read_key(Extent key);
    /// Locks the slot of the key and looks for it. Give it back by unlock().
    Found lock_and_find(const KeyBytes& key);
    void unlock(const Found& found);
    void put(Found& found, const KeyBytes& key, const Content& content);
    void take_out(Found& found);
    bool insert_key(const KeyBytes& key, const Content& content);
    /// The first element in slots from `from` on, of ranks before `ranks_end`; or the end.
    Place first_from(Place from, std::uint64_t ranks_end);
    Ends read_ends(std::uint64_t slot) { return call_.read<Ends>(slot + ends_at); }
    void write_ends(const Found& found) { call_.write(found.address + ends_at, found.ends); }
    void empty_slot(std::uint64_t slot);
    void insert_all(Buckets& other, std::uint64_t slot);
    template <class Work>
    void for_each_slot(bool local, Work&& work);

    Call& call_;
    Kind kind_;
    Handle handle_;
    std::vector<std::uint64_t> tables_;  ///< 0: not read yet
};

}  // namespace hiroba::acp::data
