// SPDX-License-Identifier: BSD-3-Clause
#include "acp/data/buckets.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "acp/refusal.hpp"

namespace hiroba::acp::data {
namespace {

constexpr std::uint64_t previous_at = 8;
constexpr std::uint64_t count_at = 16;  ///< in an element of a multiset
constexpr std::uint64_t slot_bytes = 32;
constexpr std::uint64_t slot_words = 4;
/// A map's element counts the word of the key's size among its bytes.
constexpr std::uint64_t key_size_bytes = 8;
constexpr std::uint64_t slots_max = std::uint64_t{1} << 31;

/// FNV-1a of 64 bits, then mixed so that the low bits depend on all.
std::uint64_t hash_of(std::span<const std::byte> key) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const std::byte one : key)
        hash = (hash ^ static_cast<std::uint64_t>(one)) * 0x100000001b3u;
    hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

}  // namespace

// --- the structure -------------------------------------------------------------------------------

Buckets::Handle Buckets::create(Call& call, std::span<const int> ranks, std::int64_t slots,
                                std::int64_t rank) {
    if (ranks.empty() || slots < 1) {
        call.fail(std::to_string(ranks.size()) + " ranks with " + std::to_string(slots) +
                  " slots each: there must be one of both");
        return {};
    }
    for (auto one = ranks.begin(); one != ranks.end(); ++one) {
        if (std::find(ranks.begin(), one, *one) == one) continue;
        call.fail("rank " + std::to_string(*one) + " is there twice among the ranks for slots");
        return {};
    }
    const Handle handle{call.allocate(8 * ranks.size(), rank), ranks.size(),
                        static_cast<std::uint64_t>(slots)};
    const std::uint64_t zeros[64 * slot_words] = {};
    for (std::uint64_t index = 0; index < ranks.size() && call.ok(); ++index) {
        const std::uint64_t table = call.allocate(slot_bytes * handle.slots, ranks[index]);
        for (std::uint64_t done = 0; done < handle.slots && call.ok(); done += 64) {
            const std::uint64_t some = std::min<std::uint64_t>(handle.slots - done, 64);
            call.write_bytes(table + done * slot_bytes, zeros, some * slot_bytes);
        }
        call.write(handle.control + 8 * index, table);
    }
    return call.ok() ? handle : Handle{};
}

Buckets::Buckets(Call& call, Kind kind, Handle handle) : call_(call), kind_(kind), handle_(handle) {
    const bool is_one = handle.control != 0 && handle.ranks >= 1 && handle.slots >= 1 &&
                        handle.slots < slots_max &&
                        handle.ranks <= static_cast<std::uint64_t>(call.ranks());
    if (is_one) {
        tables_.resize(handle.ranks);
        return;
    }
    call.fail("no structure: address " + hexadecimal(handle.control) + ", " +
              std::to_string(handle.ranks) + " ranks with " + std::to_string(handle.slots) +
              " slots");
}

std::uint64_t Buckets::table(std::uint64_t rank) {
    std::uint64_t& known = tables_[rank];
    if (known == 0) known = call_.read<std::uint64_t>(handle_.control + 8 * rank);
    if (known == 0) call_.fail("at global address " + hexadecimal(handle_.control) + " is none");
    return known;
}

template <class Work>
void Buckets::for_each_slot(bool local, Work&& work) {
    for (std::uint64_t rank = 0; rank < handle_.ranks && call_.ok(); ++rank) {
        if (local && !is_mine(rank)) continue;
        for (std::uint64_t slot = 0; slot < handle_.slots && call_.ok(); ++slot)
            work(table(rank) + slot * slot_bytes);
    }
}

void Buckets::destroy() {
    clear(false);
    for (std::uint64_t rank = 0; rank < handle_.ranks && call_.ok(); ++rank)
        call_.release(table(rank));
    call_.release(handle_.control);
}

std::uint64_t Buckets::size(bool local) {
    std::uint64_t keys = 0;
    for_each_slot(local, [&](std::uint64_t slot) { keys += read_ends(slot).count; });
    return call_.ok() ? keys : 0;
}

/// Unlinks all elements of a slot, then releases them.
void Buckets::empty_slot(std::uint64_t slot) {
    Found found;
    if (!call_.lock(slot, &found.ends, sizeof found.ends)) return;
    found.address = slot;
    std::uint64_t one = found.ends.first;
    found.ends = {};
    write_ends(found);
    unlock(found);
    while (one != 0 && call_.ok()) {
        const auto following = call_.read<std::uint64_t>(one);
        call_.release(one);
        one = following;
    }
}

