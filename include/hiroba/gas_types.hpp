// SPDX-License-Identifier: BSD-3-Clause
// Role: the values of the relocatable space: how a call ended, a pointer to global memory, where an
// allocation's pages are. Included by hiroba/gas.hpp.
#pragma once

#include <algorithm>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace hiroba::gas {

/// Why an access did not happen, or why it is unknown whether it did (`peer_lost`).
enum class Fault : std::uint8_t {
    none,
    null_pointer,     ///< the pointer is null
    outside,          ///< the address is none of this space
    not_allocated,    ///< never allocated, or freed
    past_end,         ///< the range leaves its allocation
    misaligned,       ///< an atomic on an address that is no multiple of its size
    not_relocatable,  ///< own() of memory allocated as fixed
    not_mine,         ///< freed by another rank than the one that allocated it
    no_room,          ///< HIROBA_GAS is used up, or the allocation has no bytes
    peer_lost,        ///< `rank` died: it had the page, its directory, or was moving it
    view_open,        ///< free() of memory on which a LocalView of this rank is open
    differs,          ///< the ranks' arguments of allocate_together() or free() differ
    wrong_length,     ///< local memory is longer or shorter than the pieces of a list or a stride
};

/// How a call ended. A value; two words.
struct [[nodiscard]] Status {
    Fault fault = Fault::none;
    /// The rank that died (peer_lost), that allocated it (not_mine), or that is not in the job
    /// (outside, with page 0). Else a number that text() knows, not for programs.
    std::uint32_t rank = 0;
    std::uint64_t page = 0;  ///< number of the page, ptr::address() / page_bytes()
    /// True: the call did what it should.
    explicit operator bool() const noexcept { return fault == Fault::none; }
    /// One line: what was wrong, rank, page, offset and sizes, what to change. The sizes are those
    /// of the last 256 faults of the process; of older ones the line says the rest.
    __attribute__((visibility("default"))) std::string text() const;
    /// The fault past_end of the elements [first, first + count) of a range that has `size`.
    __attribute__((visibility("default"))) static Status beyond(std::uint64_t page,
                                                                std::uint64_t first,
                                                                std::uint64_t count,
                                                                std::uint64_t size) noexcept;
    /// The fault wrong_length of `pieces` pieces of `length` elements each in local memory of
    /// `local`.
    __attribute__((visibility("default"))) static Status unequal(std::uint64_t page,
                                                                 std::uint64_t pieces,
                                                                 std::uint64_t length,
                                                                 std::uint64_t local) noexcept;
};

/// The place of a T in global memory: 64 bits, the same on every rank, wherever the bytes move. T
/// may be incomplete (a ptr<Node> in struct Node); allocations and accesses need a complete one
/// that is trivially copyable.
template <class T>
class ptr {
public:
    constexpr ptr() noexcept = default;
    constexpr ptr(std::nullptr_t) noexcept {}
    /// The pointer to the element at `address`, which address() of some rank gave.
    static constexpr ptr at(std::uint64_t address) noexcept {
        ptr made;
        made.address_ = address;
        return made;
    }
    constexpr std::uint64_t address() const noexcept { return address_; }
    /// The same place as one of a U. Nothing is checked.
    template <class U>
    constexpr ptr<U> as() const noexcept {
        return ptr<U>::at(address_);
    }
    /// The place of a member: `node->*&Node::next`. Of a member that is an array it is the place of
    /// the whole array, as<element>() that of the first element.
    template <class Class, class Member>
    requires(std::is_base_of_v<Class, std::remove_const_t<T>>&& std::is_object_v<Member>) auto
    operator->*(Member Class::*member) const noexcept {
        using Found = std::conditional_t<std::is_const_v<T>, const Member, Member>;
        const Member std::remove_const_t<T>::*const in_it = member;
        // What such a pointer holds, by the C++ ABI of the platform; -1: it is null.
        const auto offset = std::bit_cast<std::ptrdiff_t>(in_it);
        return ptr<Found>::at(
            address_ == 0 || offset < 0 ? 0 : address_ + static_cast<std::uint64_t>(offset));
    }
    explicit constexpr operator bool() const noexcept { return address_ != 0; }
    constexpr operator ptr<const T>() const noexcept requires(!std::is_const_v<T>) {
        return ptr<const T>::at(address_);
    }

