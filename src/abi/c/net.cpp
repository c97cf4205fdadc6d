// SPDX-License-Identifier: BSD-3-Clause
// Role: the C face of the communication layer: converts calls to hiroba/net.hpp's. Collectives and
// messages: net_together.cpp.
#include "abi/c/net.hpp"

#include <atomic>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "abi/c/last_error.hpp"

namespace {

namespace net = hiroba::net;
using hiroba::NodeId;
using hiroba::abi::failed;

int ended(net::Ended how, const std::string& why) {
    if (how == net::Ended::done) [[likely]]
        return HIROBA_OK;
    return failed(how == net::Ended::refused ? HIROBA_REFUSED : HIROBA_PEER_LOST, why);
}

int no_such_operation(const char* call, int operation, const char* which) {
    return failed(HIROBA_REFUSED, std::string(call) + "(): operation " + std::to_string(operation) +
                                      "; there are " + which);
}

std::span<std::byte> local(const void* memory, size_t bytes) noexcept {
    return {static_cast<std::byte*>(const_cast<void*>(memory)), bytes};
}

static_assert(static_cast<int>(net::AtomicOp::fetch_add) == HIROBA_ADD &&
              static_cast<int>(net::AtomicOp::fetch_and) == HIROBA_AND &&
              static_cast<int>(net::AtomicOp::fetch_or) == HIROBA_OR &&
              static_cast<int>(net::AtomicOp::fetch_xor) == HIROBA_XOR &&
              static_cast<int>(net::AtomicOp::swap) == HIROBA_SWAP &&
              static_cast<int>(net::AtomicOp::compare_swap) == HIROBA_COMPARE_SWAP);

/// @tparam Signed  what HIROBA_MIN and HIROBA_MAX compare as
template <class Signed, class Word>
int atomic(const char* call, hiroba_net* of, NodeId rank, net::RemoteAddress at, int operation,
           Word operand, Word expected, Word* old) {
    if (operation < HIROBA_ADD || operation > HIROBA_MAX)
        return no_such_operation(call, operation, "HIROBA_ADD to HIROBA_MAX");
    std::string why;
    std::uint64_t found = 0;
    net::Ended how{};
    if (operation <= HIROBA_COMPARE_SWAP) {
        how = of->network->atomic({.target = rank,
                                   .at = at,
                                   .op = static_cast<net::AtomicOp>(operation),
                                   .bytes = sizeof(Word),
                                   .operand = operand,
                                   .expected = expected},
                                  found, &why);
    } else {
        Signed before{};
        const auto with = static_cast<Signed>(operand);
        how = operation == HIROBA_MIN ? of->network->atomic_min(rank, at, with, before, &why)
                                      : of->network->atomic_max(rank, at, with, before, &why);
        found = static_cast<Word>(before);
    }
    if (how == net::Ended::done && old != nullptr) *old = static_cast<Word>(found);
    return ended(how, why);
}

template <class T>
int atomic_of_floating(const char* call, hiroba_net* of, NodeId rank, net::RemoteAddress at,
                       int operation, T operand, T* old) {
    std::string why;
    T before{};
    net::Ended how{};
    switch (operation) {
        case HIROBA_ADD: how = of->network->atomic_add(rank, at, operand, before, &why); break;
        case HIROBA_MIN: how = of->network->atomic_min(rank, at, operand, before, &why); break;
        case HIROBA_MAX: how = of->network->atomic_max(rank, at, operand, before, &why); break;
        default: return no_such_operation(call, operation, "HIROBA_ADD, HIROBA_MIN, HIROBA_MAX");
    }
    if (how == net::Ended::done && old != nullptr) *old = before;
    return ended(how, why);
}

bool compares(std::int64_t found, int comparison, std::int64_t value) noexcept {
    switch (comparison) {
        case HIROBA_EQUAL: return found == value;
        case HIROBA_NOT_EQUAL: return found != value;
        case HIROBA_LESS: return found < value;
        case HIROBA_LESS_EQUAL: return found <= value;
        case HIROBA_GREATER: return found > value;
        default: return found >= value;
    }
}

/// Starts a read or a write of `params` with the Pending.
template <class Params, class Attempt>
int start(hiroba_net* of, Params& params, hiroba_pending* pending, Attempt&& attempt) {
    params.on_complete = pending->pending.callback();
    if (of->network->insist(attempt) == net::Submission::refused)
        return failed(HIROBA_REFUSED, of->network->why_refused(params));
    return HIROBA_OK;
}

}  // namespace

