// SPDX-License-Identifier: BSD-3-Clause
// Role: what a node asks of the directory nodes of pages: where a page is, to be the one that
// changes it, that it has changed. Done by messages, or one-sidedly by remote atomics.
// Source: Endo & Taura, MGAS-2, section 3.2; one-sided directories: section 6 (future work).
//
// Invariant: from the grant of a page to its commit no other node is granted it, and none is told
// of it: a node that asks waits. Each node told before is among the sharers of the grant.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "gas/relocatable/dead_nodes.hpp"
#include "gas/relocatable/page_word.hpp"

namespace hiroba::gas {

struct AskedPage {
    std::uint64_t page = 0;
    std::uint16_t token = 0;  ///< of MetadataCache::begin_ask()
};

/// A page that this node alone may change until it commits.
struct GrantedPage {
    std::uint64_t page = 0;
    PageWord word;    ///< as it is; `moving` means that its last mover died
    RankSet sharers;  ///< nodes that may have metadata
};

struct CommittedPage {
    std::uint64_t page = 0;
    PageWord word;  ///< as it is from now on
};

/// Pages of one allocation, of which each directory node notes its own.
struct PublishedRun {
    std::uint64_t first = 0, pages = 0;
    std::uint64_t bytes = 0;  ///< that are allocated
    std::uint8_t kind = 0;    ///< Distribution::Kind
    bool fixed = false;
    std::uint32_t rank = 0;         ///< of one_rank
    std::uint64_t block_pages = 1;  ///< of cyclic

    std::uint32_t owner(std::uint64_t page, std::uint32_t nodes) const noexcept;
    std::uint32_t limit(std::uint64_t page, std::uint64_t page_bytes) const noexcept;
};

/// Thread: any; not from handlers. No latch may be held but by look().
class Directory {
public:
    virtual ~Directory() = default;
    /// The page's word, if it can be told now without waiting and the page is not moving; this node
    /// is among the sharers then. Called with the page's latch held.
    virtual std::optional<PageWord> look(std::uint64_t) noexcept { return std::nullopt; }
    /// The answers go to the cache, perhaps later. May wait for pages that are moving.
    virtual void ask(std::span<const AskedPage> pages) = 0;
    /// Claims pages under the number of a change's owner. Grants may come at once or later, in
    /// parts, as messages (SpaceMessageKind::granted).
    /// @return those that another mover has and for which no grant will come: claim them again
    virtual std::vector<std::uint64_t> claim(std::uint64_t token,
                                             std::span<const std::uint64_t> pages) = 0;
    virtual void commit(std::span<const CommittedPage> pages) = 0;
};

}  // namespace hiroba::gas
