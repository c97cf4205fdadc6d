// SPDX-License-Identifier: BSD-3-Clause
// Role: the C face of the communication layer: memory that comes and goes after connect(), and the
// swap of 16 bytes.
#include <span>
#include <string>

#include "abi/c/last_error.hpp"
#include "abi/c/net.hpp"

namespace {

namespace net = hiroba::net;
using hiroba::NodeId;
using hiroba::abi::failed;

net::Exposed exposed_of(const hiroba_exposed& memory) noexcept {
    return {NodeId{memory.rank}, memory.kind, memory.number, memory.bytes};
}

}  // namespace

extern "C" {

int hiroba_net_free(hiroba_net* of, hiroba_memory memory) {
    std::string why;
    return of->network->free(net::Handle{memory}, &why) ? HIROBA_OK : failed(HIROBA_REFUSED, why);
}

int hiroba_net_expose(hiroba_net* of, void* own, size_t bytes, hiroba_exposed* exposed) {
    std::string why;
    const auto made =
        own == nullptr ? of->network->expose(bytes, &why)
                       : of->network->expose(std::span(static_cast<std::byte*>(own), bytes), &why);
    if (!made) return failed(bytes == 0 ? HIROBA_REFUSED : HIROBA_NO_MEMORY, why);
    *exposed = {made->node.value, made->kind, made->number, made->bytes};
    return HIROBA_OK;
}

int hiroba_net_withdraw(hiroba_net* of, const hiroba_exposed* exposed) {
    std::string why;
    if (of->network->withdraw(exposed_of(*exposed), &why)) return HIROBA_OK;
    return failed(HIROBA_REFUSED, why);
}

int hiroba_net_attach(hiroba_net* of, const hiroba_exposed* exposed, hiroba_memory* memory) {
    std::string why;
    const auto made = of->network->attach(exposed_of(*exposed), &why);
    if (!made) return failed(HIROBA_REFUSED, why);
    *memory = made->value;
    return HIROBA_OK;
}

void hiroba_net_detach(hiroba_net* of, hiroba_memory memory) {
    of->network->deregister(net::Handle{memory});
}

int hiroba_net_compare_swap128(hiroba_net* of, uint32_t rank, hiroba_memory memory, uint64_t offset,
                               const uint64_t* expected, const uint64_t* wanted, uint64_t* found) {
    std::string why;
    net::Wide seen;
    const net::Ended how =
        of->network->compare_swap(NodeId{rank}, {{memory}, offset}, {expected[0], expected[1]},
                                  {wanted[0], wanted[1]}, seen, &why);
    if (how != net::Ended::done)
        return failed(how == net::Ended::refused ? HIROBA_REFUSED : HIROBA_PEER_LOST, why);
    found[0] = seen.low;
    found[1] = seen.high;
    return HIROBA_OK;
}

}  // extern "C"
