// SPDX-License-Identifier: BSD-3-Clause
// Role: the calls of the communication layer's face that return when the access is over.
#include <string>

#include "abi/net/network.hpp"
#include "net/all_memory.hpp"

namespace hiroba::net {

// As in the relocatable space: providers take addresses, and those that pin memory do so by
// address. Two threads that come at once make two handles, one of which stays unused.
LocalAddress NetworkOver::local_place(const void* memory) noexcept {
    std::uint32_t handle = everywhere_.load(std::memory_order_acquire);
    if (handle == Handle::none) {
        const auto made = async_->register_local(all_memory());
        if (!made) return {};  // refused, and why_refused() says that no local handle is given
        handle = made->value;
        everywhere_.store(handle, std::memory_order_release);
    }
    return in_all_memory(Handle{handle}, memory);
}

// No bytes may lie nowhere.
LocalAddress NetworkOver::place_of(std::span<const std::byte> memory) noexcept {
    return local_place(memory.empty() ? static_cast<const void*>(this) : memory.data());
}

template <class Params, class Attempt>
Ended NetworkOver::complete(Params params, Attempt&& attempt, std::string* why) noexcept {
    if (connected_) refuse_in_handler(*endpoint_);
    Pending pending;
    params.on_complete = pending.callback();
    const Submission made =
        insist([&] { return counted(params.on_complete, [&] { return attempt(params); }); });
    if (made == Submission::refused) {
        if (why != nullptr) *why = why_refused(params);
        return Ended::refused;
    }
    if (wait(pending)) return Ended::done;
    if (why != nullptr) *why = "the node whose memory is accessed is lost";
    return Ended::peer_lost;
}

Ended NetworkOver::read_bytes(NodeId source, RemoteAddress from, std::span<std::byte> to,
                              std::string* why) noexcept {
    const ReadParams params{.source = source, .from = from, .to = place_of(to), .bytes = to.size()};
    return complete(
        params, [this](const ReadParams& p) { return async_->try_read(p); }, why);
}

// The signal's place is looked at first: nothing is written if it is wrong.
Ended NetworkOver::write_bytes(NodeId target, RemoteAddress to, std::span<const std::byte> from,
                               const Signal* signal, std::string* why) noexcept {
    AtomicParams tell;
    if (signal != nullptr) {
        const bool adds = signal->kind == Signal::Kind::add;
        tell = {.target = target,
                .at = signal->at,
                .op = adds ? AtomicOp::fetch_add : AtomicOp::swap,
                .operand = signal->value};
        if (std::string wrong = why_refused(tell); !wrong.empty()) {
            if (why != nullptr) *why = std::move(wrong);
            return Ended::refused;
        }
    }
    const WriteParams params{
        .target = target, .from = place_of(from), .to = to, .bytes = from.size()};
    const Ended ended = complete(
        params, [this](const WriteParams& p) { return async_->try_write(p); }, why);
    if (ended != Ended::done || signal == nullptr) return ended;
    const Ended told = complete(
        tell, [this](const AtomicParams& p) { return async_->try_atomic(p); }, why);
    // Where memory is mapped the target's sleeping waiters have seen nothing.
    if (told == Ended::done) endpoint_->wake(target);
    return told;
}

Ended NetworkOver::atomic_word(const AtomicParams& params, std::uint64_t& old,
                               std::string* why) noexcept {
    std::uint64_t found = 0;
    AtomicParams mine = params;
    mine.old = local_place(&found);
    const Ended ended = complete(
        mine, [this](const AtomicParams& p) { return async_->try_atomic(p); }, why);
    if (ended == Ended::done) old = found;
    return ended;
}

}  // namespace hiroba::net
