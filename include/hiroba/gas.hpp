// SPDX-License-Identifier: BSD-3-Clause
// Role: the C++ face of the relocatable global address space: memory of the whole job that any rank
// reads and writes by calls, and whose pages move to the rank that works on them.
// Source: Endo & Taura, MGAS-2 (relocatable GAS with RDMA), sections 3.1 and 3.2.
//
// A program that uses it is started with `hiroba run --spmd -n N ./program`: every rank enters
// main. Link with hiroba::gas. Examples: examples/gas_particles.cpp, examples/gas_table.cpp;
// contracts and pitfalls: docs/layers/relocatable.md. A data cache on top: hiroba/gas_view.hpp.
// C++20.
#pragma once

#if __cplusplus < 202002L
#error "hiroba needs C++20: compile with -std=c++20 (pkg-config and find_package say so)"
#endif

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "hiroba/gas_cache.hpp"

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
    no_room,          ///< HIROBA_GAS is used up
    peer_lost,        ///< `rank` died: it had the page, its directory, or was moving it
};

/// How a call ended. A value; two words.
struct [[nodiscard]] Status {
    Fault fault = Fault::none;
    std::uint32_t rank = 0;  ///< of peer_lost: the one that died; of not_mine: the allocating one
    std::uint64_t page = 0;  ///< number of the page, ptr::address() / page_bytes()
    explicit operator bool() const noexcept { return fault == Fault::none; }
    /// One line: what was wrong, rank and page, what to change.
    __attribute__((visibility("default"))) std::string text() const;
};

/// The place of a T in global memory: 64 bits, the same on every rank, wherever the bytes move.
template <class T>
class ptr {
    static_assert(std::is_trivially_copyable_v<T> || std::is_void_v<T>);

public:
    constexpr ptr() noexcept = default;
    constexpr ptr(std::nullptr_t) noexcept {}
    static constexpr ptr at(std::uint64_t address) noexcept {
        ptr made;
        made.address_ = address;
        return made;
    }
    constexpr std::uint64_t address() const noexcept { return address_; }
    template <class U>
    constexpr ptr<U> as() const noexcept {
        return ptr<U>::at(address_);
    }
    explicit constexpr operator bool() const noexcept { return address_ != 0; }

    constexpr ptr& operator+=(std::int64_t n) noexcept {
        address_ += static_cast<std::uint64_t>(n) * sizeof(T);
        return *this;
    }
    constexpr ptr& operator-=(std::int64_t n) noexcept { return *this += -n; }
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

/// Asynchronous accesses under way; wait for them with space::wait(). Must outlive them.
class Pending {
public:
    bool done() const noexcept { return count_.load(std::memory_order_acquire) == 0; }

private:
    friend class SpaceParts;
    friend class space;
    std::atomic<std::uint32_t> count_{0};
    std::atomic<std::uint64_t> first_fault_{0};  ///< packed, 0: none
};

enum class Operation : std::uint8_t { add, bit_and, bit_or, bit_xor, swap, compare_swap };

/// What this rank has done.
struct Counts {
    std::uint64_t hits;             ///< accesses to pages whose metadata was here, by page
    std::uint64_t misses;           ///< pages whose directory was asked
    std::uint64_t relocations;      ///< pages that came here by own()
    std::uint64_t bytes_here;       ///< accessed in this rank's memory
    std::uint64_t bytes_elsewhere;  ///< accessed in other ranks' memory
    std::uint64_t bytes_moved;      ///< that came here by own()
};

class space;

/// Memory that this rank owns, for loads and stores, while the view lives: own() by others waits
/// for its end, so do not wait for another rank meanwhile. Empty: not all of it was here.
template <class T>
class LocalView {
public:
    LocalView() = default;
    LocalView(space& of, ptr<T> first, std::span<T> bytes) noexcept
        : space_(&of), first_(first), span_(bytes) {}
    LocalView(LocalView&& other) noexcept
        : space_(std::exchange(other.space_, nullptr)), first_(other.first_), span_(other.span_) {
        other.span_ = {};
    }
    LocalView& operator=(LocalView&&) = delete;
    ~LocalView();