void Buckets::clear(bool local) {
    for_each_slot(local, [&](std::uint64_t slot) { empty_slot(slot); });
}

// --- places --------------------------------------------------------------------------------------

Buckets::Place Buckets::first_from(Place from, std::uint64_t ranks_end) {
    for (; from.rank < ranks_end && call_.ok(); from = {from.rank + 1, 0, 0}) {
        for (; from.slot < handle_.slots && call_.ok(); ++from.slot) {
            const Ends ends = read_ends(table(from.rank) + from.slot * slot_bytes);
            if (ends.first != 0) return {from.rank, from.slot, ends.first};
        }
    }
    return end();
}

Buckets::Place Buckets::begin(bool local) {
    if (!local) return first_from({}, handle_.ranks);
    for (std::uint64_t rank = 0; rank < handle_.ranks && call_.ok(); ++rank) {
        if (is_mine(rank)) return first_from({rank, 0, 0}, rank + 1);
    }
    return end();
}

Buckets::Place Buckets::local_end() {
    const Place first = begin(true);
    return first.element == 0 ? end() : first_from({first.rank + 1, 0, 0}, handle_.ranks);
}

Buckets::Place Buckets::next(Place place) {
    if (place.element == 0 || place.rank >= handle_.ranks || place.slot >= handle_.slots)
        return end();
    const auto following = call_.read<std::uint64_t>(place.element);
    if (following != 0) return {place.rank, place.slot, following};
    return first_from({place.rank, place.slot + 1, 0}, handle_.ranks);
}

Buckets::Seen Buckets::see(std::uint64_t element) {
    auto seen = call_.read<Seen>(element);
    if (kind_ == Kind::set) {
        // The key begins where the others have its size.
        std::memmove(seen.more + 8, seen.more, sizeof seen.more - 8);
        std::memcpy(seen.more, &seen.words.key_bytes, 8);
        seen.words.key_bytes = seen.words.word;
    }
    return seen;
}

bool Buckets::is_key(std::uint64_t element, const Seen& seen, const KeyBytes& key) {
    if (seen.words.key_bytes != key.size()) return false;
    if (key.size() <= sizeof seen.more)
        return call_.ok() && std::memcmp(seen.more, key.data(), key.size()) == 0;
    return call_.are_equal(element + head_bytes(), key.data(), key.size());
}

Buckets::Content Buckets::content_of(std::uint64_t element, const Element& words) const noexcept {
    Content content;
    content.key = {element + head_bytes(), words.key_bytes};
    if (kind_ == Kind::multiset) content.count = words.word;
    if (kind_ == Kind::map) {
        content.value = {content.key.address + words.key_bytes,
                         words.word - key_size_bytes - words.key_bytes};
    }
    return content;
}

Buckets::Content Buckets::content(Place place) {
    if (place.element == 0) return {};
    const Element words = read_element(place.element);
    return call_.ok() ? content_of(place.element, words) : Content{};
}

// --- one key -------------------------------------------------------------------------------------

Buckets::KeyBytes Buckets::read_key(Extent key) {
    KeyBytes bytes;
    if (key.bytes == 0) call_.fail("a key of no bytes");
    if (!call_.ok()) return bytes;
    bytes.resize(key.bytes);
    call_.read_bytes(key.address, bytes.data(), key.bytes);
    return bytes;
}

Buckets::Found Buckets::lock_and_find(const KeyBytes& key) {
    Found found;
    if (!call_.ok()) return found;
    const std::uint64_t hash = hash_of(key);
    found.place.rank = hash % handle_.ranks;
    found.place.slot = hash / handle_.ranks % handle_.slots;
    const std::uint64_t address = table(found.place.rank) + found.place.slot * slot_bytes;
    if (!call_.lock(address, &found.ends, sizeof found.ends)) return found;
    found.address = address;
    for (std::uint64_t one = found.ends.first; one != 0 && call_.ok(); one = found.element.next) {
        const Seen seen = see(one);
        found.element = seen.words;
        if (!is_key(one, seen, key)) continue;
        found.place.element = one;
        return found;
    }
    return found;
}

void Buckets::unlock(const Found& found) {
    if (found.address != 0) call_.unlock(found.address);
}

