// SPDX-License-Identifier: BSD-3-Clause
// Role: see questions.hpp.
#include "net/questions.hpp"

#include <algorithm>
#include <mutex>

#include "base/fatal.hpp"
#include "base/thread_context.hpp"
#include "net/wire/active_message.hpp"

namespace hiroba::net {

namespace {
constexpr std::uint64_t one_use = std::uint64_t{1} << 24;
}  // namespace

Questions::Questions(Async& async)
    : async_(async), slots_(slots_max), lost_(async.endpoint().nodes(), false) {
    for (std::uint32_t slot = slots_max; slot-- > 0;) {
        free_.push_back(static_cast<std::uint16_t>(slot));
        slots_[slot].asking.tag = slot;
    }
    async.on(Async::question_id, &Questions::came, this);
    async.on(Async::answer_id, &Questions::answered, this);
}

Questions::Slot* Questions::claim(const Asking& asking) noexcept {
    const std::scoped_lock guard{latch_};
    if (free_.empty()) return nullptr;
    Slot& slot = slots_[free_.back()];
    free_.pop_back();
    const std::uint64_t uses = (slot.asking.tag & ~(one_use - 1)) + one_use;
    const std::uint64_t number = slot_of(slot.asking.tag);
    slot.asking = asking;
    slot.asking.tag = uses | static_cast<std::uint64_t>(asking.about) << 16 | number;
    slot.state = State::asked;
    under_way_.fetch_add(1);
    return &slot;
}

bool Questions::release(std::uint64_t tag, State from) noexcept {
    const std::scoped_lock guard{latch_};
    Slot& slot = slots_[slot_of(tag)];
    if (slot.asking.tag != tag || slot.state != from) return false;
    slot.state = State::free;
    free_.push_back(static_cast<std::uint16_t>(slot_of(tag)));
    return true;
}

// Taken off last: who waits for idle() may destroy what the callback uses.
void Questions::end(const Completion& done, Outcome outcome) noexcept {
    offload::run_callback(this_thread(), done, outcome);
    under_way_.fetch_sub(1);
    async_.endpoint().wake_local();
}

Submission Questions::try_ask(const Asking& asking,
                              const std::array<std::uint64_t, words_max>& words,
                              Bytes payload) noexcept {
    Endpoint& endpoint = async_.endpoint();
    const bool is_handler = endpoint.in_handler();
    if (!offload::may_run_callback(this_thread()) || (!is_handler && !endpoint.may_send(asking.to)))
        return Submission::again;
    const Slot* const slot = claim(asking);
    if (slot == nullptr) return Submission::again;
    const std::uint64_t tag = slot->asking.tag;
    const std::uint64_t arguments[] = {tag, words[0], words[1], words[2], words[3]};
    wire::ActiveWords head;
    const wire::ActiveHeader header{Async::question_id.value, std::size(arguments)};
    const std::array<Bytes, 2> parts{wire::encode_active(header, arguments, head), payload};
    Post sent = Post::again;
    if (is_handler) {
        // It never waits there: what finds the queue full leaves with later polls.
        endpoint.send(asking.to, MessageKind::active, Urgency::wake_service, parts);
        sent = Post::done;
    }
    if (!is_handler)
        endpoint.try_post(
            [&] {
                return endpoint.provider().send(asking.to, MessageKind::active,
                                                Urgency::wake_service, parts);
            },
            sent);
    if (sent == Post::again) {
        // Otherwise its node was lost meanwhile, and it is over.
        if (!release(tag, State::asked)) return Submission::accepted;
        under_way_.fetch_sub(1);
        return Submission::again;
    }
    bool is_lost;
    {
        const std::scoped_lock guard{latch_};
        is_lost = lost_[asking.to.value];
    }
    if (is_lost && release(tag, State::asked)) end(asking.done, Outcome::peer_lost);
    return Submission::accepted;
}

void Questions::ask_again(Asking& asking, const std::array<std::uint64_t, words_max>& words,
                          Bytes payload) noexcept {
    const std::uint64_t arguments[] = {asking.tag, words[0], words[1], words[2], words[3]};
    async_.send_inner(asking.to, Async::question_id, arguments, payload);
}

void Questions::came(void* context, NodeId from, std::span<const std::uint64_t> words,
                     Bytes payload) noexcept {
    auto& self = *static_cast<Questions*>(context);
    const std::size_t about = words.empty() ? abouts : words[0] >> 16 & 0xff;
    HIROBA_INVARIANT(words.size() == 1 + words_max && about < abouts,
                     "node %u asks something of %lu words that no node asks", from.value,
                     words.size());
    const Registered& registered = self.answerers_[about];
    HIROBA_INVARIANT(registered.answerer != nullptr, "nobody answers question %lu of node %u",
                     about, from.value);
    registered.answerer(registered.context,
                        {self, from, words[0], {words[1], words[2], words[3], words[4]}, payload});
}

void Questions::answered(void* context, NodeId from, std::span<const std::uint64_t> words,
                         Bytes payload) noexcept {
    auto& self = *static_cast<Questions*>(context);
    HIROBA_INVARIANT(words.size() == 2 && slot_of(words[0]) < slots_max,
                     "node %u answers in %lu words", from.value, words.size());
    Slot& slot = self.slots_[slot_of(words[0])];
    {
        const std::scoped_lock guard{self.latch_};
        const bool is_awaited =
            slot.state == State::asked && slot.asking.tag == words[0] && slot.asking.to == from;
        if (!is_awaited) return;
        slot.state = State::answering;
    }
    const Completion done = slot.asking.done;
    Outcome outcome = Outcome::done;
    if (!slot.asking.answered(self, slot.asking, words[1], payload)) {
        const std::scoped_lock guard{self.latch_};
        if (!self.lost_[from.value]) {
            slot.state = State::asked;
            return;
        }
        outcome = Outcome::peer_lost;
    }
    self.release(words[0], State::answering);
    self.end(done, outcome);
}

void Questions::lose(NodeId node) noexcept {
    {
        const std::scoped_lock guard{latch_};
        lost_[node.value] = true;
    }
    for (Slot& slot : slots_) {
        Completion done;
        std::uint64_t tag = 0;
        {
            const std::scoped_lock guard{latch_};
            if (slot.state != State::asked || slot.asking.to != node) continue;
            done = slot.asking.done;
            tag = slot.asking.tag;
        }
        if (release(tag, State::asked)) end(done, Outcome::peer_lost);
    }
}

}  // namespace hiroba::net
