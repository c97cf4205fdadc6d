// SPDX-License-Identifier: BSD-3-Clause
// Role: the C face of the relocatable space: converts calls to hiroba/gas.hpp's. A hiroba_gas is a
// space; memory is bytes.
#include "hiroba/gas.hpp"

#include <cstddef>
#include <new>
#include <span>
#include <string>

#include "abi/c/last_error.hpp"
#include "hiroba/hiroba.h"

struct hiroba_gas_pending {
    hiroba::gas::Pending pending;
};
struct hiroba_view {
    hiroba::gas::LocalView<std::byte> view;
};

namespace {

namespace gas = hiroba::gas;
using hiroba::abi::failed;
using Place = gas::ptr<std::byte>;

gas::space& of(hiroba_gas* space) noexcept { return *reinterpret_cast<gas::space*>(space); }
const gas::space& of(const hiroba_gas* space) noexcept {
    return *reinterpret_cast<const gas::space*>(space);
}

int ended(const gas::Status& status) {
    if (status) [[likely]]
        return HIROBA_OK;
    hiroba_code code = HIROBA_REFUSED;
    if (status.fault == gas::Fault::peer_lost) code = HIROBA_PEER_LOST;
    if (status.fault == gas::Fault::no_room) code = HIROBA_NO_MEMORY;
    return failed(code, status.text());
}

/// False: there is no such kind.
bool read(const hiroba_distribution* where, gas::Distribution& to) noexcept {
    if (where == nullptr) return true;
    if (where->kind < HIROBA_BLOCK || where->kind > HIROBA_ON_RANK) return false;
    to.kind = static_cast<gas::Distribution::Kind>(where->kind);
    to.rank = where->rank;
    to.block_bytes = where->block_bytes;
    to.relocatable = where->fixed == 0;
    return true;
}

int no_such_kind(const hiroba_distribution* where) {
    return failed(HIROBA_REFUSED, "a distribution of kind " + std::to_string(where->kind) +
                                      "; there are HIROBA_BLOCK, HIROBA_CYCLIC, HIROBA_ON_RANK");
}

int allocate(hiroba_gas* space, uint64_t bytes, const hiroba_distribution* where, bool together,
             hiroba_place* place) {
    gas::Distribution distribution;
    if (!read(where, distribution)) return no_such_kind(where);
    gas::Status status;
    const Place made = together
                           ? of(space).allocate_together<std::byte>(bytes, distribution, &status)
                           : of(space).allocate<std::byte>(bytes, distribution, &status);
    if (!made) return ended(status);
    *place = made.address();
    return HIROBA_OK;
}

std::span<std::byte> local(const void* memory, size_t bytes) noexcept {
    return {static_cast<std::byte*>(const_cast<void*>(memory)), bytes};
}

/// How many bytes the pieces have; more than fit are told as a local memory of none.
size_t product(size_t bytes, size_t count) noexcept {
    size_t all = 0;
    return __builtin_mul_overflow(bytes, count, &all) ? 0 : all;
}

std::span<const Place> places(const hiroba_place* first, size_t count) noexcept {
    static_assert(sizeof(Place) == sizeof(hiroba_place));
    return {reinterpret_cast<const Place*>(first), count};
}

template <class Word>
int atomic(hiroba_gas* space, hiroba_place at, int operation, Word operand, Word expected,
           Word* old) {
    if (operation < HIROBA_ADD || operation > HIROBA_COMPARE_SWAP)
        return failed(HIROBA_REFUSED, "an atomic of operation " + std::to_string(operation) +
                                          "; there are HIROBA_ADD to HIROBA_COMPARE_SWAP");
    Word found = 0;
    const auto status = of(space).atomic(static_cast<gas::Operation>(operation),
                                         gas::ptr<Word>::at(at), operand, expected, found);
    if (status && old != nullptr) *old = found;
    return ended(status);
}
static_assert(static_cast<int>(gas::Operation::add) == HIROBA_ADD &&
              static_cast<int>(gas::Operation::bit_and) == HIROBA_AND &&
              static_cast<int>(gas::Operation::bit_or) == HIROBA_OR &&
              static_cast<int>(gas::Operation::bit_xor) == HIROBA_XOR &&
              static_cast<int>(gas::Operation::swap) == HIROBA_SWAP &&
              static_cast<int>(gas::Operation::compare_swap) == HIROBA_COMPARE_SWAP);

}  // namespace

