// SPDX-License-Identifier: BSD-3-Clause
// Role: see teams.hpp. First the collectives, step by step, then what carries them.
#include "net/teams.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>

#include "base/fatal.hpp"
#include "base/thread_context.hpp"

namespace hiroba::net {
namespace {

using Kind = TeamCall::Kind;

/// Parts of a reduction: what children bring, what members are told, what the root is.
constexpr std::uint32_t step_up = 0, step_down = 1, step_root = 2;

/// Members form a tree: the parent of `i` is `i` without its lowest bit; of 0 that is any.
std::uint32_t lowest_bit(std::uint32_t i, std::uint32_t members) noexcept {
    if (i != 0) return i & (~i + 1);
    std::uint32_t bit = 1;
    while (bit < members) bit *= 2;
    return bit;
}

const char* name_of(Kind kind) noexcept {
    switch (kind) {
        case Kind::barrier: return "a barrier";
        case Kind::broadcast: return "a broadcast";
        case Kind::gather: return "a gather";
        case Kind::all_gather: return "an all-gather";
        case Kind::all_to_all: return "an all-to-all";
        case Kind::reduce: return "a reduce";
        case Kind::all_reduce: return "an all-reduce";
    }
    return "no collective";
}

}  // namespace

// --- collectives ---------------------------------------------------------------------------------

// Round k: a token to the member 2^k ahead, which has heard of 2^k others by then. Tokens stay
// until the last has come.
bool TeamPart::barrier(Place running, std::vector<ToSend>& out) {
    const auto count = static_cast<std::uint32_t>(members_.size());
    const auto before = [&](std::uint32_t k) { return (self_ + count - (1u << k)) % count; };
    std::uint32_t k = 0;
    for (; (1u << k) < count; ++k) {
        if (running->step == k) {
            send(running, (self_ + (1u << k)) % count, k, {}, out);
            running->step = k + 1;
        }
        if (look(*running, k, before(k)) == nullptr) return false;
    }
    while (k-- != 0) drop(*running, k, before(k));
    return true;
}

bool TeamPart::broadcast(Place running, std::uint32_t root, std::uint32_t step,
                         std::vector<ToSend>& out) {
    const auto count = static_cast<std::uint32_t>(members_.size());
    const TeamCall& call = running->call;
    const std::uint32_t mine = (self_ + count - root) % count, bit = lowest_bit(mine, count);
    if (mine != 0) {
        const std::uint32_t parent = (mine - bit + root) % count;
        const Part* const part = look(*running, step, parent);
        if (part == nullptr) return false;
        if (call.bytes != 0) std::memcpy(call.to, part->bytes.data(), call.bytes);
        drop(*running, step, parent);
    }
    for (std::uint32_t far = bit / 2; far != 0; far /= 2)
        if (mine + far < count)
            send(running, (mine + far + root) % count, step, {call.to, call.bytes}, out);
    return true;
}

// Each member sends each other its piece: gathers send all the same one.
bool TeamPart::exchange(Place running, std::vector<ToSend>& out) {
    const auto count = static_cast<std::uint32_t>(members_.size());
    const TeamCall& call = running->call;
    const bool is_gather = call.kind == Kind::gather, pieces = call.kind == Kind::all_to_all;
    const auto piece = [&](std::uint32_t of) {
        return Bytes{call.from + (pieces ? of * call.bytes : 0), call.bytes};
    };
    const bool takes = !is_gather || self_ == call.root;
    if (running->step == 0) {
        running->step = 1;
        for (std::uint32_t far = 1; far < count; ++far) {
            const std::uint32_t to = (self_ + far) % count;
            if (!is_gather || to == call.root) send(running, to, 0, piece(to), out);
        }
        if (takes && call.bytes != 0)
            std::memmove(call.to + self_ * call.bytes, piece(self_).data(), call.bytes);
    }
    if (!takes) return true;
    for (std::uint32_t sender = 0; sender < count; ++sender)
        if (sender != self_ && look(*running, 0, sender) == nullptr) return false;
    for (std::uint32_t sender = 0; sender < count; ++sender) {
        if (sender == self_) continue;
        const Part* const part = look(*running, 0, sender);
        if (call.bytes != 0)
            std::memcpy(call.to + sender * call.bytes, part->bytes.data(), call.bytes);
        drop(*running, 0, sender);
    }
    return true;
}

// Up the tree, whose subtrees are neighbours: the brackets of the sum depend on the number of
// members alone. What comes together is at member 0, and goes to all or to the root.
bool TeamPart::reduce(Place running, std::vector<ToSend>& out) {
    const auto count = static_cast<std::uint32_t>(members_.size());
    const TeamCall& call = running->call;
    const std::uint32_t bit = lowest_bit(self_, count);
    const Bytes values{call.to, call.bytes};
    // `step`: the children that have come, a bit each, and whether this member's part has gone up.
    constexpr std::uint32_t gone_up = 1u << 31;
    for (std::uint32_t far = 1; far < bit && self_ + far < count; far *= 2) {
        if ((running->step & far) != 0) continue;
        const Part* const part = look(*running, step_up, self_ + far);
        if (part == nullptr) return false;
        call.each(call.with, call.to, part->bytes.data(), call.bytes / call.value_bytes);
        drop(*running, step_up, self_ + far);
        running->step |= far;
    }
    const bool is_first = (running->step & gone_up) == 0;
    running->step |= gone_up;
    if (is_first && self_ != 0) send(running, self_ - bit, step_up, values, out);
    if (call.kind == Kind::all_reduce) return broadcast(running, 0, step_down, out);
    if (call.root == 0) return true;
    if (self_ == 0) send(running, call.root, step_root, values, out);
    if (self_ != call.root) return true;
    const Part* const part = look(*running, step_root, 0);
    if (part == nullptr) return false;
    std::memcpy(call.to, part->bytes.data(), call.bytes);
    drop(*running, step_root, 0);
    return true;
}

void TeamPart::carry_on(Place running, std::vector<ToSend>& out) {
    if (running->is_over) return;
    switch (running->call.kind) {
        case Kind::barrier: running->is_over = barrier(running, out); break;
        case Kind::broadcast:
            running->is_over = broadcast(running, running->call.root, 0, out);
            break;
        case Kind::gather:
        case Kind::all_gather:
        case Kind::all_to_all: running->is_over = exchange(running, out); break;
        case Kind::reduce:
        case Kind::all_reduce: running->is_over = reduce(running, out); break;
    }
}

// --- parts ---------------------------------------------------------------------------------------

TeamPart::Told TeamPart::told_of(const TeamCall& call) noexcept {
    return {static_cast<std::uint64_t>(call.kind) << 56 |
                static_cast<std::uint64_t>(call.value_bytes & 0xff'ffff) << 32 | call.root,
            call.bytes};
}

std::string TeamPart::describe(const Told& told) {
    const auto kind = static_cast<Kind>(told.what >> 56);
    return std::string(name_of(kind)) + " of " + std::to_string(told.bytes) + " bytes (" +
           std::to_string(told.what >> 32 & 0xff'ffff) + " a value, root " +
           std::to_string(told.what & 0xffff'ffff) + ")";
}

void TeamPart::compare(const Running& running, NodeId sender, const Told& told) const noexcept {
    if (told == running.told) [[likely]]
        return;
    fatal(
        "collective number %lu of a team of %lu: node %u is in %s, while node %u is in %s; every "
        "member makes the same calls in the same order with equal sizes",
        running.number, members_.size(), members_[self_].value, describe(running.told).c_str(),
        sender.value, describe(told).c_str());
}

const TeamPart::Part* TeamPart::look(const Running& running, std::uint32_t step,
                                     std::uint32_t sender) {
    const auto found = parts_.find({running.number, step, members_[sender].value});
    if (found == parts_.end() || !found->second.is_whole) return nullptr;
    const Part& part = found->second;
    compare(running, members_[sender], part.told);
    return &part;
}

void TeamPart::drop(const Running& running, std::uint32_t step, std::uint32_t sender) {
    parts_.erase({running.number, step, members_[sender].value});
}

void TeamPart::send(Place running, std::uint32_t to, std::uint32_t step, Bytes bytes,
                    std::vector<ToSend>& out) {
    ++running->unsent;
    out.push_back({running, members_[to], step, bytes});
}

void TeamPart::finish(std::vector<ToSend>& out) noexcept {
    Async& async = of_.async_;
    for (const ToSend& each : out) {
        const Running& running = *each.of;
        std::size_t at = 0;
        do {
            const std::size_t piece = std::min(each.bytes.size() - at, async.payload_bytes_max());
            const std::uint64_t words[] = {id_,
                                           running.number << 8 | each.step,
                                           running.told.what,
                                           running.told.bytes,
                                           at,
                                           each.bytes.size()};
            async.send_inner(each.to, Async::team_id, words, each.bytes.subspan(at, piece));
            at += piece;
        } while (at < each.bytes.size());
    }
    std::list<Running> over;
    {
        const std::scoped_lock guard{latch_};
        for (const ToSend& each : out) --each.of->unsent;
        for (auto at = running_.begin(); at != running_.end();) {
            const auto next = std::next(at);
            if (at->is_over && at->unsent == 0) over.splice(over.end(), running_, at);
            at = next;
        }
    }
    if (over.empty()) return;
    for (const Running& each : over) {
        // Before its caller hears of the end, who may destroy the team then.
        under_way_.fetch_sub(1);
        offload::run_callback(this_thread(), each.done,
                              each.is_lost ? Outcome::peer_lost : Outcome::done);
    }
    async.endpoint().wake_local();
}

void TeamPart::start(const TeamCall& call, const Completion& done) noexcept {
    if (call.root >= members_.size())
        fatal("%s from member %u of a team of %lu (node %u calls it)", name_of(call.kind),
              call.root, members_.size(), members_[self_].value);
    std::vector<ToSend> out;
    under_way_.fetch_add(1);
    {
        const std::scoped_lock guard{latch_};
        running_.push_back({.call = call, .told = told_of(call), .done = done, .number = begun_++});
        const Place mine = std::prev(running_.end());
        const auto first = parts_.lower_bound({mine->number, 0, 0});
        for (auto at = first; at != parts_.end() && std::get<0>(at->first) == mine->number; ++at)
            compare(*mine, NodeId{std::get<2>(at->first)}, at->second.told);
        if (has_lost_) {
            mine->is_over = mine->is_lost = true;
        } else {
            carry_on(mine, out);
        }
    }
    finish(out);
}

void TeamPart::arrived(NodeId from, std::span<const std::uint64_t> words, Bytes payload) noexcept {
    const std::uint64_t number = words[1] >> 8, at = words[4], bytes = words[5];
    HIROBA_INVARIANT(at <= bytes && payload.size() <= bytes - at,
                     "node %u sends %lu bytes at %lu of a part of %lu", from.value, payload.size(),
                     at, bytes);
    std::vector<ToSend> out;
    {
        const std::scoped_lock guard{latch_};
        Part& part = parts_[{number, static_cast<std::uint32_t>(words[1] & 0xff), from.value}];
        if (part.bytes.size() != bytes) part.bytes.resize(bytes);
        if (!payload.empty()) std::memcpy(part.bytes.data() + at, payload.data(), payload.size());
        part.told = {words[2], words[3]};
        part.came += payload.size();
        part.is_whole = part.came == bytes;
        if (!part.is_whole) return;
        const auto running =
            std::find_if(running_.begin(), running_.end(),
                         [number](const Running& each) { return each.number == number; });
        if (running != running_.end()) {
            compare(*running, from, part.told);
            carry_on(running, out);
        } else if (number < begun_ && !has_lost_) {
            // What a right member sends is awaited.
            fatal(
                "collective number %lu of a team of %lu: node %u is in %s, while node %u has been "
                "in another one; every member makes the same calls in the same order with equal "
                "sizes",
                number, members_.size(), from.value, describe(part.told).c_str(),
                members_[self_].value);
        }
    }
    finish(out);
}

void TeamPart::lose(NodeId node) noexcept {
    std::vector<ToSend> none;
    {
        const std::scoped_lock guard{latch_};
        if (std::find(members_.begin(), members_.end(), node) == members_.end()) return;
        has_lost_ = true;
        for (Running& each : running_) {
            if (each.is_over) continue;
            each.is_over = each.is_lost = true;
        }
    }
    finish(none);
}

// --- all teams -----------------------------------------------------------------------------------

Teams::Teams(Async& async) : async_(async) { async.on(Async::team_id, &Teams::came, this); }

std::shared_ptr<TeamPart> Teams::part_of(std::uint64_t id) {
    const std::scoped_lock guard{latch_};
    auto& part = teams_[id];
    if (part == nullptr) part = std::make_shared<TeamPart>(*this, id);
    return part;
}

std::shared_ptr<TeamPart> Teams::make(std::uint64_t id, std::vector<NodeId> members,
                                      std::uint32_t self) {
    const std::shared_ptr<TeamPart> made = part_of(id);
    std::vector<NodeId> lost;
    {
        const std::scoped_lock guard{latch_, made->latch_};
        made->members_ = std::move(members);
        made->self_ = self;
        lost = lost_;
    }
    for (const NodeId node : lost) made->lose(node);
    return made;
}

void Teams::forget(const TeamPart& team) noexcept {
    const std::scoped_lock guard{latch_};
    teams_.erase(team.id_);
}

void Teams::came(void* context, NodeId from, std::span<const std::uint64_t> words,
                 Bytes payload) noexcept {
    auto& self = *static_cast<Teams*>(context);
    HIROBA_INVARIANT(words.size() == 6, "node %u speaks to a team in %lu words", from.value,
                     words.size());
    self.part_of(words[0])->arrived(from, words, payload);
}

void Teams::lose(NodeId node) noexcept {
    std::vector<std::shared_ptr<TeamPart>> all;
    {
        const std::scoped_lock guard{latch_};
        lost_.push_back(node);
        for (const auto& [id, part] : teams_) all.push_back(part);
    }
    for (const auto& part : all) part->lose(node);
}

}  // namespace hiroba::net
