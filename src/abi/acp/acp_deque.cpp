// SPDX-License-Identifier: BSD-3-Clause
// Role: the C interface of the deque: converts to acp/data/sequence.hpp.
#include <acp.h>

#include <algorithm>
#include <climits>
#include <cstdint>

#include "abi/acp/data_call.hpp"
#include "acp/data/sequence.hpp"

namespace {

using hiroba::abi_acp::in_call;
using hiroba::acp::data::Call;
using hiroba::acp::data::Sequence;

constexpr auto kind = Sequence::Kind::deque;

/// `work(sequence)` on one deque.
template <class Value, class Work>
Value on(const char* function, acp_deque_t deque, Value failure, Work&& work) {
    return in_call(function, failure, [&](Call& call) {
        Sequence sequence(call, kind, deque.ga);
        return work(sequence);
    });
}
template <class Work>
void on(const char* function, acp_deque_t deque, Work&& work) {
    on(function, deque, 0, [&](Sequence& sequence) {
        work(sequence);
        return 0;
    });
}

/// `work(first, second, call)` on two, which may be one and the same.
template <class Value, class Work>
Value on_two(const char* function, acp_deque_t first, acp_deque_t second, Value failure,
             Work&& work) {
    return in_call(function, failure, [&](Call& call) {
        Sequence one(call, kind, first.ga), other(call, kind, second.ga);
        return work(one, other);
    });
}
template <class Work>
void on_two(const char* function, acp_deque_t first, acp_deque_t second, Work&& work) {
    on_two(function, first, second, 0, [&](Sequence& one, Sequence& other) {
        work(one, other);
        return 0;
    });
}

/// A position before the first is the first.
std::uint64_t position(int index) { return static_cast<std::uint64_t>(std::max(index, 0)); }

acp_deque_it_t iterator(acp_deque_t deque, std::uint64_t position) {
    return {deque, static_cast<int>(std::min<std::uint64_t>(position, INT_MAX))};
}

/// Two iterators of different ones bound nothing.
bool is_range(const char* function, acp_deque_it_t start, acp_deque_it_t end) {
    if (start.deque.ga == end.deque.ga) return true;
    return hiroba::abi_acp::fail(
        function,
        hiroba::Error{hiroba::ErrorKind::refused, "start and end are of different deques"}, false);
}

}  // namespace

HIROBA_ACP_PUBLIC acp_deque_t acp_create_deque(size_t size, int rank) {
    return in_call("acp_create_deque", acp_deque_t{ACP_GA_NULL}, [=](Call& call) {
        return acp_deque_t{Sequence::create(call, kind, size, rank)};
    });
}

HIROBA_ACP_PUBLIC void acp_destroy_deque(acp_deque_t deque) {
    on("acp_destroy_deque", deque, [](Sequence& it) { it.destroy(); });
}

HIROBA_ACP_PUBLIC void acp_assign_deque(acp_deque_t deque1, acp_deque_t deque2) {
    on_two("acp_assign_deque", deque1, deque2,
           [](Sequence& one, Sequence& other) { one.assign(other, 0, other.size()); });
}

HIROBA_ACP_PUBLIC void acp_assign_range_deque(acp_deque_t deque, acp_deque_it_t start,
                                              acp_deque_it_t end) {
    if (!is_range("acp_assign_range_deque", start, end)) return;
    on_two("acp_assign_range_deque", deque, start.deque, [=](Sequence& one, Sequence& other) {
        one.assign(other, position(start.index), position(end.index));
    });
}

HIROBA_ACP_PUBLIC void acp_swap_deque(acp_deque_t deque1, acp_deque_t deque2) {
    on_two("acp_swap_deque", deque1, deque2,
           [](Sequence& one, Sequence& other) { one.swap(other); });
}

HIROBA_ACP_PUBLIC void acp_clear_deque(acp_deque_t deque) {
    on("acp_clear_deque", deque, [](Sequence& it) { it.clear(); });
}

HIROBA_ACP_PUBLIC void acp_reserve_deque(acp_deque_t deque, size_t size) {
    on("acp_reserve_deque", deque, [size](Sequence& it) { it.reserve(size); });
}

HIROBA_ACP_PUBLIC size_t acp_size_deque(acp_deque_t deque) {
    return on("acp_size_deque", deque, size_t{0}, [](Sequence& it) { return it.size(); });
}

HIROBA_ACP_PUBLIC size_t acp_capacity_deque(acp_deque_t deque) {
    return on("acp_capacity_deque", deque, size_t{0}, [](Sequence& it) { return it.capacity(); });
}