extern "C" {

int hiroba_gas_open(hiroba_gas** space) {
    std::string why;
    auto opened = gas::space::open(&why);
    if (opened == nullptr) return failed(HIROBA_NO_JOB, why);
    *space = reinterpret_cast<hiroba_gas*>(opened.release());
    return HIROBA_OK;
}
void hiroba_gas_close(hiroba_gas* space) { delete reinterpret_cast<gas::space*>(space); }
uint32_t hiroba_gas_rank(const hiroba_gas* space) { return of(space).rank(); }
uint32_t hiroba_gas_ranks(const hiroba_gas* space) { return of(space).ranks(); }
uint64_t hiroba_gas_page_bytes(const hiroba_gas* space) { return of(space).page_bytes(); }
void hiroba_gas_barrier(hiroba_gas* space) { of(space).barrier(); }
uint64_t hiroba_gas_broadcast(hiroba_gas* space, uint64_t value, uint32_t from) {
    return of(space).broadcast(value, from);
}

int hiroba_gas_allocate(hiroba_gas* space, uint64_t bytes, const hiroba_distribution* where,
                        hiroba_place* place) {
    return allocate(space, bytes, where, false, place);
}
int hiroba_gas_allocate_together(hiroba_gas* space, uint64_t bytes,
                                 const hiroba_distribution* where, hiroba_place* place) {
    return allocate(space, bytes, where, true, place);
}
int hiroba_gas_free(hiroba_gas* space, hiroba_place place) {
    return ended(of(space).free(Place::at(place)));
}
int hiroba_gas_share(hiroba_gas* space, uint32_t rank, uint64_t bytes,
                     const hiroba_distribution* where, uint64_t* first, uint64_t* count) {
    gas::Distribution distribution;
    if (!read(where, distribution)) return no_such_kind(where);
    const gas::Share share = of(space).share_of<std::byte>(rank, bytes, distribution);
    *first = share.first;
    *count = share.count;
    return HIROBA_OK;
}

int hiroba_gas_get(hiroba_gas* space, hiroba_place from, void* to, size_t bytes) {
    return ended(of(space).get_bytes(from, to, bytes));
}
int hiroba_gas_put(hiroba_gas* space, hiroba_place to, const void* from, size_t bytes) {
    return ended(of(space).put_bytes(to, from, bytes));
}
int hiroba_gas_get_strided(hiroba_gas* space, hiroba_place from, int64_t stride, size_t bytes,
                           size_t count, void* to) {
    return ended(of(space).get_strided(Place::at(from), stride, bytes, count,
                                       local(to, product(bytes, count))));
}
int hiroba_gas_put_strided(hiroba_gas* space, hiroba_place to, int64_t stride, size_t bytes,
                           size_t count, const void* from) {
    return ended(of(space).put_strided(Place::at(to), stride, bytes, count,
                                       local(from, product(bytes, count))));
}
int hiroba_gas_get_list(hiroba_gas* space, const hiroba_place* from, size_t bytes, size_t count,
                        void* to) {
    return ended(of(space).get_list(places(from, count), bytes, local(to, product(bytes, count))));
}
int hiroba_gas_put_list(hiroba_gas* space, const hiroba_place* to, size_t bytes, size_t count,
                        const void* from) {
    return ended(of(space).put_list(places(to, count), bytes, local(from, product(bytes, count))));
}

hiroba_gas_pending* hiroba_gas_pending_create(void) {
    return new (std::nothrow) hiroba_gas_pending;
}
void hiroba_gas_pending_destroy(hiroba_gas_pending* pending) { delete pending; }
int hiroba_gas_start_get(hiroba_gas* space, hiroba_place from, void* to, size_t bytes,
                         hiroba_gas_pending* pending) {
    return ended(of(space).start_get(Place::at(from), local(to, bytes), pending->pending));
}
int hiroba_gas_start_put(hiroba_gas* space, hiroba_place to, const void* from, size_t bytes,
                         hiroba_gas_pending* pending) {
    return ended(of(space).start_put(Place::at(to), local(from, bytes), pending->pending));
}
int hiroba_gas_wait(hiroba_gas* space, hiroba_gas_pending* pending) {
    return ended(of(space).wait(pending->pending));
}

int hiroba_gas_atomic64(hiroba_gas* space, hiroba_place at, int operation, uint64_t operand,
                        uint64_t expected, uint64_t* old) {
    return atomic<std::uint64_t>(space, at, operation, operand, expected, old);
}
int hiroba_gas_atomic32(hiroba_gas* space, hiroba_place at, int operation, uint32_t operand,
                        uint32_t expected, uint32_t* old) {
    return atomic<std::uint32_t>(space, at, operation, operand, expected, old);
}

int hiroba_gas_own(hiroba_gas* space, hiroba_place first, uint64_t bytes) {
    return ended(of(space).own(Place::at(first), bytes));
}
int hiroba_gas_view_open(hiroba_gas* space, hiroba_place first, uint64_t bytes, hiroba_view** view,
                         void** memory) {
    auto* const opened = new (std::nothrow) hiroba_view{of(space).local(Place::at(first), bytes)};
    if (opened == nullptr) return failed(HIROBA_NO_MEMORY, "no memory for a view");
    if (!opened->view) {
        delete opened;
        return HIROBA_BUSY;
    }
    *view = opened;
    *memory = opened->view.span().data();
    return HIROBA_OK;
}
void hiroba_gas_view_close(hiroba_view* view) { delete view; }

}  // extern "C"
