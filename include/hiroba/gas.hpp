// SPDX-License-Identifier: BSD-3-Clause
// Role: the C++ face of the relocatable global address space: memory of the whole job that any rank
// reads and writes by calls, and whose pages move to the rank that works on them.
// Source: Endo & Taura, MGAS-2 (relocatable GAS with RDMA), sections 3.1 and 3.2.
//
// A program that uses it is started with `hiroba run --spmd -n N ./program`: every rank enters
// main. Link with hiroba::gas. First page: docs/tutorials/gas.md; examples:
// examples/gas_particles.cpp, examples/gas_table.cpp; contracts and pitfalls:
// docs/layers/relocatable.md. A data cache on top: hiroba/gas_view.hpp. C++20.
#pragma once

#if __cplusplus < 202002L
#error "hiroba needs C++20: compile with -std=c++20 (pkg-config and find_package say so)"
#endif

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "hiroba/gas_cache.hpp"
#include "hiroba/gas_types.hpp"

namespace hiroba::gas {

/// Counts asynchronous accesses under way. space::wait() waits for them. A Pending that ends before
/// them ends the process with a line: they would read or write memory that is gone.
class Pending {
public:
    Pending() = default;
    Pending(const Pending&) = delete;
    ~Pending() {
        const std::uint32_t left = count_.load(std::memory_order_acquire);
        if (left != 0) [[unlikely]]
            ended_early(left);
    }
    /// Whether all of them are over. Faults show at wait(), which is needed all the same.
    bool done() const noexcept { return count_.load(std::memory_order_acquire) == 0; }

private:
    friend class SpaceParts;
    friend class space;
    [[noreturn]] __attribute__((visibility("default"))) static void ended_early(
        std::uint32_t left) noexcept;
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

/// Memory that this rank owns, for loads and stores, while the view lives. own() and free() by
/// other ranks wait for its end, so do not wait for another rank meanwhile; free() by this rank is
/// refused. Empty: not all of the range was here, or the range is wrong (get() says why).
/// Move-constructible, not copyable. Ends before its space.
template <class T>
class LocalView {
public:
    LocalView() = default;
    /// For space::local().
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
    /// Joins the job; collective, before any other thread starts. A process that no
    /// launcher started is a job of one rank. On failure: nullptr, and `*why` says what to change.
    /// `why` may be null.
    static std::unique_ptr<space> open(std::string* why);
    space(const space&) = delete;
    /// Leaves the job; collective: returns when every rank has called it.
    virtual ~space() = default;

    std::uint32_t rank() const noexcept { return rank_; }
    std::uint32_t ranks() const noexcept { return ranks_; }
    std::uint64_t page_bytes() const noexcept { return std::uint64_t{1} << page_shift_; }
    /// Returns when every rank has called it. One thread of each rank. Accesses that are complete
    /// before are seen after it. Where another rank makes another collective call meanwhile, the
    /// job ends with a line that names both calls; where a collective call takes longer than
    /// HIROBA_WAIT_TIMEOUT seconds (0, as it is unless set: any), with one that names it.
    virtual void barrier() noexcept = 0;
    /// Collective: rank `from`'s value on every rank (a pointer to begin with). One thread of each
    /// rank. `from` is the same on all, else the job ends with a line that names both.
    virtual std::uint64_t broadcast(std::uint64_t value, std::uint32_t from) noexcept = 0;
    /// Orders this thread's puts before its later gets of other words.
    static void fence() noexcept { std::atomic_thread_fence(std::memory_order_seq_cst); }

    // --- allocation: zeroed, beginning with a page -----------------------------------------------