    /// Moves by `n` elements. A distance of 2^63 bytes or more gives an address outside every
    /// space, so that an access there is refused.
    constexpr ptr& operator+=(std::int64_t n) noexcept {
        std::int64_t bytes = 0;
        const bool wraps = __builtin_mul_overflow(n, std::int64_t{sizeof(T)}, &bytes);
        address_ = wraps ? ~std::uint64_t{0} : address_ + static_cast<std::uint64_t>(bytes);
        return *this;
    }
    constexpr ptr& operator-=(std::int64_t n) noexcept {
        std::int64_t bytes = 0;
        const bool wraps = __builtin_mul_overflow(n, std::int64_t{sizeof(T)}, &bytes);
        address_ = wraps ? ~std::uint64_t{0} : address_ - static_cast<std::uint64_t>(bytes);
        return *this;
    }
    constexpr ptr& operator++() noexcept { return *this += 1; }
    constexpr ptr& operator--() noexcept { return *this -= 1; }
    friend constexpr ptr operator+(ptr p, std::int64_t n) noexcept { return p += n; }
    friend constexpr ptr operator-(ptr p, std::int64_t n) noexcept { return p -= n; }
    friend constexpr std::int64_t operator-(ptr a, ptr b) noexcept {
        return static_cast<std::int64_t>(a.address_ - b.address_) /
               static_cast<std::int64_t>(sizeof(T));
    }
    constexpr auto operator<=>(const ptr&) const noexcept = default;

private:
    std::uint64_t address_ = 0;
};
static_assert(sizeof(ptr<double>) == 8 && std::is_trivially_copyable_v<ptr<double>>);

/// What allocations and accesses need of T: its bytes are all there is of it.
template <class T>
constexpr void require_plain() noexcept {
    static_assert(std::is_trivially_copyable_v<T>,
                  "global memory holds types that are trivially copyable");
}

/// What calls take for elements in local memory: whatever a span can be made of.
template <class T>
using Elements = std::type_identity_t<std::span<std::remove_const_t<T>>>;
template <class T>
using ConstElements = std::type_identity_t<std::span<const T>>;

template <class T>
struct PointeeOf;
template <class T>
struct PointeeOf<ptr<T>> {
    using Type = T;
};
/// Places in global memory: a span, a vector, an array of ptr<T>. Whose elements they are:
/// Pointee<Places>.
template <class Places>
using Pointee = typename PointeeOf<
    std::remove_cvref_t<decltype(*std::data(std::declval<const Places&>()))>>::Type;

/// Where the pages of an allocation are at first, and whether they may move.
struct Distribution {
    enum class Kind : std::uint8_t { block, cyclic, one_rank };
    Kind kind = Kind::block;
    std::uint32_t rank = 0;         ///< of one_rank
    std::uint64_t block_bytes = 0;  ///< of cyclic: rounded up to whole pages
    bool relocatable = true;

    /// Equal shares in rank order, of whole pages.
    static Distribution block() noexcept { return {}; }
    /// Blocks of `bytes`, 0: of one page, to the ranks in turn.
    static Distribution cyclic(std::uint64_t bytes = 0) noexcept {
        return {Kind::cyclic, 0, bytes, true};
    }
    static Distribution on(std::uint32_t rank) noexcept { return {Kind::one_rank, rank, 0, true}; }
    Distribution fixed() const noexcept {
        Distribution other = *this;
        other.relocatable = false;
        return other;
    }
};

/// Elements [first, first + count) of an allocation, those that begin in pages which `rank` has at
/// first. No elements: count is 0.
struct Share {
    std::uint32_t rank = 0;
    std::uint64_t first = 0, count = 0;
};

/// The pages of one allocation, numbered from 0, and the ranks that have them at first.
struct PageShares {
    Distribution::Kind kind = Distribution::Kind::block;
    std::uint32_t rank = 0;         ///< of one_rank
    std::uint64_t block_pages = 1;  ///< of cyclic
    std::uint64_t pages = 0;
    std::uint32_t ranks = 1;

    struct Range {
        std::uint64_t first = 0, end = 0;
    };
    constexpr std::uint32_t owner(std::uint64_t page) const noexcept {
        switch (kind) {
            case Distribution::Kind::block: return static_cast<std::uint32_t>(page * ranks / pages);
            case Distribution::Kind::cyclic:
                return static_cast<std::uint32_t>(page / block_pages % ranks);
            case Distribution::Kind::one_rank: break;
        }
        return rank;
    }
    /// The pages of `of`; of cyclic its first block.
    constexpr Range of_rank(std::uint32_t of) const noexcept {
        switch (kind) {
            case Distribution::Kind::block: return {before(of), before(of + 1)};
            case Distribution::Kind::cyclic: return block(of);
            case Distribution::Kind::one_rank: break;
        }
        return of == rank ? Range{0, pages} : Range{};
    }
    /// The pages around `page` that the same rank has.
    constexpr Range around(std::uint64_t page) const noexcept {
        return kind == Distribution::Kind::cyclic ? block(page / block_pages)
                                                  : of_rank(owner(page));
    }

private:
    /// How many pages the ranks before `of` have, by block.
    constexpr std::uint64_t before(std::uint64_t of) const noexcept {
        return (of * pages + ranks - 1) / ranks;
    }
    constexpr Range block(std::uint64_t number) const noexcept {
        const std::uint64_t most = pages / block_pages + 1;  // so that the product fits
        const std::uint64_t first = std::min(pages, std::min(number, most) * block_pages);
        return {first, first + std::min(block_pages, pages - first)};
    }
};

}  // namespace hiroba::gas
