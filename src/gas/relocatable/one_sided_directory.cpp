// SPDX-License-Identifier: BSD-3-Clause
#include "gas/relocatable/one_sided_directory.hpp"

#include "base/clock.hpp"
#include "gas/relocatable/request.hpp"
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
    const std::uint64_t offset = place.index * sizeof(DirectoryEntry);
    auto* const reach =
        base == nullptr ? nullptr : reinterpret_cast<DirectoryEntry*>(base + offset);
    return {place.at, offset, reach};
}

std::optional<std::uint64_t> OneSidedDirectory::load(const Words& words, Which which) {
    if (words.reach == nullptr) return change(words, which, net::AtomicOp::fetch_or, 0);
    if (dead_.contains(words.at.value)) return std::nullopt;
    std::uint64_t& word = which == Which::word ? words.reach->word : words.reach->sharers;
    return std::atomic_ref(word).load();
}

std::optional<std::uint64_t> OneSidedDirectory::change(const Words& words, Which which,
                                                       net::AtomicOp op, std::uint64_t operand,
                                                       std::uint64_t expected) {
    if (dead_.contains(words.at.value)) return std::nullopt;
    if (words.reach != nullptr) {
        std::uint64_t& word = which == Which::word ? words.reach->word : words.reach->sharers;
        return net::apply_atomic(std::atomic_ref(word), op, operand, expected);
    }
    const NodeId at = words.at;
    const std::uint64_t offset = words.offset + static_cast<std::uint64_t>(which);
    std::uint64_t old = 0;
    Request request;
    request.issue(async_, [&](net::Callback done) {
        return async_.try_atomic({at,
                                  {words_, offset},
                                  op,
                                  8,
                                  operand,
                                  expected,
                                  local_address(everything_, &old),
                                  done});
    });
    return request.wait(async_) ? std::optional(old) : std::nullopt;
}

std::optional<PageWord> OneSidedDirectory::look(std::uint64_t page) noexcept {
    const Words words = words_of(page);
    if (words.reach == nullptr || dead_.mask() != 0) return std::nullopt;
    const std::uint64_t self_bit = std::uint64_t{1} << async_.endpoint().self().value;
    // Who has ever entered itself is there: a mover that claims later than the load of the word
    // below reads the sharers later still.
    const std::atomic_ref sharers{words.reach->sharers};
    if ((sharers.load() & self_bit) == 0) sharers.fetch_or(self_bit);
    const PageWord word = PageWord::unpack(std::atomic_ref(words.reach->word).load());
    if (word.moving || !word.live || word.lost) return std::nullopt;
    return word;
}

void OneSidedDirectory::ask_one(const AskedPage& asked) {
    const std::uint64_t self = async_.endpoint().self().value;
    const Words words = words_of(asked.page);
    if (!change(words, Which::sharers, net::AtomicOp::fetch_or, std::uint64_t{1} << self)) {
        return cache_.abandon(asked.page);
    }
    std::uint64_t pause_ns = look_again_ns;
    const auto answered = [&] { return cache_.word(asked.page).state != PageState::asking; };
    while (true) {
        const auto found = load(words, Which::word);
        if (!found) return cache_.abandon(asked.page);
        const PageWord word = after_losses(PageWord::unpack(*found), dead_);
        if (!word.moving) return cache_.told(asked.page, asked.token, word);
        // The mover may have seen this node among the sharers, and its waves come as messages.
        if (async_.endpoint().wait_until(answered, now_ns() + pause_ns)) return;
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
        std::optional<std::uint64_t> found = load(words, Which::word);
        while (found) {
            const PageWord word = after_losses(PageWord::unpack(*found), dead_);
            if (word.moving) {
                busy.push_back(page);
                break;
            }
            PageWord claimed = word;
            claimed.moving = word.live && !word.lost;
            claimed.mover = static_cast<std::uint8_t>(self);
            if (claimed.moving) {
                const auto before =
                    change(words, Which::word, net::AtomicOp::compare_swap, claimed.pack(), *found);
                if (before != found) {
                    found = before;
                    continue;
                }
            }
            // Without the sharers nobody may move it; with its directory node the page is lost.
            if (const auto sharers = load(words, Which::sharers)) {
                granted.insert(granted.end(), {page, word.pack(), *sharers});
            }
            break;
        }
        // A dead directory node grants nothing; the claim's owner knows.
    }
    if (!granted.empty()) {
        mail_.send(async_.endpoint().self(), MailKind::granted, token, granted);
    }
    return busy;
}

void OneSidedDirectory::commit(std::span<const CommittedPage> pages) {
    for (const CommittedPage& it : pages) {
        const std::uint64_t owner = std::uint64_t{1} << it.word.owner;
        const Words words = words_of(it.page);
        if (it.word.live) change(words, Which::sharers, net::AtomicOp::fetch_or, owner);
        change(words, Which::word, net::AtomicOp::swap, it.word.pack());
    }
}

}  // namespace hiroba::gas