    explicit operator bool() const noexcept { return !span_.empty(); }
    std::span<T> span() const noexcept { return span_; }
    T& operator[](std::size_t i) const noexcept { return span_[i]; }
    auto begin() const noexcept { return span_.begin(); }
    auto end() const noexcept { return span_.end(); }

private:
    space* space_ = nullptr;
    ptr<T> first_;
    std::span<T> span_;
};

/// The relocatable global address space of a job, seen from one rank.
///
/// Ranges may have any size and alignment and cross pages. Aligned accesses of 1, 2, 4 and 8 bytes
/// are whole; with atomics they are linearizable for each such word, across relocations. Larger
/// ones are copied word by word in any order. Where memory is mapped (provider shm) a put is
/// visible in the order of this rank's stores, but a later get of *another* word may overtake it:
/// fence() between them. Local ends are private memory of any alignment, borrowed until the access
/// is complete. Thread: any, at once; not in signal handlers.
///
/// A call that returns a fault other than peer_lost has done nothing to the range it names.
class __attribute__((visibility("default"))) space {
public:
    /// Joins the job; collective, before any other thread starts. A process not started by
    /// `hiroba run` is a job of one rank. On failure: nullptr, and `*why` says what to change.
    static std::unique_ptr<space> open(std::string* why);
    space(const space&) = delete;
    virtual ~space() = default;

    std::uint32_t rank() const noexcept { return rank_; }
    std::uint32_t ranks() const noexcept { return ranks_; }
    std::uint64_t page_bytes() const noexcept { return std::uint64_t{1} << page_shift_; }
    /// Returns when every rank has called it. One thread of each rank. Accesses that are complete
    /// before are seen after it.
    virtual void barrier() noexcept = 0;
    /// Collective: rank `from`'s value on every rank (a pointer to begin with).
    virtual std::uint64_t broadcast(std::uint64_t value, std::uint32_t from) noexcept = 0;
    /// Orders this thread's puts before its later gets of other words.
    static void fence() noexcept { std::atomic_thread_fence(std::memory_order_seq_cst); }

    // --- allocation: zeroed, beginning with a page -----------------------------------------------

    /// By this rank alone, wherever the bytes are to be. Null when it fails, and `*why` says why.
    template <class T>
    ptr<T> allocate(std::uint64_t count, Distribution where, Status* why = nullptr) {
        return ptr<T>::at(make(count, sizeof(T), where, false, why));
    }
    /// Collective: the same call on every rank, one thread of each.
    template <class T>
    ptr<T> allocate_together(std::uint64_t count, Distribution where, Status* why = nullptr) {
        return ptr<T>::at(make(count, sizeof(T), where, true, why));
    }
    /// Frees what allocate() of this rank, or allocate_together(), returned; the latter
    /// collectively. Accesses from now on are refused; those under way end first.
    template <class T>
    Status free(ptr<T> first) {
        return release(first.address());
    }

    // --- access ----------------------------------------------------------------------------------

    template <class T>
    Status get(ptr<T> from, T& to) noexcept {
        return get_bytes(from.address(), &to, sizeof(T));
    }
    template <class T>
    Status get(ptr<T> from, std::span<T> to) noexcept {
        return get_bytes(from.address(), to.data(), to.size_bytes());
    }
    template <class T>
    Status put(ptr<T> to, const std::type_identity_t<T>& from) noexcept {
        return put_bytes(to.address(), &from, sizeof(T));
    }
    template <class T>
    Status put(ptr<T> to, std::span<const T> from) noexcept {
        return put_bytes(to.address(), from.data(), from.size_bytes());
    }
    Status get_bytes(std::uint64_t from, void* to, std::size_t bytes) noexcept {
        if (get_hit(from, static_cast<std::byte*>(to), bytes)) [[likely]]
            return {};
        return get_slowly(from, static_cast<std::byte*>(to), bytes);
    }
    Status put_bytes(std::uint64_t to, const void* from, std::size_t bytes) noexcept {
        if (put_hit(to, static_cast<const std::byte*>(from), bytes)) [[likely]]
            return {};
        return put_slowly(to, static_cast<const std::byte*>(from), bytes);
    }

