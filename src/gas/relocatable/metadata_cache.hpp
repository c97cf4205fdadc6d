// SPDX-License-Identifier: BSD-3-Clause
// Role: what this node knows of pages, and how that changes: answers of directory nodes, and the
// three waves of a mover.
// Source: Endo & Taura, MGAS-2, sections 3.1 and 3.2; the third wave: docs/layers/relocatable.md.
//
//   unknown --ask--> asking --told--> live --stop--> stopped --move--> moved --resume--> live
//   unknown --learn--> live      where the directory node's words are within this CPU's reach
//   asking --stop--> stopped     the mover's message overtook the directory node's answer
//   moved --stop--> stopped      the next mover's overtook the last one's resume: it implies that
//   moved --move (freed)--> leaving --resume--> unknown;   any --a node died--> lost
//
// Invariant: no access begins that its state does not allow; stop() and move() are followed by
// asking writes_drained(), reads_drained() until they are true, before the mover goes on. Nothing
// here sends or waits. Thread: any; transitions of a page take its latch, accesses never do.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/latch.hpp"
#include "base/result.hpp"
#include "gas/relocatable/dead_nodes.hpp"
#include "gas/relocatable/directory.hpp"
#include "gas/relocatable/page_word.hpp"
#include "gas/relocatable/spare_frames.hpp"
#include "hiroba/gas_cache.hpp"

namespace hiroba::gas {

class MetadataCache {
public:
    static Result<std::unique_ptr<MetadataCache>> make(const SpaceShape& shape, NodeId self,
                                                       const DeadNodes& dead);
    ~MetadataCache();
    /// @param bases  for each node, where its pages are in this process; nullptr: out of reach
    /// @param is_pinned  a device holds the frames (net::Limits::pins_memory)
    void attach(std::vector<std::byte*> bases, std::uint64_t spare_bytes_max,
                bool is_pinned = false);

    CachedPage* table() noexcept { return table_; }
    CacheWord word(std::uint64_t page) const noexcept {
        return CacheWord::unpack(table_[page].word.load(std::memory_order_seq_cst));
    }
    std::uint32_t limit(std::uint64_t page) const noexcept {
        return table_[page].limit.load(std::memory_order_relaxed);
    }
    std::byte* reach(std::uint64_t page, std::uint32_t node) const noexcept {
        return bases_[node] == nullptr ? nullptr : bases_[node] + (page << shape_.page_shift);
    }

    // --- answers ---------------------------------------------------------------------------------

    /// Returns the token to ask with if the page is unknown (or was refused) here and no thread
    /// asks.
    std::optional<std::uint16_t> begin_ask(std::uint64_t page) noexcept;
    void told(std::uint64_t page, std::uint16_t token, const PageWord& word) noexcept;
    /// Asks `directory` while the latch is held, so that a mover's stop comes before or after.
    /// False: it is no unknown page, or cannot be told at once.
    bool learn(std::uint64_t page, Directory& directory) noexcept;
    /// Ends a question to which no answer will come.
    void abandon(std::uint64_t page) noexcept;
    /// Forgets the page unless it is being moved or is owned here.
    void forget(std::uint64_t page) noexcept;

    // --- the waves: `word` as it will be, `former` the owner until then --------------------------

    void stop(std::uint64_t page, const PageWord& word, std::uint32_t former) noexcept;
    void move(std::uint64_t page, const PageWord& word, std::uint32_t former) noexcept;
    void resume(std::uint64_t page, const PageWord& word, std::uint32_t former) noexcept;
    /// Whether accesses under way have ended. Called after fence_all_threads().
    bool writes_drained(std::uint64_t page) const noexcept;
    bool reads_drained(std::uint64_t page) const noexcept;

    /// A node was added to the dead; it had pages, or was moving them.
    void lose() noexcept;

    // --- posted accesses and guards --------------------------------------------------------------

    /// Registers a write if the page is live. @param word  the entry: where to write, or the state
    /// that forbids it
    bool begin_write(std::uint64_t page, CacheWord& word) noexcept;
    void end_write(std::uint64_t page) noexcept { table_[page].writers.fetch_sub(1); }
    /// Makes the write that begin_write() counted a view, and ends one.
    void make_view(std::uint64_t page) noexcept { table_[page].writers.fetch_add(view_unit - 1); }
    void end_view(std::uint64_t page) noexcept { table_[page].writers.fetch_sub(view_unit); }
    bool has_view(std::uint64_t page) const noexcept {
        return table_[page].writers.load() >= view_unit;
    }
    bool begin_read(std::uint64_t page, CacheWord& word) noexcept;
    void end_read(std::uint64_t page, std::uint32_t version) noexcept {
        table_[page].readers[version & 1].fetch_sub(1);
    }

private:
    MetadataCache(const SpaceShape& shape, NodeId self, const DeadNodes& dead, CachedPage* table);
    CacheWord after_losses(CacheWord word) const noexcept;
    /// Partner of begin_write() and begin_read(), which count before they look at the word.
    static void fence() noexcept { std::atomic_thread_fence(std::memory_order_seq_cst); }
    void set(std::uint64_t page, const CacheWord& word) noexcept;
    void take_in(std::uint64_t page, CacheWord now, const PageWord& told) noexcept;
    void note_known(std::uint64_t page) noexcept;
    bool is_announced(std::byte* base, std::atomic<std::byte*> ThreadSlot::*where) const noexcept;
    void keep_frame(std::uint64_t page) noexcept;
    Latch& latch_of(std::uint64_t page) noexcept { return latches_[page / 16 % latches_count]; }

    static constexpr std::size_t latches_count = 64;
    SpaceShape shape_;
    NodeId self_;
    const DeadNodes& dead_;
    CachedPage* table_;
    std::vector<std::byte*> bases_;
    SpareFrames spare_;
    bool is_pinned_ = false;
    Latch latches_[latches_count];
    Latch known_latch_;
    std::vector<std::uint64_t> known_;  ///< pages that were ever asked for or moved here
};

}  // namespace hiroba::gas