    /// Allocates by this rank alone, wherever the bytes are to be. Null when it fails, and `*why`
    /// says why. Addresses of HIROBA_GAS are for this rank's allocations; each takes whole pages.
    /// Other ranks get the pointer by broadcast() or through global memory.
    template <class T>
    ptr<T> allocate(std::uint64_t count, Distribution where, Status* why = nullptr) {
        require_plain<T>();
        return ptr<T>::at(make(count, sizeof(T), where, false, why));
    }
    /// Collective: the same call on every rank, one thread of each; all get the same pointer. It
    /// fails on all ranks or on none. Where counts, sizes of elements or distributions differ it
    /// fails on all, nothing is allocated, and `why->text()` names two ranks with what they ask
    /// for.
    template <class T>
    ptr<T> allocate_together(std::uint64_t count, Distribution where, Status* why = nullptr) {
        require_plain<T>();
        return ptr<T>::at(make(count, sizeof(T), where, true, why));
    }
    /// Frees what allocate() of this rank, or allocate_together(), returned; the latter
    /// collectively, by the same pointer on all ranks (else Fault::differs on all, nothing is
    /// freed). Accesses from now on are refused; those under way end first. While this rank has a
    /// LocalView of the memory: Fault::view_open, nothing is freed. Views of other ranks are waited
    /// for.
    template <class T>
    Status free(ptr<T> first) {
        return release(first.address());
    }

    // --- access ----------------------------------------------------------------------------------

    /// One element. `to` is as it was when the call fails.
    template <class T>
    Status get(ptr<T> from, std::remove_const_t<T>& to) noexcept {
        require_plain<T>();
        return get_bytes(from.address(), &to, sizeof(T));
    }
    /// As many elements as `to` has: a span, a vector, an array.
    template <class T>
    Status get(ptr<T> from, Elements<T> to) noexcept {
        require_plain<T>();
        return get_bytes(from.address(), to.data(), to.size_bytes());
    }
    template <class T>
    Status put(ptr<T> to, const std::type_identity_t<T>& from) noexcept {
        require_plain<T>();
        static_assert(!std::is_const_v<T>, "put to a pointer to const");
        return put_bytes(to.address(), &from, sizeof(T));
    }
    template <class T>
    Status put(ptr<T> to, ConstElements<T> from) noexcept {
        require_plain<T>();
        static_assert(!std::is_const_v<T>, "put to a pointer to const");
        return put_bytes(to.address(), from.data(), from.size_bytes());
    }
    /// Bytes of any type; addresses are those of ptr::address().
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

    /// Starts an access; returns once it is under way, which may wait for a page that moves. Local
    /// memory and `pending` live until wait(pending) has returned. A fault that is returned here is
    /// not given by wait() again.
    template <class T>
    Status start_get(ptr<T> from, Elements<T> to, Pending& pending) noexcept {
        require_plain<T>();
        if (get_hit(from.address(), reinterpret_cast<std::byte*>(to.data()), to.size_bytes()))
            return {};
        return start(from.address(), to.data(), to.size_bytes(), false, pending);
    }
    template <class T>
    Status start_put(ptr<T> to, ConstElements<T> from, Pending& pending) noexcept {
        require_plain<T>();
        static_assert(!std::is_const_v<T>, "put to a pointer to const");
        if (put_hit(to.address(), reinterpret_cast<const std::byte*>(from.data()),
                    from.size_bytes()))
            return {};
        return start(to.address(), const_cast<T*>(from.data()), from.size_bytes(), true, pending);
    }
    /// Waits for everything started with `pending`, which may then be used again. Not under a
    /// LocalView that another rank waits for. @return the first fault
    Status wait(Pending& pending) noexcept {
        if (pending.done() && pending.first_fault_.load(std::memory_order_relaxed) == 0) return {};
        return wait_slowly(pending);
    }