extern "C" {

int hiroba_net_open(hiroba_net** net) {
    std::string why;
    auto opened = net::Network::open(&why);
    if (opened == nullptr) return failed(HIROBA_NO_JOB, why);
    auto* const made = new (std::nothrow) hiroba_net;
    if (made == nullptr) return failed(HIROBA_NO_MEMORY, "hiroba_net_open(): no memory");
    made->network = std::move(opened);
    *net = made;
    return HIROBA_OK;
}
int hiroba_net_allocate(hiroba_net* of, size_t bytes, hiroba_memory* memory) {
    std::string why;
    const auto made = of->network->allocate(bytes, &why);
    if (!made) return failed(bytes == 0 ? HIROBA_REFUSED : HIROBA_NO_MEMORY, why);
    *memory = made->value;
    return HIROBA_OK;
}
int hiroba_net_connect(hiroba_net* of) {
    std::string why;
    return of->network->connect(&why) ? HIROBA_OK : failed(HIROBA_NO_JOB, why);
}
void hiroba_net_close(hiroba_net* of) {
    const net::Network* const network = of == nullptr ? nullptr : of->network.get();
    delete of;
    hiroba_forget_procedures(network);
}

uint32_t hiroba_net_rank(const hiroba_net* of) { return of->network->self().value; }
uint32_t hiroba_net_ranks(const hiroba_net* of) { return of->network->nodes(); }
const char* hiroba_net_provider(const hiroba_net* of) { return of->network->provider(); }
void* hiroba_net_local(const hiroba_net* of, hiroba_memory memory) {
    return of->network->local(net::Handle{memory}).data();
}
void* hiroba_net_mapped(const hiroba_net* of, hiroba_memory memory, uint32_t rank) {
    return of->network->mapped(net::Handle{memory}, NodeId{rank});
}

int hiroba_net_get(hiroba_net* of, uint32_t rank, hiroba_memory memory, uint64_t offset, void* to,
                   size_t bytes) {
    std::string why;
    return ended(of->network->read(NodeId{rank}, {{memory}, offset}, local(to, bytes), &why), why);
}
int hiroba_net_put(hiroba_net* of, uint32_t rank, hiroba_memory memory, uint64_t offset,
                   const void* from, size_t bytes) {
    std::string why;
    return ended(of->network->write(NodeId{rank}, {{memory}, offset}, local(from, bytes), &why),
                 why);
}
int hiroba_net_put_signal(hiroba_net* of, uint32_t rank, hiroba_memory memory, uint64_t offset,
                          const void* from, size_t bytes, uint64_t signal, int operation,
                          uint64_t value) {
    if (operation != HIROBA_SWAP && operation != HIROBA_ADD)
        return no_such_operation("hiroba_net_put_signal", operation, "HIROBA_SWAP and HIROBA_ADD");
    using Kind = net::Signal::Kind;
    const net::Signal tell{
        {{memory}, signal}, value, operation == HIROBA_ADD ? Kind::add : Kind::set};
    std::string why;
    return ended(
        of->network->write_signal(NodeId{rank}, {{memory}, offset}, local(from, bytes), tell, &why),
        why);
}

int hiroba_net_wait_word(hiroba_net* of, hiroba_memory memory, uint64_t offset, int comparison,
                         int64_t value, uint64_t timeout_ns, int64_t* found) {
    if (comparison < HIROBA_EQUAL || comparison > HIROBA_GREATER_EQUAL)
        return failed(HIROBA_REFUSED, "hiroba_net_wait_word(): comparison " +
                                          std::to_string(comparison) +
                                          "; there are HIROBA_EQUAL to HIROBA_GREATER_EQUAL");
    const auto here = of->network->local(net::Handle{memory});
    if (offset % 8 != 0 || here.size() < 8 || offset > here.size() - 8)
        return failed(HIROBA_REFUSED, "hiroba_net_wait_word(): 8 bytes at offset " +
                                          std::to_string(offset) + ", a multiple of 8, of memory " +
                                          std::to_string(memory) + ", which has " +
                                          std::to_string(here.size()) + " bytes");
    const std::atomic_ref<std::int64_t> word{
        *reinterpret_cast<std::int64_t*>(here.data() + offset)};
    std::int64_t seen = 0;
    const bool is_there = of->network->wait_until(
        [&] { return compares(seen = word.load(), comparison, value); }, timeout_ns);
    if (!is_there) return HIROBA_BUSY;
    if (found != nullptr) *found = seen;
    return HIROBA_OK;
}

int hiroba_net_atomic64(hiroba_net* of, uint32_t rank, hiroba_memory memory, uint64_t offset,
                        int operation, uint64_t operand, uint64_t expected, uint64_t* old) {
    return atomic<std::int64_t>("hiroba_net_atomic64", of, NodeId{rank}, {{memory}, offset},
                                operation, operand, expected, old);
}
int hiroba_net_atomic32(hiroba_net* of, uint32_t rank, hiroba_memory memory, uint64_t offset,
                        int operation, uint32_t operand, uint32_t expected, uint32_t* old) {
    return atomic<std::int32_t>("hiroba_net_atomic32", of, NodeId{rank}, {{memory}, offset},
                                operation, operand, expected, old);
}
int hiroba_net_atomic_double(hiroba_net* of, uint32_t rank, hiroba_memory memory, uint64_t offset,
                             int operation, double operand, double* old) {
    return atomic_of_floating("hiroba_net_atomic_double", of, NodeId{rank}, {{memory}, offset},
                              operation, operand, old);
}
int hiroba_net_atomic_float(hiroba_net* of, uint32_t rank, hiroba_memory memory, uint64_t offset,
                            int operation, float operand, float* old) {
    return atomic_of_floating("hiroba_net_atomic_float", of, NodeId{rank}, {{memory}, offset},
                              operation, operand, old);
}

hiroba_pending* hiroba_pending_create(void) { return new (std::nothrow) hiroba_pending; }
void hiroba_pending_destroy(hiroba_pending* pending) { delete pending; }
int hiroba_net_start_get(hiroba_net* of, uint32_t rank, hiroba_memory memory, uint64_t offset,
                         void* to, size_t bytes, hiroba_pending* pending) {
    if (bytes == 0) return HIROBA_OK;
    net::ReadParams params{.source = NodeId{rank},
                           .from = {{memory}, offset},
                           .to = of->network->anywhere(to),
                           .bytes = bytes};
    return start(of, params, pending, [&] { return of->network->try_read_async(params); });
}
int hiroba_net_start_put(hiroba_net* of, uint32_t rank, hiroba_memory memory, uint64_t offset,
                         const void* from, size_t bytes, hiroba_pending* pending) {
    if (bytes == 0) return HIROBA_OK;
    net::WriteParams params{.target = NodeId{rank},
                            .from = of->network->anywhere(from),
                            .to = {{memory}, offset},
                            .bytes = bytes};
    return start(of, params, pending, [&] { return of->network->try_write_async(params); });
}
int hiroba_net_wait(hiroba_net* of, hiroba_pending* pending) {
    const std::uint32_t lost = pending->lost_before;
    of->network->wait(pending->pending);
    pending->lost_before = pending->pending.lost();
    if (pending->lost_before == lost) return HIROBA_OK;
    return failed(HIROBA_PEER_LOST, std::to_string(pending->lost_before - lost) +
                                        " of the accesses were of a rank that is lost");
}

}  // extern "C"