    /// Starts an access; returns once it is under way, which may wait for a page that moves.
    template <class T>
    Status start_get(ptr<T> from, std::span<T> to, Pending& pending) noexcept {
        if (get_hit(from.address(), reinterpret_cast<std::byte*>(to.data()), to.size_bytes()))
            return {};
        return start(from.address(), to.data(), to.size_bytes(), false, pending);
    }
    template <class T>
    Status start_put(ptr<T> to, std::span<const T> from, Pending& pending) noexcept {
        if (put_hit(to.address(), reinterpret_cast<const std::byte*>(from.data()),
                    from.size_bytes()))
            return {};
        return start(to.address(), const_cast<T*>(from.data()), from.size_bytes(), true, pending);
    }
    /// Waits for everything started with `pending`. @return the first fault
    Status wait(Pending& pending) noexcept {
        if (pending.done() && pending.first_fault_.load(std::memory_order_relaxed) == 0) return {};
        return wait_slowly(pending);
    }

    /// A list of places anywhere in global memory, `length` elements each, one after the other in
    /// local memory. What goes to one owner travels together.
    template <class T>
    Status get_list(std::span<const ptr<T>> from, std::size_t length, T* to) noexcept {
        static_assert(sizeof(ptr<T>) == sizeof(std::uint64_t));
        return list(reinterpret_cast<const std::uint64_t*>(from.data()), from.size(),
                    length * sizeof(T), to, false);
    }
    template <class T>
    Status put_list(std::span<const ptr<T>> to, std::size_t length, const T* from) noexcept {
        return list(reinterpret_cast<const std::uint64_t*>(to.data()), to.size(),
                    length * sizeof(T), const_cast<T*>(from), true);
    }
    /// `count` pieces of `length` elements, `stride` elements apart in global memory, one after the
    /// other in local memory. What goes to one owner travels together.
    template <class T>
    Status get_strided(ptr<T> from, std::int64_t stride, std::size_t length, std::size_t count,
                       T* to) noexcept {
        return strided(from.address(), stride * static_cast<std::int64_t>(sizeof(T)),
                       length * sizeof(T), count, to, false);
    }
    template <class T>
    Status put_strided(ptr<T> to, std::int64_t stride, std::size_t length, std::size_t count,
                       const T* from) noexcept {
        return strided(to.address(), stride * static_cast<std::int64_t>(sizeof(T)),
                       length * sizeof(T), count, const_cast<T*>(from), true);
    }

    /// Sequentially consistent, on an aligned element of 4 or 8 bytes. `old`: the value before.
    template <class T>
    Status fetch_add(ptr<T> at, std::type_identity_t<T> value, T& old) noexcept {
        return atomic(Operation::add, at, value, T{}, old);
    }
    template <class T>
    Status swap(ptr<T> at, std::type_identity_t<T> value, T& old) noexcept {
        return atomic(Operation::swap, at, value, T{}, old);
    }
    template <class T>
    Status compare_swap(ptr<T> at, std::type_identity_t<T> expected,
                        std::type_identity_t<T> desired, T& old) noexcept {
        return atomic(Operation::compare_swap, at, desired, expected, old);
    }
    template <class T>
    Status atomic(Operation operation, ptr<T> at, T operand, T expected, T& old) noexcept {
        static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
        using Word = std::make_unsigned_t<T>;
        std::uint64_t found = 0;
        const Status status =
            atomic_word(operation, at.address(), sizeof(T), static_cast<Word>(operand),
                        static_cast<Word>(expected), found);
        if (status) old = static_cast<T>(found);
        return status;
    }

    // --- relocation ------------------------------------------------------------------------------

    /// Moves the pages of `count` elements here; returns when they are here and writable. Gets by
    /// others go on meanwhile, their puts and atomics wait.
    template <class T>
    Status own(ptr<T> first, std::uint64_t count) noexcept {
        return own_bytes(first.address(), count * sizeof(T));
    }
    /// Fetches the metadata of the range, so that accesses hit.
    template <class T>
    Status prefetch(ptr<T> first, std::uint64_t count) noexcept {
        return prefetch_bytes(first.address(), count * sizeof(T));
    }
    /// The range itself, if this rank owns all of it.
    template <class T>
    LocalView<T> local(ptr<T> first, std::uint64_t count) noexcept {
        std::byte* bytes = pin_hit(first.address(), count * sizeof(T));
        if (bytes == nullptr) bytes = pin(first.address(), count * sizeof(T));
        if (bytes == nullptr) return {};
        return {*this, first, std::span<T>(reinterpret_cast<T*>(bytes), count)};
    }
    /// The rank that owned the page when last heard, or none: no metadata is here. For statistics.
    static constexpr std::uint32_t none = ~std::uint32_t{0};
    virtual std::uint32_t owner_hint(std::uint64_t address) const noexcept = 0;
    /// Forgets the metadata of the range, so that the next access misses: for measurements.
    virtual void forget(std::uint64_t first, std::uint64_t bytes) noexcept = 0;