    /// A list of places anywhere in global memory, `length` elements each, one after the other in
    /// local memory. What goes to one owner travels together. When a place is refused, those before
    /// it may have been accessed.
    /// @param from  a span, a vector or an array of ptr<T>
    /// @param to  exactly from.size() * length elements, else Fault::wrong_length
    template <class Places, class T = Pointee<Places>>
    Status get_list(const Places& from, std::size_t length, Elements<T> to) noexcept {
        require_plain<T>();
        return list_elements(std::span<const ptr<T>>(from), length, to.data(), to.size(), false);
    }
    /// @param from  exactly to.size() * length elements, else Fault::wrong_length
    template <class Places, class T = Pointee<Places>>
    Status put_list(const Places& to, std::size_t length, ConstElements<T> from) noexcept {
        static_assert(!std::is_const_v<T>, "put to a pointer to const");
        require_plain<T>();
        return list_elements(std::span<const ptr<T>>(to), length, const_cast<T*>(from.data()),
                             from.size(), true);
    }
    /// `count` pieces of `length` elements, `stride` elements (of any sign) apart in global memory,
    /// one after the other in local memory. What goes to one owner travels together. When a piece
    /// is refused, those before it may have been accessed.
    /// @param to  exactly count * length elements, else Fault::wrong_length
    template <class T>
    Status get_strided(ptr<T> from, std::int64_t stride, std::size_t length, std::size_t count,
                       Elements<T> to) noexcept {
        require_plain<T>();
        return strided_elements(from, stride, length, count, to.data(), to.size(), false);
    }
    /// @param from  exactly count * length elements, else Fault::wrong_length
    template <class T>
    Status put_strided(ptr<T> to, std::int64_t stride, std::size_t length, std::size_t count,
                       ConstElements<T> from) noexcept {
        static_assert(!std::is_const_v<T>, "put to a pointer to const");
        require_plain<T>();
        return strided_elements(to, stride, length, count, const_cast<T*>(from.data()), from.size(),
                                true);
    }