HIROBA_ACP_PUBLIC int acp_empty_deque(acp_deque_t deque) {
    return on("acp_empty_deque", deque, 1, [](Sequence& it) { return it.size() == 0 ? 1 : 0; });
}

HIROBA_ACP_PUBLIC acp_ga_t acp_at_deque(acp_deque_t deque, int index) {
    return on("acp_at_deque", deque, acp_ga_t{ACP_GA_NULL}, [index](Sequence& it) {
        return index < 0 ? acp_ga_t{ACP_GA_NULL} : it.pieces(position(index), 1).first;
    });
}

HIROBA_ACP_PUBLIC acp_deque_it_t acp_begin_deque(acp_deque_t deque) { return {deque, 0}; }

HIROBA_ACP_PUBLIC acp_deque_it_t acp_end_deque(acp_deque_t deque) {
    return on("acp_end_deque", deque, acp_deque_it_t{deque, 0},
              [=](Sequence& it) { return iterator(deque, it.size()); });
}

HIROBA_ACP_PUBLIC acp_deque_it_t acp_insert_deque(acp_deque_it_t it, const acp_ga_t ga,
                                                  size_t size) {
    return on("acp_insert_deque", it.deque, it, [=](Sequence& one) {
        return iterator(it.deque, one.insert(position(it.index), ga, size));
    });
}

HIROBA_ACP_PUBLIC acp_deque_it_t acp_insert_range_deque(acp_deque_it_t it, acp_deque_it_t start,
                                                        acp_deque_it_t end) {
    if (!is_range("acp_insert_range_deque", start, end)) return it;
    return on_two("acp_insert_range_deque", it.deque, start.deque, it,
                  [=](Sequence& one, Sequence& other) {
                      const std::uint64_t from = position(start.index), to = position(end.index);
                      return iterator(it.deque, one.insert(position(it.index), other, from, to));
                  });
}

HIROBA_ACP_PUBLIC acp_deque_it_t acp_erase_deque(acp_deque_it_t it, size_t size) {
    return on("acp_erase_deque", it.deque, it, [=](Sequence& one) {
        one.erase(position(it.index), size);
        return iterator(it.deque, std::min(position(it.index), one.size()));
    });
}

HIROBA_ACP_PUBLIC acp_deque_it_t acp_erase_range_deque(acp_deque_it_t start, acp_deque_it_t end) {
    if (!is_range("acp_erase_range_deque", start, end) || end.index <= start.index) return start;
    return acp_erase_deque(start, position(end.index) - position(start.index));
}

HIROBA_ACP_PUBLIC void acp_push_back_deque(acp_deque_t deque, const acp_ga_t ga, size_t size) {
    on("acp_push_back_deque", deque, [=](Sequence& it) { it.insert(it.size(), ga, size); });
}

HIROBA_ACP_PUBLIC void acp_pop_back_deque(acp_deque_t deque, size_t size) {
    on("acp_pop_back_deque", deque, [size](Sequence& it) {
        const std::uint64_t gone = std::min<std::uint64_t>(size, it.size());
        it.erase(it.size() - gone, gone);
    });
}

HIROBA_ACP_PUBLIC void acp_push_front_deque(acp_deque_t deque, const acp_ga_t ga, size_t size) {
    on("acp_push_front_deque", deque, [=](Sequence& it) { it.insert(0, ga, size); });
}

HIROBA_ACP_PUBLIC void acp_pop_front_deque(acp_deque_t deque, size_t size) {
    on("acp_pop_front_deque", deque, [size](Sequence& it) { it.erase(0, size); });
}

HIROBA_ACP_PUBLIC acp_pair_t acp_dereference_deque_it(acp_deque_it_t it, size_t size) {
    return on("acp_dereference_deque_it", it.deque, acp_pair_t{}, [=](Sequence& one) {
        if (it.index < 0) return acp_pair_t{};
        const Sequence::Pieces part = one.pieces(position(it.index), size);
        return acp_pair_t{{part.first, part.first_bytes}, {part.second, part.second_bytes}};
    });
}

HIROBA_ACP_PUBLIC acp_deque_it_t acp_advance_deque_it(acp_deque_it_t it, int n) {
    return {it.deque,
            static_cast<int>(std::clamp<std::int64_t>(std::int64_t{it.index} + n, 0, INT_MAX))};
}

HIROBA_ACP_PUBLIC int acp_distance_deque_it(acp_deque_it_t first, acp_deque_it_t last) {
    return last.index - first.index;
}
