// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/sync/news_barrier.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "base/fatal.hpp"

namespace hiroba::dsm {

using net::kick::Shape;

Result<std::unique_ptr<NewsBarrier>> NewsBarrier::create(net::Endpoint& endpoint,
                                                         SharedMemory& memory, Heap& heap,
                                                         net::kick::Mailboxes& mail,
                                                         AskOthers ask_others) {
    constexpr std::size_t most = net::kick::Mailboxes::mail_bytes_max;
    const bool is_tree = net::kick::shape_for(endpoint.nodes()) == Shape::tree;
    const std::size_t words = is_tree ? endpoint.nodes() : 1;
    const std::size_t longest = words * sizeof(Word) + memory.news_bytes_max();
    if (longest > most)
        return Error{ErrorKind::usage, "a barrier's mail of " + std::to_string(longest) +
                                           " bytes is longer than " + std::to_string(most) +
                                           "; set HIROBA_NOTICES to a smaller number"};
    return std::unique_ptr<NewsBarrier>(
        new NewsBarrier(endpoint, memory, heap, mail, std::move(ask_others)));
}

NewsBarrier::NewsBarrier(net::Endpoint& endpoint, SharedMemory& memory, Heap& heap,
                         net::kick::Mailboxes& mail, AskOthers ask_others)
    : memory_(memory),
      heap_(heap),
      mail_(mail),
      here_{endpoint.self().value, endpoint.nodes()},
      shape_(net::kick::shape_for(here_.members)),
      words_(here_.members),
      ask_others_(std::move(ask_others)),
      phases_(NewsMarks{this}, here_, shape_) {}

std::span<const NewsBarrier::Word> NewsBarrier::meet(Word word) noexcept {
    others_.reset();
    memory_.release(std::exchange(asks_early_, false) ? others() : Others::running);
    heap_.flush_remote_frees();  // before the news are encoded: it may release once more
    words_[here_.index] = word;
    phases_.arrive();
    while (!phases_.is_passed()) {
        mail_.wait_for([this] { return phases_.may_go_on(); });
        phases_.go_on();
    }
    everyone_knows();
    heap_.accept_remote_frees();
    if (others_ == Others::stopped) memory_.bring_expected();
    return words_;
}

/// Asked once in a barrier, and only where there is something to do: the answer costs a system
/// call.
Others NewsBarrier::others() noexcept {
    if (!others_) others_ = ask_others_();
    asks_early_ = true;
    return *others_;
}

void NewsBarrier::acquire() noexcept {
    memory_.acquire(memory_.has_news() ? others() : Others::running);
}

/// News went to each node, or up to the root and down from it.
void NewsBarrier::everyone_knows() noexcept {
    if (shape_ == Shape::all_to_all) return memory_.everyone_knows();
    if (!here_.is_root()) {
        const NodeId parent{here_.parent()};
        return memory_.everyone_knows_through({&parent, 1});
    }
    std::array<NodeId, net::kick::tree_arity> told;
    for (std::uint32_t branch = 0; branch < here_.children(); ++branch)
        told[branch] = NodeId{here_.child(branch)};
    memory_.everyone_knows_through(std::span(told).first(here_.children()));
}

// --- mails ---------------------------------------------------------------------------------------

// A subtree's nodes of one depth follow each other.
template <class Act>
void NewsBarrier::for_words(Words which, std::uint32_t author, Act&& act) noexcept {
    if (which == Words::own) return act(std::span(words_).subspan(author, 1));
    if (which == Words::all) return act(std::span(words_));
    std::uint64_t first = author, last = author;
    while (first < words_.size()) {
        const std::uint64_t end = std::min<std::uint64_t>(last + 1, words_.size());
        act(std::span(words_).subspan(first, end - first));
        first = TreeNode{static_cast<std::uint32_t>(first), here_.members}.child(0);
        last = last * net::kick::tree_arity + net::kick::tree_arity;
    }
}

void NewsBarrier::send(std::uint32_t to, Words which) noexcept {
    const MutableBytes mail = mail_.compose(to);
    std::size_t at = 0;
    for_words(which, here_.index, [&](std::span<const Word> words) {
        std::memcpy(mail.data() + at, words.data(), words.size_bytes());
        at += words.size_bytes();
    });
    const std::size_t news = memory_.news_for(NodeId{to}, mail.subspan(at));
    least_news_ = std::min(least_news_, news);
    asks_early_ |= news > least_news_;
    mail_.post(to, at + news);
}

void NewsBarrier::receive(std::uint32_t from, Words which) noexcept {
    const Bytes mail = mail_.front(from);
    std::size_t at = 0;
    for_words(which, from, [&](std::span<Word> words) {
        HIROBA_INVARIANT(mail.size() >= at + words.size_bytes(), "arrival of %lu bytes from %u",
                         mail.size(), from);
        std::memcpy(words.data(), mail.data() + at, words.size_bytes());
        at += words.size_bytes();
    });
    memory_.learn(NodeId{from}, mail.subspan(at));
    mail_.take(from);
}

// --- marks ---------------------------------------------------------------------------------------

void NewsBarrier::NewsMarks::tell(Way way, const TreeNode& here, std::uint64_t) noexcept {
    if (way == Way::up) return barrier->send(here.parent(), Words::subtree);
    if (way == Way::down) {
        for (std::uint32_t branch = 0; branch < here.children(); ++branch)
            barrier->send(here.child(branch), Words::all);
        return;
    }
    // Starting behind oneself spreads the load.
    for (std::uint32_t i = 1; i < here.members; ++i)
        barrier->send((here.index + i) % here.members, Words::own);
}

bool NewsBarrier::NewsMarks::have_come(Way way, const TreeNode& here, std::uint64_t) noexcept {
    net::kick::Mailboxes& mail = barrier->mail_;
    if (way == Way::down) return mail.has_come(here.parent());
    if (way == Way::up) {
        for (std::uint32_t branch = 0; branch < here.children(); ++branch)
            if (!mail.has_come(here.child(branch))) return false;
        return true;
    }
    for (std::uint32_t node = 0; node < here.members; ++node)
        if (node != here.index && !mail.has_come(node)) return false;
    return true;
}

/// News that this node has acquired are part of those that it tells next.
void NewsBarrier::NewsMarks::take(Way way, const TreeNode& here, std::uint64_t) noexcept {
    if (way == Way::down) {
        barrier->receive(here.parent(), Words::all);
    } else if (way == Way::up) {
        for (std::uint32_t branch = 0; branch < here.children(); ++branch)
            barrier->receive(here.child(branch), Words::subtree);
        if (here.children() == 0) return;
    } else {
        for (std::uint32_t node = 0; node < here.members; ++node)
            if (node != here.index) barrier->receive(node, Words::own);
    }
    barrier->acquire();
}

}  // namespace hiroba::dsm
