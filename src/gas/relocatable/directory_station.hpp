// SPDX-License-Identifier: BSD-3-Clause
// Role: a directory node's side: the words of its pages, and who waits for one that is moving.
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
#include "gas/relocatable/mail.hpp"

namespace hiroba::gas {

/// A page's two words, as they lie in the directory node's memory.
struct DirectoryEntry {
    std::uint64_t word;     ///< PageWord
    std::uint64_t sharers;  ///< nodes that have asked since it was allocated, by bit
};

/// Thread: any.
class DirectoryStation {
public:
    DirectoryStation(const SpaceShape& shape, NodeId self, const DeadNodes& dead)
        : shape_(shape), self_(self), dead_(dead) {}
    void attach(DirectoryEntry* entries) noexcept { entries_ = entries; }

    std::vector<Letter> asked(NodeId from, std::uint64_t token, Mail::Words words);
    std::vector<Letter> claimed(NodeId from, std::uint64_t token, Mail::Words words);
    std::vector<Letter> committed(Mail::Words words);
    void publish(const PublishedRun& run) noexcept;
    /// Who waited for a change by `dead` hears that the page is lost.
    std::vector<Letter> lost(NodeId dead);

private:
    struct Waiter {
        NodeId from;
        bool claims = false;
        std::uint64_t token = 0;
    };
    class Answers;
    std::atomic_ref<std::uint64_t> word_of(std::uint64_t page) noexcept {
        return std::atomic_ref(entries_[shape_.directory_index(page)].word);
    }
    std::atomic_ref<std::uint64_t> sharers_of(std::uint64_t page) noexcept {
        return std::atomic_ref(entries_[shape_.directory_index(page)].sharers);
    }
    bool serve(const Waiter& waiter, std::uint64_t page, Answers& answers);
    void serve_queue(std::uint64_t page, Answers& answers);
    void check(std::uint64_t page, NodeId from) const noexcept;

    SpaceShape shape_;
    NodeId self_;
    const DeadNodes& dead_;
    DirectoryEntry* entries_ = nullptr;
    Latch latch_;
    std::unordered_map<std::uint64_t, std::deque<Waiter>> queues_;  ///< of pages that are moving
};

/// What a dead mover or owner leaves of a page: lost.
PageWord after_losses(PageWord word, const DeadNodes& dead) noexcept;

}  // namespace hiroba::gas