    virtual Counts counts() const noexcept = 0;

protected:
    space() = default;

    virtual std::uint64_t make(std::uint64_t count, std::uint64_t element_bytes,
                               const Distribution& where, bool together, Status* why) = 0;
    virtual Status release(std::uint64_t first) = 0;
    virtual Status get_slowly(std::uint64_t from, std::byte* to, std::size_t bytes) noexcept = 0;
    virtual Status put_slowly(std::uint64_t to, const std::byte* from,
                              std::size_t bytes) noexcept = 0;
    virtual Status start(std::uint64_t at, void* local, std::size_t bytes, bool is_put,
                         Pending& pending) noexcept = 0;
    virtual Status wait_slowly(Pending& pending) noexcept = 0;
    virtual Status list(const std::uint64_t* places, std::size_t count, std::size_t bytes,
                        void* local, bool is_put) noexcept = 0;
    virtual Status strided(std::uint64_t at, std::int64_t stride, std::size_t bytes,
                           std::size_t count, void* local, bool is_put) noexcept = 0;
    virtual Status atomic_slowly(Operation operation, std::uint64_t at, std::uint32_t bytes,
                                 std::uint64_t operand, std::uint64_t expected,
                                 std::uint64_t& old) noexcept = 0;
    virtual Status own_bytes(std::uint64_t first, std::uint64_t bytes) noexcept = 0;
    virtual Status prefetch_bytes(std::uint64_t first, std::uint64_t bytes) noexcept = 0;
    virtual std::byte* pin(std::uint64_t first, std::uint64_t bytes) noexcept = 0;
    virtual void unpin(std::uint64_t first, std::uint64_t bytes) noexcept = 0;

    /// False: not by a hit.
    bool get_hit(std::uint64_t from, std::byte* to, std::size_t bytes) noexcept {
        ThreadSlot* const slot = this_slot;
        CachedPage* const page = cached(from);
        if (slot == nullptr || page == nullptr) [[unlikely]]
            return false;
        std::byte* const base = page->reads.load(std::memory_order_acquire);
        if (base == nullptr) [[unlikely]]
            return false;
        const Announced announced{slot->reading, page->reads, base};
        const std::uint64_t offset = offset_of(from);
        if (!announced || !fits(*page, offset, bytes)) [[unlikely]]
            return false;
        copy_page_bytes(to, base + offset, bytes, base + offset);
        slot->count(bytes, is_here(base));
        return true;
    }

    bool put_hit(std::uint64_t to, const std::byte* from, std::size_t bytes) noexcept {
        ThreadSlot* const slot = this_slot;
        CachedPage* const page = cached(to);
        if (slot == nullptr || page == nullptr) [[unlikely]]
            return false;
        std::byte* const base = page->writes.load(std::memory_order_acquire);
        if (base == nullptr) [[unlikely]]
            return false;
        const Announced announced{slot->writing, page->writes, base};
        const std::uint64_t offset = offset_of(to);
        if (!announced || !fits(*page, offset, bytes)) [[unlikely]]
            return false;
        copy_page_bytes(base + offset, from, bytes, base + offset);
        slot->count(bytes, is_here(base));
        return true;
    }
    bool atomic_hit(Operation operation, std::uint64_t at, std::uint32_t bytes,
                    std::uint64_t operand, std::uint64_t expected, std::uint64_t& old) noexcept {
        ThreadSlot* const slot = this_slot;
        CachedPage* const page = cached(at);
        if (slot == nullptr || page == nullptr || at % bytes != 0) [[unlikely]]
            return false;
        std::byte* const base = page->writes.load(std::memory_order_acquire);
        if (base == nullptr) [[unlikely]]
            return false;
        const Announced announced{slot->writing, page->writes, base};
        const std::uint64_t offset = offset_of(at);
        if (!announced || !fits(*page, offset, bytes)) [[unlikely]]
            return false;
        old = bytes == 8 ? apply<std::uint64_t>(operation, base + offset, operand, expected)
                         : apply<std::uint32_t>(operation, base + offset, operand, expected);
        slot->count(bytes, is_here(base));
        return true;
    }