void Buckets::put(Found& found, const KeyBytes& key, const Content& content) {
    const std::uint64_t value = kind_ == Kind::map ? content.value.bytes : 0;
    const std::uint64_t bytes = std::max(head_bytes() + key.size() + value, sizeof(Seen));
    const std::uint64_t element = call_.allocate(bytes, call_.rank_of(found.address));
    if (!call_.ok()) return;
    Ends& ends = found.ends;
    Element words{0, ends.last, key.size(), key.size()};
    if (kind_ == Kind::multiset) words.word = content.count;
    if (kind_ == Kind::map) words.word = key_size_bytes + key.size() + value;
    call_.write_bytes(element, &words, head_bytes());
    call_.write_bytes(element + head_bytes(), key.data(), key.size());
    call_.copy(element + head_bytes() + key.size(), content.value.address, value);
    if (ends.last != 0) call_.write(ends.last, element);
    if (ends.first == 0) ends.first = element;
    ends.last = element;
    ++ends.count;
    write_ends(found);
}

/// Unlinks the key's element; the caller releases it when the lock is given back.
void Buckets::take_out(Found& found) {
    const Element& gone = found.element;
    Ends& ends = found.ends;
    if (gone.previous != 0) call_.write(gone.previous, gone.next);
    if (gone.next != 0) call_.write(gone.next + previous_at, gone.previous);
    if (gone.previous == 0) ends.first = gone.next;
    if (gone.next == 0) ends.last = gone.previous;
    --ends.count;
    write_ends(found);
}

Buckets::Place Buckets::find(Extent key) {
    const Found found = lock_and_find(read_key(key));
    unlock(found);
    return found.place.element == 0 || !call_.ok() ? end() : found.place;
}

bool Buckets::insert(const Content& content) { return insert_key(read_key(content.key), content); }

bool Buckets::insert_key(const KeyBytes& key, const Content& content) {
    Found found = lock_and_find(key);
    const bool is_there = found.place.element != 0;
    if (!is_there) {
        put(found, key, content);
    } else if (kind_ == Kind::multiset) {
        call_.write(found.place.element + count_at, found.element.word + content.count);
    }
    unlock(found);
    return call_.ok() && (!is_there || kind_ != Kind::map);
}

void Buckets::remove(Extent key, std::uint64_t count) {
    Found found = lock_and_find(read_key(key));
    const std::uint64_t element = found.place.element;
    const bool is_last = kind_ != Kind::multiset || found.element.word <= count;
    if (element != 0 && is_last) take_out(found);
    if (element != 0 && !is_last) call_.write(element + count_at, found.element.word - count);
    unlock(found);
    if (element != 0 && is_last) call_.release(element);
}

std::uint64_t Buckets::count(Extent key) {
    const Found found = lock_and_find(read_key(key));
    unlock(found);
    return found.place.element == 0 || !call_.ok() ? 0 : found.element.word;
}

std::uint64_t Buckets::retrieve(Extent key, Extent to) {
    const Found found = lock_and_find(read_key(key));
    Extent value;
    if (found.place.element != 0) value = content_of(found.place.element, found.element).value;
    call_.copy(to.address, value.address, std::min(value.bytes, to.bytes));
    unlock(found);
    return call_.ok() ? value.bytes : 0;
}

// --- all keys ------------------------------------------------------------------------------------

void Buckets::insert_all(Buckets& other, std::uint64_t slot) {
    for (std::uint64_t one = other.read_ends(slot).first; one != 0 && call_.ok();) {
        const Element words = other.read_element(one);
        insert(other.content_of(one, words));
        one = words.next;
    }
}

void Buckets::merge(Buckets& other, bool local) {
    if (other.handle_.control == handle_.control) return;
    other.for_each_slot(local, [&](std::uint64_t slot) { insert_all(other, slot); });
}

void Buckets::move(Buckets& other, bool local) {
    if (other.handle_.control == handle_.control) return;
    other.for_each_slot(local, [&](std::uint64_t slot) {
        insert_all(other, slot);
        // Without memory left keys are in both, and none is lost.
        if (call_.ok()) other.empty_slot(slot);
    });
}

void Buckets::swap(Buckets& other) {
    if (other.handle_.control == handle_.control || !call_.ok()) return;
    std::vector<int> ranks;
    for (std::uint64_t rank = 0; rank < handle_.ranks; ++rank)
        ranks.push_back(static_cast<int>(call_.rank_of(table(rank))));
    const Handle aside =
        create(call_, ranks, static_cast<std::int64_t>(handle_.slots), call_.my_rank());
    if (!call_.ok()) return;
    Buckets between(call_, kind_, aside);
    between.move(*this, false);
    move(other, false);
    other.move(between, false);
    between.destroy();
}

}  // namespace hiroba::acp::data
