// SPDX-License-Identifier: BSD-3-Clause
// Role: accesses that are not a hit: they fetch metadata, wait for pages that move, cross pages,
// and go by requests of net where the owner's memory is not mapped. Source: Endo & Taura, MGAS-2,
// section 3.2 and figure 3. Invariant: nothing is counted as under way (MetadataCache::begin_*)
// while this waits for a page: movers wait for what is under way.
#pragma once

#include <atomic>
#include <cstdint>

#include "gas/relocatable/directory.hpp"
#include "gas/relocatable/metadata_cache.hpp"
#include "gas/relocatable/request.hpp"
#include "gas/relocatable/space_messages.hpp"
#include "hiroba/gas.hpp"

namespace hiroba::gas {

/// The operations on a Pending that only the space may use.
class SpaceParts {
public:
    static void add(Pending& pending) noexcept { pending.count_.fetch_add(1); }
    static void fail(Pending& pending, const Status& status) noexcept {
        std::uint64_t none = 0;
        pending.first_fault_.compare_exchange_strong(
            none, static_cast<std::uint64_t>(status.fault) | std::uint64_t{status.rank} << 4 |
                      status.page << 16);
    }
    /// The last touch.
    static void end(Pending& pending) noexcept {
        pending.count_.fetch_sub(1, std::memory_order_release);  // pairs with Pending::done()
    }
    static Status take_fault(Pending& pending) noexcept {
        const std::uint64_t packed = pending.first_fault_.exchange(0);
        return {static_cast<Fault>(packed & 15), static_cast<std::uint32_t>(packed >> 4 & 4095),
                packed >> 16};
    }
    static_assert(static_cast<unsigned>(Fault::differs) < 16 && space_nodes_max <= 4096);
};

/// A range of global memory and its local end.
struct Transfer {
    std::uint64_t at = 0;
    std::byte* local = nullptr;
    std::size_t bytes = 0;
    bool is_put = false;
    bool missed = false;  ///< metadata had to be fetched for it
};

/// Thread: any; not from handlers.
class Accessor {
public:
    Accessor(const SpaceShape& shape, net::Async& async, net::Handle frames, net::Handle everything,
             MetadataCache& cache, const DeadNodes& dead, SpaceMessages& messages)
        : shape_(shape),
          async_(async),
          frames_(frames),
          everything_(everything),
          cache_(cache),
          dead_(dead),
          messages_(messages),
          pages_together_(messages.pages_max()),
          self_(async.endpoint().self()) {}
    void use(Directory& directory) noexcept { directory_ = &directory; }

    /// Metadata of [at, at + bytes) is here, and all of it is allocated; or what is wrong.
    Status prepare(std::uint64_t at, std::uint64_t bytes, bool* missed = nullptr) noexcept;
    /// Starts it; what is not complete is counted in `pending`.
    Status start(const Transfer& transfer, Pending& pending) noexcept;
    Status wait(Pending& pending) noexcept;
    Status atomic(Operation operation, std::uint64_t at, std::uint32_t bytes, std::uint64_t operand,
                  std::uint64_t expected, std::uint64_t& old) noexcept;
    /// The range in this node's memory, kept here until unpin(); nullptr: not all of it is here.
    std::byte* pin(std::uint64_t at, std::uint64_t bytes) noexcept;
    /// The view has more than one page.
    void unpin(std::uint64_t at, std::uint64_t bytes) noexcept;

    struct Sums {
        std::uint64_t hits, misses, bytes_here, bytes_elsewhere;
    };
    Sums sums() const noexcept {
        return {hits_.load(), misses_.load(), bytes_here_.load(), bytes_elsewhere_.load()};
    }

private:
    struct Piece;
    std::uint64_t page_of_address(std::uint64_t at) const noexcept {
        return at >> shape_.page_shift;
    }
    std::uint64_t offset_in_page(std::uint64_t at) const noexcept {
        return at & (shape_.page_bytes() - 1);
    }
    Status fetch(std::uint64_t first, std::uint64_t last, bool* missed) noexcept;
    void ask(std::span<const AskedPage> pages, bool* missed) noexcept;
    Status wait_for_answers(std::uint64_t first, std::uint64_t last) noexcept;
    Status check(std::uint64_t at, std::uint64_t bytes) noexcept;
    bool access_mapped(const Transfer& part) noexcept;
    std::size_t post_run(const Transfer& rest, Pending& pending, CacheWord& word) noexcept;
    void post(Piece& piece, const Transfer& part) noexcept;
    static void finished(void* data, net::Outcome outcome) noexcept;
    void wait_for_change(std::uint64_t page, const CacheWord& seen) noexcept;
    void count(const Transfer& part, std::uint32_t owner) noexcept;

    SpaceShape shape_;
    net::Async& async_;
    net::Handle frames_, everything_;
    MetadataCache& cache_;
    const DeadNodes& dead_;
    SpaceMessages& messages_;
    std::size_t pages_together_;
    NodeId self_;
    Directory* directory_ = nullptr;
    std::atomic<std::uint64_t> hits_{0}, misses_{0}, bytes_here_{0}, bytes_elsewhere_{0};
};

}  // namespace hiroba::gas
