// SPDX-License-Identifier: BSD-3-Clause
// Role: the C face of the communication layer, second half: messages and collectives.
#include <algorithm>
#include <string>

#include "abi/c/last_error.hpp"
#include "abi/c/net.hpp"

namespace {

namespace net = hiroba::net;
using hiroba::NodeId;
using hiroba::abi::failed;

void arrived(void* context, NodeId from, std::span<const std::uint64_t> arguments,
             std::span<const std::byte> payload) noexcept {
    const auto& handler = *static_cast<const hiroba_net::Handler*>(context);
    handler.function(handler.context, from.value, arguments.data(), arguments.size(),
                     payload.data(), payload.size());
}

std::span<std::byte> bytes_of(const void* memory, size_t bytes) noexcept {
    return {static_cast<std::byte*>(const_cast<void*>(memory)), bytes};
}

template <class T>
int reduce(hiroba_net* of, void* values, size_t count, int operation) {
    const std::span<T> all{static_cast<T*>(values), count};
    switch (operation) {
        case HIROBA_ADD:
            // Integers wrap around.
            of->network->all_reduce(all, [](T a, T b) {
                if constexpr (std::is_integral_v<T>) {
                    using Word = std::make_unsigned_t<T>;
                    return static_cast<T>(static_cast<Word>(a) + static_cast<Word>(b));
                } else {
                    return a + b;
                }
            });
            return HIROBA_OK;
        case HIROBA_MIN:
            of->network->all_reduce(all, [](T a, T b) { return b < a || a != a ? b : a; });
            return HIROBA_OK;
        case HIROBA_MAX:
            of->network->all_reduce(all, [](T a, T b) { return b > a || a != a ? b : a; });
            return HIROBA_OK;
        default:
            return failed(HIROBA_REFUSED, "hiroba_net_all_reduce(): operation " +
                                              std::to_string(operation) +
                                              "; there are HIROBA_ADD, HIROBA_MIN, HIROBA_MAX");
    }
}

}  // namespace

extern "C" {

int hiroba_net_handler(hiroba_net* of, uint32_t id, hiroba_handler function, void* context) {
    if (id >= net::ActiveId::count || function == nullptr)
        return failed(HIROBA_REFUSED, "hiroba_net_handler(): message " + std::to_string(id) +
                                          "; there are 64, and each needs a function");
    of->handlers[id] = {function, context};
    of->network->on(net::ActiveId{static_cast<std::uint8_t>(id)}, &arrived, &of->handlers[id]);
    return HIROBA_OK;
}

int hiroba_net_send(hiroba_net* of, uint32_t rank, uint32_t id, const uint64_t* arguments,
                    size_t count, const void* payload, size_t bytes) {
    if (id >= net::ActiveId::count)
        return failed(HIROBA_REFUSED,
                      "hiroba_net_send(): message " + std::to_string(id) + "; there are 64");
    net::Pending pending;
    const net::MessageParams params{
        .target = NodeId{rank},
        .id = {static_cast<std::uint8_t>(id)},
        .arguments = {arguments, count},
        .payload = bytes == 0 ? net::LocalAddress{} : of->network->anywhere(payload),
        .payload_bytes = bytes,
        .on_complete = pending.callback()};
    if (of->network->insist([&] { return of->network->try_message_async(params); }) ==
        net::Submission::refused)
        return failed(HIROBA_REFUSED, of->network->why_refused(params));
    if (of->network->wait(pending)) return HIROBA_OK;
    return failed(HIROBA_PEER_LOST, "rank " + std::to_string(rank) + " is lost");
}

void hiroba_net_pause(hiroba_net* of) { of->network->pause(); }
int hiroba_net_wake(hiroba_net* of, uint32_t rank) {
    if (rank >= of->network->nodes())
        return failed(HIROBA_REFUSED, "hiroba_net_wake(): rank " + std::to_string(rank) +
                                          " of a job of " + std::to_string(of->network->nodes()));
    of->network->wake(NodeId{rank});
    return HIROBA_OK;
}

void hiroba_net_barrier(hiroba_net* of) { of->network->barrier(); }
void hiroba_net_broadcast(hiroba_net* of, uint32_t root, void* data, size_t bytes) {
    of->network->broadcast(NodeId{root}, bytes_of(data, bytes));
}
void hiroba_net_all_gather(hiroba_net* of, const void* mine, size_t bytes, void* all) {
    of->network->all_gather(bytes_of(mine, bytes), bytes_of(all, bytes * of->network->nodes()));
}
void hiroba_net_all_to_all(hiroba_net* of, const void* out, void* in, size_t bytes) {
    const size_t all = bytes * of->network->nodes();
    of->network->all_to_all(bytes_of(out, all), bytes_of(in, all), bytes);
}
int hiroba_net_all_reduce(hiroba_net* of, void* values, size_t count, int type, int operation) {
    switch (type) {
        case HIROBA_INT32: return reduce<std::int32_t>(of, values, count, operation);
        case HIROBA_INT64: return reduce<std::int64_t>(of, values, count, operation);
        case HIROBA_FLOAT: return reduce<float>(of, values, count, operation);
        case HIROBA_DOUBLE: return reduce<double>(of, values, count, operation);
        default:
            return failed(HIROBA_REFUSED, "hiroba_net_all_reduce(): type " + std::to_string(type) +
                                              "; there are HIROBA_INT32 to HIROBA_DOUBLE");
    }
}

}  // extern "C"
