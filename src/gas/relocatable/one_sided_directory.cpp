// SPDX-License-Identifier: BSD-3-Clause
#include "gas/relocatable/one_sided_directory.hpp"

#include "base/clock.hpp"
#include "gas/relocatable/request.hpp"
#include "net/all_memory.hpp"
#include "net/provider/apply_atomic.hpp"

namespace hiroba::gas {
namespace {

/// How long to leave a moving page alone before looking again: about a message's way.
constexpr std::uint64_t look_again_ns = 2'000, look_again_max_ns = 100'000;

}  // namespace

OneSidedDirectory::Words OneSidedDirectory::words_of(std::uint64_t page) const noexcept {
    const auto place = shape_.place_of_words(page);
    const NodeId self = async_.endpoint().self();
    std::byte* const base =
        place.at == self ? async_.local(words_).data() : async_.mapped(words_, place.at);
    const std::uint64_t offset = place.index * shape_.entry_words() * 8;
    auto* const reach = base == nullptr ? nullptr : reinterpret_cast<DirectoryWords>(base + offset);
    return {place.at, offset, reach};
}

std::optional<std::uint64_t> OneSidedDirectory::load_page_word(const Words& words) {
    if (words.reach == nullptr) return change(words, 0, net::AtomicOp::fetch_or, 0);
    if (dead_.contains(words.at.value)) return std::nullopt;
    return std::atomic_ref(words.reach[0]).load();
}

/// Called once this node's mark is in the page's word: a rank that has entered itself before it
/// looked at that word is seen here. So the words themselves may be read one by one.
bool OneSidedDirectory::load_sharers(const Words& words, RankSet& sharers) {
    if (dead_.contains(words.at.value)) return false;
    const std::uint32_t count = shape_.sharer_words();
    if (words.reach != nullptr) {
        for (std::uint32_t i = 0; i < count; ++i) {
            sharers.word(i) = std::atomic_ref(words.reach[1 + i]).load();
        }
        return true;
    }
    const NodeId at = words.at;
    const std::uint64_t offset = words.offset + 8;
    Request request;
    request.issue(async_, [&](net::Callback done) {
        return async_.try_read({at,
                                {words_, offset},
                                net::in_all_memory(everything_, &sharers.word(0)),
                                std::size_t{count} * 8,
                                done});
    });
    return request.wait(async_);
}

std::optional<std::uint64_t> OneSidedDirectory::change(const Words& words, std::uint64_t index,
                                                       net::AtomicOp op, std::uint64_t operand,
                                                       std::uint64_t expected) {
    if (dead_.contains(words.at.value)) return std::nullopt;
    if (words.reach != nullptr) {
        return net::apply_atomic(std::atomic_ref(words.reach[index]), op, operand, expected);
    }
    const NodeId at = words.at;
    const std::uint64_t offset = words.offset + index * 8;
    std::uint64_t old = 0;
    Request request;
    request.issue(async_, [&](net::Callback done) {
        return async_.try_atomic({at,
                                  {words_, offset},
                                  op,
                                  8,
                                  operand,
                                  expected,
                                  net::in_all_memory(everything_, &old),
                                  done});
    });
    return request.wait(async_) ? std::optional(old) : std::nullopt;
}

std::optional<PageWord> OneSidedDirectory::look(std::uint64_t page) noexcept {
    const Words words = words_of(page);
    if (words.reach == nullptr || dead_.count() != 0) return std::nullopt;
    const std::uint32_t self = async_.endpoint().self().value;
    const std::uint64_t self_bit = rank_bit(self);
    // A rank that has once entered itself stays there: a mover that claims later than the load of
    // the word below reads the sharers later still.
    const std::atomic_ref sharers{words.reach[sharer_index(self)]};
    if ((sharers.load() & self_bit) == 0) sharers.fetch_or(self_bit);
    const PageWord word = PageWord::unpack(std::atomic_ref(words.reach[0]).load());
    if (word.moving || !word.live || word.lost) return std::nullopt;
    return word;
}

void OneSidedDirectory::ask_one(const AskedPage& asked) {
    const std::uint32_t self = async_.endpoint().self().value;
    const Words words = words_of(asked.page);
    if (!enter(words, self)) return cache_.abandon(asked.page);
    std::uint64_t pause_ns = look_again_ns;
    const auto answered = [&] { return cache_.word(asked.page).state != PageState::asking; };
    while (true) {
        const auto found = load_page_word(words);
        if (!found) return cache_.abandon(asked.page);
        const PageWord word = after_losses(PageWord::unpack(*found), dead_);
        if (!word.moving) return cache_.told(asked.page, asked.token, word);
        // The mover may have seen this node among the sharers, and its waves come as messages.
        if (async_.endpoint().wait_until(answered, now_ns() + pause_ns)) return;
        // A mover that has not seen this node hears of it now; again and again, since the mover may
        // not have begun yet.
        const std::uint64_t joins[] = {tagged(asked.page, self)};
        messages_.send(NodeId{word.mover}, SpaceMessageKind::join, 0, joins);
        pause_ns = std::min(2 * pause_ns, look_again_max_ns);
    }
}

void OneSidedDirectory::ask(std::span<const AskedPage> pages) {
    for (const AskedPage& asked : pages) ask_one(asked);
}

std::vector<std::uint64_t> OneSidedDirectory::claim(std::uint64_t token,
                                                    std::span<const std::uint64_t> pages) {
    std::vector<std::uint64_t> busy, granted;
    const std::uint64_t self = async_.endpoint().self().value;
    for (const std::uint64_t page : pages) {
        const Words words = words_of(page);
        std::optional<std::uint64_t> found = load_page_word(words);
        while (found) {
            const PageWord word = after_losses(PageWord::unpack(*found), dead_);
            if (word.moving) {
                busy.push_back(page);
                break;
            }
            PageWord claimed = word;
            claimed.moving = word.live && !word.lost;
            claimed.mover = static_cast<std::uint16_t>(self);
            if (claimed.moving) {
                const auto before =
                    change(words, 0, net::AtomicOp::compare_swap, claimed.pack(), *found);
                if (before != found) {
                    found = before;
                    continue;
                }
            }
            // Without the sharers no node may move it; with its directory node the page is lost.
            RankSet sharers;
            if (load_sharers(words, sharers)) {
                granted.insert(granted.end(), {page, word.pack()});
                for (std::uint32_t i = 0; i < shape_.sharer_words(); ++i) {
                    granted.push_back(sharers.word(i));
                }
            }
            break;
        }
        // A dead directory node grants nothing; the claim's owner knows.
    }
    if (!granted.empty()) {
        messages_.send(async_.endpoint().self(), SpaceMessageKind::granted, token, granted);
    }
    return busy;
}

void OneSidedDirectory::commit(std::span<const CommittedPage> pages) {
    for (const CommittedPage& it : pages) {
        const Words words = words_of(it.page);
        if (it.word.live) enter(words, it.word.owner);
        change(words, 0, net::AtomicOp::swap, it.word.pack());
    }
}

}  // namespace hiroba::gas