    /// Sequentially consistent, on an aligned integer of 4 or 8 bytes. `old`: the value before; as
    /// it was when the call fails. compare_swap has happened if `old == expected`.
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
    /// Any operation; only compare_swap looks at `expected`.
    template <class T>
    Status atomic(Operation operation, ptr<T> at, std::type_identity_t<T> operand,
                  std::type_identity_t<T> expected, T& old) noexcept {
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
        return own_bytes(first.address(), bytes_of<T>(count));
    }
    /// Fetches the metadata of the range, so that accesses hit.
    template <class T>
    Status prefetch(ptr<T> first, std::uint64_t count) noexcept {
        return prefetch_bytes(first.address(), bytes_of<T>(count));
    }
    /// The elements of an allocation of `count` that `rank` has at first: those that begin in its
    /// pages. Of cyclic() its first block: share_around() finds the others. Asks nobody.
    template <class T>
    Share share_of(std::uint32_t rank, std::uint64_t count,
                   const Distribution& where) const noexcept {
        require_plain<T>();
        const PageShares all = shares<T>(count, where);
        if (all.pages == 0 || rank >= ranks_) return {rank, 0, 0};
        return elements_in<T>(all.of_rank(rank), rank, count);
    }
    /// The rank that has element `element` of an allocation of `count` at first, and the elements
    /// around it that begin in the same rank's pages. None beyond the end. Asks nobody.
    template <class T>
    Share share_around(std::uint64_t element, std::uint64_t count,
                       const Distribution& where) const noexcept {
        require_plain<T>();
        const PageShares all = shares<T>(count, where);
        if (all.pages == 0 || element >= count) return {};
        const std::uint64_t page = bytes_of<T>(element) >> page_shift_;
        return elements_in<T>(all.around(page), all.owner(page), count);
    }
    /// The range itself, if this rank owns all of it; else an empty view. Moves nothing: own()
    /// does. Elements are aligned if the allocation's type is T.
    template <class T>
    LocalView<T> local(ptr<T> first, std::uint64_t count) noexcept {
        require_plain<T>();
        std::byte* bytes = pin_hit(first.address(), bytes_of<T>(count));
        if (bytes == nullptr) bytes = pin_any(first.address(), bytes_of<T>(count));
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

    /// All ones, which no allocation has, where the product does not fit 64 bits.
    template <class T>
    static constexpr std::uint64_t bytes_of(std::uint64_t count) noexcept {
        std::uint64_t bytes = 0;
        return __builtin_mul_overflow(count, std::uint64_t{sizeof(T)}, &bytes) ? ~std::uint64_t{0}
                                                                               : bytes;
    }
    /// Whether `pieces` pieces of `length` elements are as many as the local memory has.
    static Status check_length(std::uint64_t page, std::uint64_t pieces, std::uint64_t length,
                               std::uint64_t local) noexcept {
        std::uint64_t needed = 0;
        const bool wraps = __builtin_mul_overflow(pieces, length, &needed);
        if (!wraps && needed == local) [[likely]]
            return {};
        return Status::unequal(page, pieces, length, local);
    }
    template <class T>
    Status list_elements(std::span<const ptr<T>> places, std::size_t length,
                         std::remove_const_t<T>* local, std::size_t has, bool is_put) noexcept {
        const std::uint64_t page = places.empty() ? 0 : places[0].address() >> page_shift_;
        if (Status status = check_length(page, places.size(), length, has); !status) {
            return status;
        }
        return list(reinterpret_cast<const std::uint64_t*>(places.data()), places.size(),
                    bytes_of<T>(length), local, is_put);
    }
    template <class T>
    Status strided_elements(ptr<T> at, std::int64_t stride, std::size_t length, std::size_t count,
                            std::remove_const_t<T>* local, std::size_t has, bool is_put) noexcept {
        const std::uint64_t page = at.address() >> page_shift_;
        if (Status status = check_length(page, count, length, has); !status) return status;
        std::int64_t bytes = 0;
        const bool wraps = __builtin_mul_overflow(stride, std::int64_t{sizeof(T)}, &bytes);
        if (wraps && count > 1 && length != 0) [[unlikely]] {
            return Status::beyond(page, static_cast<std::uint64_t>(stride), length, 0);
        }
        return strided(at.address(), bytes, bytes_of<T>(length), count, local, is_put);
    }
    /// The elements that begin in pages [range.first, range.end).
    template <class T>
    Share elements_in(PageShares::Range range, std::uint32_t rank,
                      std::uint64_t count) const noexcept {
        const auto begins = [this](std::uint64_t page) {
            return ((page << page_shift_) + sizeof(T) - 1) / sizeof(T);
        };
        const std::uint64_t first = std::min(count, begins(range.first));
        return {rank, first, std::min(count, begins(range.end)) - first};
    }
    /// The shares have no pages if there is no such allocation.
    template <class T>
    PageShares shares(std::uint64_t count, const Distribution& where) const noexcept {
        const std::uint64_t bytes = bytes_of<T>(count);
        // More than any space has, and little enough for what is calculated with it.
        constexpr std::uint64_t most = std::uint64_t{1} << 48;
        const std::uint64_t last = page_bytes() - 1;
        return {where.kind, where.rank,
                where.block_bytes == 0 ? 1 : (where.block_bytes - 1) / page_bytes() + 1,
                bytes > most ? 0 : (bytes + last) >> page_shift_, ranks_};
    }

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
        page->writers.fetch_add(view_unit);
        return base + offset;
    }
    /// As pin_hit(), of any range. pin() counts a guard of one page by 1, as programs that were
    /// compiled before view_unit expect; this makes it view_unit.
    std::byte* pin_any(std::uint64_t at, std::size_t bytes) noexcept {
        std::byte* const found = pin(at, bytes);
        if (found != nullptr && offset_of(at) + bytes <= page_bytes()) {
            cached(at)->writers.fetch_add(view_unit - 1);
        }
        return found;
    }
    /// Ends a guard of either kind.
    void unpin_any(std::uint64_t at, std::size_t bytes) noexcept {
        if (offset_of(at) + bytes <= page_bytes()) {
            cached(at)->writers.fetch_sub(view_unit);
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
