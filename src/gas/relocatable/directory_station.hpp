// SPDX-License-Identifier: BSD-3-Clause
// Role: a directory node's side: the words of its pages, and the nodes that wait for one that is
// moving.
// Source: Endo & Taura, MGAS-2, section 3.2 (own: one relocation of a page at a time).
// Invariant: words are changed by CPU atomics, since other nodes may change them one-sidedly.
// Handlers decide under the latch and return what is to be sent; nothing is sent here.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "base/latch.hpp"
#include "gas/relocatable/directory.hpp"
#include "gas/relocatable/space_messages.hpp"

namespace hiroba::gas {

/// A directory node's words of a page, as they lie in its memory: the PageWord, then the nodes that
/// have ever asked for it, by bit (SpaceShape::sharer_words()).
using DirectoryWords = std::uint64_t*;
/// The index of the word with the bit of `rank`, among a page's words.
constexpr std::uint64_t sharer_index(std::uint32_t rank) noexcept { return 1 + rank_word(rank); }

/// Thread: any.
class DirectoryStation {
public:
    DirectoryStation(const SpaceShape& shape, NodeId self, const DeadNodes& dead)
        : shape_(shape), self_(self), dead_(dead) {}
    void attach(DirectoryWords entries) noexcept { entries_ = entries; }

    std::vector<SpaceMessage> asked(NodeId from, std::uint64_t token, SpaceMessages::Words words);
    std::vector<SpaceMessage> claimed(NodeId from, std::uint64_t token, SpaceMessages::Words words);
    std::vector<SpaceMessage> committed(SpaceMessages::Words words);
    void publish(const PublishedRun& run) noexcept;
    /// Tells the nodes that waited for a change by `dead` that the page is lost.
    std::vector<SpaceMessage> lost(NodeId dead);

private:
    struct Waiter {
        NodeId from;
        bool claims = false;
        std::uint64_t token = 0;
    };
    class Answers;
    std::atomic_ref<std::uint64_t> word_of(std::uint64_t page, std::uint64_t index = 0) noexcept {
        return std::atomic_ref(
            entries_[shape_.directory_index(page) * shape_.entry_words() + index]);
    }
    void add_sharer(std::uint64_t page, std::uint32_t rank) noexcept {
        word_of(page, sharer_index(rank)).fetch_or(rank_bit(rank));
    }
    bool serve(const Waiter& waiter, std::uint64_t page, Answers& answers);
    void serve_queue(std::uint64_t page, Answers& answers);
    void check(std::uint64_t page, NodeId from) const noexcept;

    SpaceShape shape_;
    NodeId self_;
    const DeadNodes& dead_;
    DirectoryWords entries_ = nullptr;
    Latch latch_;
    std::unordered_map<std::uint64_t, std::deque<Waiter>> queues_;  ///< of pages that are moving
};

/// The word of a page after deaths: a page whose mover or owner died is lost.
PageWord after_losses(PageWord word, const DeadNodes& dead) noexcept;

}  // namespace hiroba::gas
