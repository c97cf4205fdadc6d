// SPDX-License-Identifier: BSD-3-Clause
// Role: a barrier of all nodes after which each has seen what any wrote before, and a word of each.
// It is that of net/kick/barrier_phases.hpp, whose marks are mails: words and memory's news.
//
// Up to 8 nodes mail each other. More form a tree: what goes up has the words of all below, in the
// order of for_words(), and the news of the way, since a node has acquired what came from below
// before it tells; what goes down has all words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "dsm/dsm.hpp"
#include "dsm/heap/heap.hpp"
#include "net/kick/kick.hpp"
#include "net/net.hpp"

namespace hiroba::dsm {

/// Thread: one per node.
class NewsBarrier {
public:
    /// What a node tells the others.
    struct Word {
        std::uint64_t value = 0;
        std::uint64_t call = 0;  ///< what it calls, so that the nodes can compare
    };
    /// Whether the program has other threads on this node. Called inside of meet().
    using AskOthers = std::function<Others()>;
    /// @param mail  used by nothing else; attached before meet()
    static Result<std::unique_ptr<NewsBarrier>> create(net::Endpoint& endpoint,
                                                       SharedMemory& memory, Heap& heap,
                                                       net::kick::Mailboxes& mail,
                                                       AskOthers ask_others);

    /// Returns once every node has called it. The words in rank order, until the next call.
    /// Where the caller is the program's only thread here, it brings what was used behind this
    /// place before (this thread's SyncPlace).
    std::span<const Word> meet(Word word) noexcept;

private:
    using Way = net::kick::Way;
    using TreeNode = net::kick::TreeNode;
    /// Meets net::kick::Marks.
    struct NewsMarks {
        NewsBarrier* barrier;
        void tell(Way way, const TreeNode& here, std::uint64_t phase) noexcept;
        bool have_come(Way way, const TreeNode& here, std::uint64_t phase) noexcept;
        void take(Way way, const TreeNode& here, std::uint64_t phase) noexcept;
    };

    NewsBarrier(net::Endpoint& endpoint, SharedMemory& memory, Heap& heap,
                net::kick::Mailboxes& mail, AskOthers ask_others);
    NewsBarrier(const NewsBarrier&) = delete;
    NewsBarrier& operator=(const NewsBarrier&) = delete;
    /// The nodes whose words a mail has: its author, the nodes below as well, or all.
    enum class Words : std::uint8_t { own, subtree, all };
    void send(std::uint32_t to, Words which) noexcept;
    void receive(std::uint32_t from, Words which) noexcept;
    /// Calls act(words) for each run of words in a mail of `author`.
    template <class Act>
    void for_words(Words which, std::uint32_t author, Act&& act) noexcept;
    void everyone_knows() noexcept;
    Others others() noexcept;
    void acquire() noexcept;

    SharedMemory& memory_;
    Heap& heap_;
    net::kick::Mailboxes& mail_;
    TreeNode here_;
    net::kick::Shape shape_;
    std::vector<Word> words_;  ///< of the nodes, in the present barrier
    AskOthers ask_others_;
    std::optional<Others> others_;       ///< the answer in the present barrier; none: not asked
    bool asks_early_ = false;            ///< the last barrier had something to tell
    std::size_t least_news_ = SIZE_MAX;  ///< bytes of news that tell nothing
    net::kick::BarrierPhases<NewsMarks> phases_;
};

}  // namespace hiroba::dsm