    /// Where the range is in this rank's memory, kept here until unpin_hit(); nullptr: not by a
    /// hit. Counts the page as written while the use is still announced: a mover looks for
    /// announcements first and at the count then, so it sees one of the two.
    std::byte* pin_hit(std::uint64_t at, std::size_t bytes) noexcept {
        ThreadSlot* const slot = this_slot;
        CachedPage* const page = cached(at);
        if (slot == nullptr || page == nullptr || bytes == 0) [[unlikely]]
            return nullptr;
        std::byte* const base = page->writes.load(std::memory_order_acquire);
        if (base == nullptr || !is_here(base)) [[unlikely]]
            return nullptr;
        const Announced announced{slot->writing, page->writes, base};
        const std::uint64_t offset = offset_of(at);
        if (!announced || !fits(*page, offset, bytes)) [[unlikely]]
            return nullptr;
        page->writers.fetch_add(1);
        return base + offset;
    }
    /// Ends a guard of either kind.
    void unpin_any(std::uint64_t at, std::size_t bytes) noexcept {
        if (offset_of(at) + bytes <= page_bytes()) {
            cached(at)->writers.fetch_sub(1);
        } else {
            unpin(at, bytes);
        }
    }

    // The page's metadata that a hit needs; set once, before the space is used.
    CachedPage* cached_ = nullptr;
    std::uint64_t pages_ = 0;
    std::uint32_t page_shift_ = 12;
    std::uint32_t rank_ = 0, ranks_ = 1;
    std::byte* local_ = nullptr;  ///< where this rank's pages are: page p at p * page_bytes
    std::uint64_t local_bytes_ = 0;

private:
    template <class T>
    friend class LocalView;

    bool is_here(const std::byte* base) const noexcept {
        return static_cast<std::uint64_t>(base - local_) < local_bytes_;
    }
    CachedPage* cached(std::uint64_t address) const noexcept {
        const std::uint64_t page = address >> page_shift_;
        return page < pages_ ? cached_ + page : nullptr;
    }
    /// Whether [offset, offset + bytes) is allocated.
    static bool fits(const CachedPage& page, std::uint64_t offset, std::size_t bytes) noexcept {
        const std::uint64_t limit = page.limit.load(std::memory_order_relaxed);
        return bytes <= limit && offset <= limit - bytes;
    }
    std::uint64_t offset_of(std::uint64_t address) const noexcept {
        return address & ((std::uint64_t{1} << page_shift_) - 1);
    }

    template <class Word>
    static std::uint64_t apply(Operation operation, std::byte* at, std::uint64_t operand,
                               std::uint64_t expected) noexcept {
        std::atomic_ref<Word> word{*reinterpret_cast<Word*>(at)};
        const auto value = static_cast<Word>(operand);
        switch (operation) {
            case Operation::add: return word.fetch_add(value);
            case Operation::bit_and: return word.fetch_and(value);
            case Operation::bit_or: return word.fetch_or(value);
            case Operation::bit_xor: return word.fetch_xor(value);
            case Operation::swap: return word.exchange(value);
            case Operation::compare_swap: break;
        }
        auto found = static_cast<Word>(expected);
        word.compare_exchange_strong(found, value);
        return found;
    }
    Status atomic_word(Operation operation, std::uint64_t at, std::uint32_t bytes,
                       std::uint64_t operand, std::uint64_t expected, std::uint64_t& old) noexcept {
        if (atomic_hit(operation, at, bytes, operand, expected, old)) [[likely]]
            return {};
        return atomic_slowly(operation, at, bytes, operand, expected, old);
    }
};

template <class T>
LocalView<T>::~LocalView() {
    if (space_ != nullptr) space_->unpin_any(first_.address(), span_.size_bytes());
}

}  // namespace hiroba::gas
