// SPDX-License-Identifier: BSD-3-Clause
// Role: the face of the global address space: symmetric segments and one-sided access to them.
// Invariant: an access is complete when the call returns; atomics are atomic against each other
// from every node. Where the provider maps peers, access is plain loads, stores and CPU atomics,
// inlined here; elsewhere it is posted and waited for.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "base/fatal.hpp"
#include "base/ids.hpp"
#include "net/net.hpp"

namespace hiroba::gas {

/// A place in a segment: which node's part, and the byte offset in it.
struct GlobalAddress {
    NodeId node;
    std::uint64_t offset = 0;
};

/// Copies without a word to the thread sanitizer, which would also follow memcpy.
#ifdef __SANITIZE_THREAD__
[[gnu::noinline, gnu::no_sanitize("thread"),
  gnu::optimize("no-tree-loop-distribute-patterns")]] inline void
copy_torn(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    for (std::size_t at = 0; at < bytes; ++at) to[at] = from[at];
}
#else
inline void copy_torn(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    if (bytes != 0) std::memcpy(to, from, bytes);
}
#endif

/// Copies memory that others may write meanwhile. A few aligned words of 8 bytes come whole, each
/// by an atomic access: partners are the words of Segment. Of anything else the caller copes with a
/// mixture of old and new bytes (a sequence number around them, or their owner's consent).
inline void copy_shared(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    using Word [[gnu::may_alias]] = std::uint64_t;
    constexpr std::size_t whole_max = 64;
    const auto places =
        reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
    if (((places | bytes) & 7) != 0 || bytes > whole_max) return copy_torn(to, from, bytes);
    for (std::size_t at = 0; at < bytes; at += 8) {
        // Relaxed: a caller that needs an order has a fence or an atomic word of Segment behind it.
        const std::uint64_t word =
            __atomic_load_n(reinterpret_cast<const Word*>(from + at), __ATOMIC_RELAXED);
        __atomic_store_n(reinterpret_cast<Word*>(to + at), word, __ATOMIC_RELAXED);
    }
}

/// Registered memory of equal size on every node, accessed one-sidedly.
///
/// Allocate in the same order on all nodes before Endpoint::connect(); call attach() after it.
/// Thread: any, at once; async-signal-safe. In a handler only where the provider completes inline.
/// Offsets and sizes outside the segment are fatal.
class Segment {
public:
    /// @param processor_atomics  as net::Provider::processor_atomics()
    static Result<Segment> allocate(net::Endpoint& endpoint, std::size_t bytes,
                                    bool processor_atomics = false);
    /// Resolves the mappings. After Endpoint::connect().
    void attach();

    std::size_t bytes() const noexcept { return bytes_; }
    /// This node's part; valid after attach().
    std::byte* local() noexcept { return local_; }
    /// Gives whole pages of this node's part back to the machine: they read as zero. Bytes that
    /// peers read meanwhile are old, zero, or a mixture.
    void discard(std::uint64_t offset, std::size_t bytes) noexcept;
    /// `node`'s bytes for loads, stores and CPU atomics; nullptr where the provider maps nothing.
    std::byte* reach(GlobalAddress at, std::size_t bytes) const noexcept {
        return mapped(at, bytes);
    }

    /// Copies [from, from + to.size()) into `to`. Bytes written meanwhile may be old or new.
    void get(GlobalAddress from, MutableBytes to) noexcept {
        if (const std::byte* source = mapped(from, to.size())) {
            copy_shared(to.data(), source, to.size());
        } else {
            get_posted(from, to);
        }
    }
    void put(GlobalAddress to, Bytes from) noexcept {
        if (std::byte* target = mapped(to, from.size())) {
            copy_shared(target, from.data(), from.size());
        } else {
            put_posted(to, from);
        }
    }

    /// 8-byte accesses at 8-byte aligned offsets, sequentially consistent. Each returns the value
    /// before (load: the value).
    std::uint64_t load(GlobalAddress at) noexcept {
        if (std::uint64_t* word = mapped_word(at)) return Word(*word).load();
        return atomic_posted(net::AtomicOp::fetch_add, at, 0, 0);
    }
    void store(GlobalAddress at, std::uint64_t value) noexcept {
        if (std::uint64_t* word = mapped_word(at)) return Word(*word).store(value);
        atomic_posted(net::AtomicOp::swap, at, value, 0);
    }
    std::uint64_t compare_swap(GlobalAddress at, std::uint64_t expected,
                               std::uint64_t desired) noexcept {
        if (std::uint64_t* word = mapped_word(at)) {
            Word(*word).compare_exchange_strong(expected, desired);
            return expected;  // unchanged on success, the value found on failure
        }
        return atomic_posted(net::AtomicOp::compare_swap, at, desired, expected);
    }
    std::uint64_t swap(GlobalAddress at, std::uint64_t value) noexcept {
        if (std::uint64_t* word = mapped_word(at)) return Word(*word).exchange(value);
        return atomic_posted(net::AtomicOp::swap, at, value, 0);
    }
    std::uint64_t fetch_add(GlobalAddress at, std::uint64_t value) noexcept {
        if (std::uint64_t* word = mapped_word(at)) return Word(*word).fetch_add(value);
        return atomic_posted(net::AtomicOp::fetch_add, at, value, 0);
    }

