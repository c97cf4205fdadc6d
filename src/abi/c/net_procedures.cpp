// SPDX-License-Identifier: BSD-3-Clause
// Role: the C face of the communication layer: remote procedures, by number. All of them are one
// procedure of the C++ face, which has the number in its arguments.
#include "hiroba/net_procedures.hpp"

#include <cstring>
#include <map>
#include <mutex>
#include <span>
#include <string>

#include "abi/c/last_error.hpp"
#include "abi/c/net.hpp"
#include "base/fatal.hpp"
#include "base/latch.hpp"

namespace {

namespace net = hiroba::net;
using hiroba::NodeId;
using hiroba::abi::failed;

constexpr std::uint64_t entry_id = 0x6869'726f'6261'5f43;
/// Networks with numbered procedures. A process has one; of simulated nodes it has many.
struct Networks {
    hiroba::Latch latch;
    std::map<const net::Network*, hiroba_net*> all;
};
Networks& networks() {
    static Networks made;
    return made;
}
hiroba_net* find(const net::Network& network) {
    const std::scoped_lock guard{networks().latch};
    const auto found = networks().all.find(&network);
    return found == networks().all.end() ? nullptr : found->second;
}

std::size_t enter(const net::Caller& caller, std::span<const std::byte> arguments,
                  std::byte* result) noexcept {
    std::uint64_t id = 0;
    std::memcpy(&id, arguments.data(), sizeof id);
    hiroba_net* const numbered = find(caller.network);
    const bool is_there = numbered != nullptr && id < hiroba_net::procedures_max &&
                          numbered->procedures[id].function != nullptr;
    if (!is_there)
        hiroba::fatal(
            "rank %u calls procedure %lu, for which hiroba_net_procedure() was not called",
            caller.from.value, id);
    const hiroba_net::Procedure& procedure = numbered->procedures[id];
    const std::span<const std::byte> rest = arguments.subspan(sizeof id);
    const std::size_t bytes =
        procedure.function(procedure.context, caller.from.value, rest.data(), rest.size(), result);
    if (bytes > net::procedure_result_max)
        hiroba::fatal("procedure %lu returns %lu bytes, of %lu there may be", id, bytes,
                      net::procedure_result_max);
    return bytes;
}

}  // namespace

extern "C" {

int hiroba_net_procedure(hiroba_net* of, uint32_t id, hiroba_procedure function, void* context) {
    if (id >= hiroba_net::procedures_max || function == nullptr)
        return failed(HIROBA_REFUSED, "hiroba_net_procedure(): procedure " + std::to_string(id) +
                                          "; there are 256, and each needs a function");
    of->procedures[id] = {function, context};
    net::add_procedure(entry_id, &enter);
    const std::scoped_lock guard{networks().latch};
    networks().all[of->network.get()] = of;
    return HIROBA_OK;
}

void hiroba_forget_procedures(const net::Network* network) noexcept {
    const std::scoped_lock guard{networks().latch};
    networks().all.erase(network);
}

int hiroba_net_call(hiroba_net* of, uint32_t rank, uint32_t id, const void* arguments, size_t bytes,
                    void* result, size_t result_bytes, hiroba_pending* pending) {
    constexpr size_t bytes_max = 60'000;
    if (rank >= of->network->nodes() || id >= hiroba_net::procedures_max || bytes > bytes_max ||
        result_bytes > net::procedure_result_max)
        return failed(HIROBA_REFUSED, "hiroba_net_call(): procedure " + std::to_string(id) +
                                          " of rank " + std::to_string(rank) + " of " +
                                          std::to_string(of->network->nodes()) + ", with " +
                                          std::to_string(bytes) + " bytes of arguments and " +
                                          std::to_string(result_bytes) + " of a result");
    const std::uint64_t number = id;
    net::Pending own;
    net::Pending& counted = pending == nullptr ? own : pending->pending;
    const net::ProcedureParams params{.target = NodeId{rank},
                                      .id = entry_id,
                                      .fixed = std::as_bytes(std::span(&number, 1)),
                                      .bytes = {static_cast<const std::byte*>(arguments), bytes},
                                      .result = {static_cast<std::byte*>(result), result_bytes},
                                      .on_complete = counted.callback()};
    of->network->insist([&] { return of->network->try_procedure_async(params); });
    if (pending != nullptr || of->network->wait(own)) return HIROBA_OK;
    return failed(HIROBA_PEER_LOST, "rank " + std::to_string(rank) + " is lost");
}

}  // extern "C"
