// SPDX-License-Identifier: BSD-3-Clause
// Role: the values of the relocatable space: how a call ended, a pointer to global memory, where an
// allocation's pages are. Included by hiroba/gas.hpp.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

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
};

/// The place of a T in global memory: 64 bits, the same on every rank, wherever the bytes move.
template <class T>
class ptr {
    static_assert(std::is_trivially_copyable_v<T> || std::is_void_v<T>);

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

}  // namespace hiroba::gas