    std::uint64_t fetch_or(GlobalAddress at, std::uint64_t bits) noexcept {
        if (std::uint64_t* word = mapped_word(at)) return Word(*word).fetch_or(bits);
        return atomic_posted(net::AtomicOp::fetch_or, at, bits, 0);
    }

    /// One of several accesses to one node's parts of segments, as get(), put(), store(),
    /// compare_swap() and fetch_or() of the same name.
    struct Access {
        enum class Kind : std::uint8_t { get, put, store, compare_swap, fetch_or };
        static Access get(Segment& segment, std::uint64_t offset, MutableBytes to) {
            return {Kind::get, segment, offset, to.data(), to.size()};
        }
        static Access put(Segment& segment, std::uint64_t offset, MutableBytes from) {
            return {Kind::put, segment, offset, from.data(), from.size()};
        }
        static Access store(Segment& segment, std::uint64_t offset, std::uint64_t value) {
            return {Kind::store, segment, offset, nullptr, 8, value};
        }
        static Access compare_swap(Segment& segment, std::uint64_t offset, std::uint64_t expected,
                                   std::uint64_t desired) {
            return {Kind::compare_swap, segment, offset, nullptr, 8, desired, expected};
        }
        static Access fetch_or(Segment& segment, std::uint64_t offset, std::uint64_t bits) {
            return {Kind::fetch_or, segment, offset, nullptr, 8, bits};
        }

        Kind kind;
        Segment& segment;
        std::uint64_t offset;
        std::byte* memory;  ///< of this node; of get and put
        std::size_t bytes;
        std::uint64_t value = 0;     ///< what is stored, or the bits to be set
        std::uint64_t expected = 0;  ///< of compare_swap
        std::uint64_t found = 0;     ///< by all but get and put, after it: the value before
    };
    /// Makes all `accesses` to `node`'s parts, each after the one before it: in one exchange where
    /// the provider can (net::Limits::lists_in_order), else one by one. A get of aligned words of 8
    /// bytes gets each word whole. `memory` must not be the program's.
    /// @param accesses  1 to accesses_max; no get or put without bytes
    static void in_order(NodeId node, std::span<Access> accesses) noexcept;
    static constexpr std::size_t accesses_max = 10;
    /// As in_order(), of several lists, each in order, without order between them: all under way at
    /// the same time where the provider can.
    struct List {
        NodeId node;
        std::span<Access> accesses;
    };
    /// @param lists  together at most net::Endpoint::list_max accesses
    static void together(std::span<const List> lists) noexcept;
    /// Whether in_order() makes accesses to `node` in one exchange.
    bool in_one_exchange(NodeId node) const noexcept {
        return endpoint_->provider().limits().lists_in_order && mapped({node, 0}, 0) == nullptr;
    }

private:
    using Word = std::atomic_ref<std::uint64_t>;
    static_assert(Word::is_always_lock_free && Word::required_alignment == 8);

    Segment() = default;

    /// nullptr where the provider maps nothing.
    std::byte* mapped(GlobalAddress at, std::size_t bytes) const noexcept {
        HIROBA_INVARIANT(at.node.value < nodes_, "access to node %u of %u (0: before attach())",
                         at.node.value, nodes_);
        HIROBA_INVARIANT(at.offset <= bytes_ && bytes <= bytes_ - at.offset,
                         "%lu bytes at offset %lu of node %u's segment of %lu", bytes, at.offset,
                         at.node.value, bytes_);
        std::byte* base = bases_.empty() ? nullptr : bases_[at.node.value];
        return base == nullptr ? nullptr : base + at.offset;
    }
    std::uint64_t* mapped_word(GlobalAddress at) const noexcept {
        HIROBA_INVARIANT((at.offset & 7) == 0, "atomic access at offset %lu of node %u", at.offset,
                         at.node.value);
        return reinterpret_cast<std::uint64_t*>(mapped(at, 8));
    }

    static void one_by_one(NodeId node, std::span<Access> accesses) noexcept;
    static void make_work(NodeId node, const Access& access, net::Work& work,
                          std::uint64_t& found) noexcept;
    void get_posted(GlobalAddress from, MutableBytes to) noexcept;
    void put_posted(GlobalAddress to, Bytes from) noexcept;
    std::uint64_t atomic_posted(net::AtomicOp op, GlobalAddress at, std::uint64_t operand,
                                std::uint64_t expected) noexcept;

    net::Endpoint* endpoint_ = nullptr;
    net::RegionId region_;
    std::size_t bytes_ = 0;
    std::byte* local_ = nullptr;
    std::uint32_t nodes_ = 0;        ///< 0 before attach()
    std::vector<std::byte*> bases_;  ///< per node; empty where the provider maps no peer at all
};

}  // namespace hiroba::gas
