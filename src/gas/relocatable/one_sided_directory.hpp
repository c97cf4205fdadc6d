// SPDX-License-Identifier: BSD-3-Clause
// Role: directories asked without the directory node's CPU: its words are read and changed by
// remote atomics.
// Source: Endo & Taura, MGAS-2, section 6, names it as future work; after Argo (Kaxiras et al.,
// HPDC 2015).
//
// A node that asks enters itself among the sharers first and then reads the page's word; a mover
// marks the word as moving first and then reads the sharers. Both words are sequentially
// consistent, so either the mover sees the asker, or the asker sees that the page moves and asks
// again.
// Invariant: every node of the job uses this, or none does.
#pragma once

#include <optional>

#include "gas/relocatable/directory.hpp"
#include "gas/relocatable/directory_station.hpp"
#include "gas/relocatable/metadata_cache.hpp"
#include "gas/relocatable/space_messages.hpp"
#include "net/async.hpp"

namespace hiroba::gas {

class OneSidedDirectory final : public Directory {
public:
    /// @param everything  local memory of this process, as registered with `async`
    OneSidedDirectory(const SpaceShape& shape, net::Async& async, net::Handle words,
                      net::Handle everything, MetadataCache& cache, SpaceMessages& messages,
                      const DeadNodes& dead)
        : shape_(shape),
          async_(async),
          words_(words),
          everything_(everything),
          cache_(cache),
          messages_(messages),
          dead_(dead) {}

    std::optional<PageWord> look(std::uint64_t page) noexcept override;
    void ask(std::span<const AskedPage> pages) override;
    std::vector<std::uint64_t> claim(std::uint64_t token,
                                     std::span<const std::uint64_t> pages) override;
    void commit(std::span<const CommittedPage> pages) override;

private:
    /// Where a page's words are, found once for all that is done to them.
    struct Words {
        NodeId at;
        std::uint64_t offset = 0;
        DirectoryWords reach = nullptr;  ///< for this CPU; nullptr: by requests
    };
    Words words_of(std::uint64_t page) const noexcept;
    /// Changes word `index` of a page's words (DirectoryWords).
    /// @return the value before, or nothing when the directory node is lost
    std::optional<std::uint64_t> change(const Words& words, std::uint64_t index, net::AtomicOp op,
                                        std::uint64_t operand, std::uint64_t expected = 0);
    std::optional<std::uint64_t> load_page_word(const Words& words);
    std::optional<std::uint64_t> enter(const Words& words, std::uint32_t rank) {
        return change(words, sharer_index(rank), net::AtomicOp::fetch_or, rank_bit(rank));
    }
    /// False: the directory node is lost.
    bool load_sharers(const Words& words, RankSet& sharers);
    void ask_one(const AskedPage& asked);

    SpaceShape shape_;
    net::Async& async_;
    net::Handle words_, everything_;
    MetadataCache& cache_;
    SpaceMessages& messages_;
    const DeadNodes& dead_;
};

}  // namespace hiroba::gas
