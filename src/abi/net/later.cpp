// SPDX-License-Identifier: BSD-3-Clause
// Role: the calls of the communication layer's face for memory that comes after connect(), and the
// swap of 16 bytes.
#include <string>

#include "abi/net/network.hpp"

namespace hiroba::net {
namespace {

enum Kind : std::uint32_t { ours = 0, own = 1 };

template <class Value>
bool told(const Result<Value>& result, std::string* why) {
    if (!result && why != nullptr) *why = result.error().text;
    return static_cast<bool>(result);
}
bool refuse(std::string* why, const char* text) {
    if (why != nullptr) *why = text;
    return false;
}
constexpr const char* too_early = "before connect() memory is allocated, not exposed";

ExposedMemory inner(const Exposed& memory) noexcept {
    return {memory.node, memory.kind == own, memory.number, memory.bytes};
}

}  // namespace

bool NetworkOver::free_together(Handle handle, std::string* why) {
    if (!connected_) return refuse(why, "memory of before connect() lives as long as the network");
    return told(later_->free(handle, together()), why);
}

std::optional<Exposed> NetworkOver::expose_memory(std::span<std::byte> memory, std::string* why) {
    if (!connected_) {
        refuse(why, too_early);
        return {};
    }
    const auto made =
        memory.data() == nullptr ? later_->expose(memory.size()) : later_->expose(memory);
    if (!told(made, why)) return {};
    return Exposed{made->node, made->is_served ? own : ours, made->number, made->bytes};
}

bool NetworkOver::withdraw_memory(const Exposed& memory, std::string* why) {
    if (!connected_) return refuse(why, too_early);
    return told(later_->withdraw(inner(memory)), why);
}

std::optional<Handle> NetworkOver::attach_memory(const Exposed& memory, std::string* why) {
    if (!connected_ || memory.kind > own) {
        refuse(why, connected_ ? "this is no memory that expose() has made" : too_early);
        return {};
    }
    const Result<Handle> made = later_->attach_to(inner(memory));
    return told(made, why) ? std::optional(*made) : std::nullopt;
}

Ended NetworkOver::swap_wide(NodeId target, RemoteAddress at, const Wide& expected,
                             const Wide& wanted, Wide& found, std::string* why) noexcept {
    const auto no = [&](std::string text) {
        if (why != nullptr) *why = std::move(text);
        return Ended::refused;
    };
    if (at.offset % sizeof(Wide) != 0)
        return no("a swap of 16 bytes at offset " + std::to_string(at.offset) +
                  ", which is no multiple");
    const auto place = async_->find_place(target, at, sizeof(Wide));
    if (!place) return no(async_->check(target, at, sizeof(Wide)).error().text);
    if (!place->is_later && endpoint_->provider().limits().pins_memory)
        return no(
            "a swap of 16 bytes in memory of before connect(), whose atomics may be the device's: "
            "allocate it after connect()");
    const WideWord old{expected.low, expected.high}, fresh{wanted.low, wanted.high};
    WideWord seen;
    if (place->mapped != nullptr) {
        if (!swaps_wide_words()) return no("this processor has no cmpxchg16b");
        seen = swap_wide_word(place->mapped, old, fresh);
    } else {
        refuse_in_handler(*endpoint_);
        Pending pending;
        const Callback ended = pending.callback();
        insist([&] {
            return counted(ended, [&] {
                return served_->try_wide_swap(target, *place, old, fresh, seen, ended);
            });
        });
        if (!wait(pending)) {
            if (why != nullptr) *why = "the node whose memory is accessed is lost";
            return Ended::peer_lost;
        }
    }
    found = {seen.low, seen.high};
    return Ended::done;
}

}  // namespace hiroba::net
