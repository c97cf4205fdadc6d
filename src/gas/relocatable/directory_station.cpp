// SPDX-License-Identifier: BSD-3-Clause
#include "gas/relocatable/directory_station.hpp"

#include <algorithm>
#include <mutex>

#include "base/fatal.hpp"
#include "hiroba/gas_types.hpp"

namespace hiroba::gas {

std::uint32_t PublishedRun::owner(std::uint64_t page, std::uint32_t nodes) const noexcept {
    const PageShares shares{static_cast<Distribution::Kind>(kind), rank, block_pages, pages, nodes};
    return shares.owner(page - first);
}

std::uint32_t PublishedRun::limit(std::uint64_t page, std::uint64_t page_bytes) const noexcept {
    return static_cast<std::uint32_t>(std::min(page_bytes, bytes - (page - first) * page_bytes));
}

/// A page whose mover died is lost with it: some may have stopped, some may read the new copy.
PageWord after_losses(PageWord word, const DeadNodes& dead) noexcept {
    if (word.moving && dead.contains(word.mover)) {
        word.moving = false;
        word.lost = true;
        word.owner = word.mover;
    } else if (!word.moving && word.live && dead.contains(word.owner)) {
        word.lost = true;
    }
    return word;
}

/// Messages to several nodes, one for each node and token.
class DirectoryStation::Answers {
public:
    std::vector<std::uint64_t>& to(NodeId node, SpaceMessageKind kind, std::uint64_t token) {
        for (SpaceMessage& message : letters_) {
            if (message.to == node && message.kind == kind && message.token == token)
                return message.words;
        }
        letters_.push_back({node, kind, token, {}});
        return letters_.back().words;
    }
    std::vector<SpaceMessage> take() { return std::move(letters_); }

private:
    std::vector<SpaceMessage> letters_;
};

void DirectoryStation::check(std::uint64_t page, NodeId from) const noexcept {
    HIROBA_INVARIANT(page < shape_.pages() && shape_.directory_of(page) == self_,
                     "node %u asks node %u for page %lu of %lu", from.value, self_.value, page,
                     shape_.pages());
}

/// False: the page is moving.
bool DirectoryStation::serve(const Waiter& waiter, std::uint64_t page, Answers& answers) {
    if (dead_.contains(waiter.from.value)) return true;  // it wants nothing any more
    const PageWord word = after_losses(PageWord::unpack(word_of(page).load()), dead_);
    if (word.moving) return false;
    if (!waiter.claims) {
        // The entry's token came in the tag; it goes back there.
        auto& words = answers.to(waiter.from, SpaceMessageKind::told, 0);
        if (word.live) add_sharer(page, waiter.from.value);
        words.insert(words.end(), {tagged(page, waiter.token), word.pack()});
        return true;
    }
    PageWord claimed = word;
    claimed.moving = word.live && !word.lost;
    claimed.mover = static_cast<std::uint16_t>(waiter.from.value);
    if (claimed.moving) word_of(page).store(claimed.pack());
    auto& words = answers.to(waiter.from, SpaceMessageKind::granted, waiter.token);
    words.insert(words.end(), {page, word.pack()});
    for (std::uint32_t i = 1; i < shape_.entry_words(); ++i) {
        words.push_back(word_of(page, i).load());
    }
    return true;
}

/// Answers the nodes that wait, up to and with the next one that moves the page.
void DirectoryStation::serve_queue(std::uint64_t page, Answers& answers) {
    const auto found = queues_.find(page);
    if (found == queues_.end()) return;
    auto& queue = found->second;
    while (!queue.empty() && serve(queue.front(), page, answers)) queue.pop_front();
    if (queue.empty()) queues_.erase(found);
}

std::vector<SpaceMessage> DirectoryStation::asked(NodeId from, std::uint64_t,
                                                  SpaceMessages::Words words) {
    Answers answers;
    const std::scoped_lock guard{latch_};
    for (const std::uint64_t tagged_page : words) {
        const std::uint64_t page = page_of(tagged_page);
        check(page, from);
        const Waiter waiter{from, false, tag_of(tagged_page)};
        if (serve(waiter, page, answers)) continue;
        queues_[page].push_back(waiter);
        // The mover may take this node along. The node is a sharer from now on: the next mover,
        // which may stand before it in the queue, must know of it.
        add_sharer(page, from.value);
        const PageWord word = PageWord::unpack(word_of(page).load());
        answers.to(NodeId{word.mover}, SpaceMessageKind::join, 0)
            .push_back(tagged(page, from.value));
    }
    return answers.take();
}

std::vector<SpaceMessage> DirectoryStation::claimed(NodeId from, std::uint64_t token,
                                                    SpaceMessages::Words words) {
    Answers answers;
    const std::scoped_lock guard{latch_};
    for (const std::uint64_t page : words) {
        check(page, from);
        const Waiter waiter{from, true, token};
        if (!serve(waiter, page, answers)) queues_[page].push_back(waiter);
    }
    return answers.take();
}

std::vector<SpaceMessage> DirectoryStation::committed(SpaceMessages::Words words) {
    Answers answers;
    const std::scoped_lock guard{latch_};
    for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
        const PageWord word = PageWord::unpack(words[i + 1]);
        if (word.live) add_sharer(words[i], word.owner);
        word_of(words[i]).store(words[i + 1]);
        serve_queue(words[i], answers);
    }
    return answers.take();
}

void DirectoryStation::publish(const PublishedRun& run) noexcept {
    const std::scoped_lock guard{latch_};
    for (std::uint64_t page = run.first; page < run.first + run.pages; ++page) {
        if (shape_.directory_of(page) != self_) continue;
        const PageWord before = PageWord::unpack(word_of(page).load());
        PageWord word;
        word.live = true;
        word.fixed = run.fixed;
        word.owner = static_cast<std::uint16_t>(run.owner(page, shape_.nodes));
        word.limit = run.limit(page, shape_.page_bytes());
        word.version = before.next_version();
        // The page keeps the sharers it had before it was freed: a rank that enters itself as one
        // at this moment may find the page live.
        add_sharer(page, word.owner);
        word_of(page).store(word.pack());
    }
}

std::vector<SpaceMessage> DirectoryStation::lost(NodeId) {
    Answers answers;
    const std::scoped_lock guard{latch_};
    std::vector<std::uint64_t> pages;
    for (const auto& [page, queue] : queues_) pages.push_back(page);
    for (const std::uint64_t page : pages) serve_queue(page, answers);
    return answers.take();
}

}  // namespace hiroba::gas
