// SPDX-License-Identifier: BSD-3-Clause
// Role: the C interface of the vector: converts to acp/data/sequence.hpp.
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

constexpr auto kind = Sequence::Kind::vector;

/// `work(sequence)` on one vector.
template <class Value, class Work>
Value on(const char* function, acp_vector_t vector, Value failure, Work&& work) {
    return in_call(function, failure, [&](Call& call) {
        Sequence sequence(call, kind, vector.ga);
        return work(sequence);
    });
}
template <class Work>
void on(const char* function, acp_vector_t vector, Work&& work) {
    on(function, vector, 0, [&](Sequence& sequence) {
        work(sequence);
        return 0;
    });
}

/// `work(first, second, call)` on two, which may be one and the same.
template <class Value, class Work>
Value on_two(const char* function, acp_vector_t first, acp_vector_t second, Value failure,
             Work&& work) {
    return in_call(function, failure, [&](Call& call) {
        Sequence one(call, kind, first.ga), other(call, kind, second.ga);
        return work(one, other);
    });
}
template <class Work>
void on_two(const char* function, acp_vector_t first, acp_vector_t second, Work&& work) {
    on_two(function, first, second, 0, [&](Sequence& one, Sequence& other) {
        work(one, other);
        return 0;
    });
}

/// A position before the first is the first.
std::uint64_t position(int index) { return static_cast<std::uint64_t>(std::max(index, 0)); }

acp_vector_it_t iterator(acp_vector_t vector, std::uint64_t position) {
    return {vector, static_cast<int>(std::min<std::uint64_t>(position, INT_MAX))};
}

/// Two iterators of different ones bound nothing.
bool is_range(const char* function, acp_vector_it_t start, acp_vector_it_t end) {
    if (start.vector.ga == end.vector.ga) return true;
    return hiroba::abi_acp::fail(
        function,
        hiroba::Error{hiroba::ErrorKind::refused, "start and end are of different vectors"}, false);
}

}  // namespace

HIROBA_ACP_PUBLIC acp_vector_t acp_create_vector(size_t size, int rank) {
    return in_call("acp_create_vector", acp_vector_t{ACP_GA_NULL}, [=](Call& call) {
        return acp_vector_t{Sequence::create(call, kind, size, rank)};
    });
}

HIROBA_ACP_PUBLIC void acp_destroy_vector(acp_vector_t vector) {
    on("acp_destroy_vector", vector, [](Sequence& it) { it.destroy(); });
}

HIROBA_ACP_PUBLIC void acp_assign_vector(acp_vector_t vector1, acp_vector_t vector2) {
    on_two("acp_assign_vector", vector1, vector2,
           [](Sequence& one, Sequence& other) { one.assign(other, 0, other.size()); });
}

HIROBA_ACP_PUBLIC void acp_assign_range_vector(acp_vector_t vector, acp_vector_it_t start,
                                               acp_vector_it_t end) {
    if (!is_range("acp_assign_range_vector", start, end)) return;
    on_two("acp_assign_range_vector", vector, start.vector, [=](Sequence& one, Sequence& other) {
        one.assign(other, position(start.index), position(end.index));
    });
}

HIROBA_ACP_PUBLIC void acp_swap_vector(acp_vector_t vector1, acp_vector_t vector2) {
    on_two("acp_swap_vector", vector1, vector2,
           [](Sequence& one, Sequence& other) { one.swap(other); });
}

HIROBA_ACP_PUBLIC void acp_clear_vector(acp_vector_t vector) {
    on("acp_clear_vector", vector, [](Sequence& it) { it.clear(); });
}

HIROBA_ACP_PUBLIC void acp_reserve_vector(acp_vector_t vector, size_t size) {
    on("acp_reserve_vector", vector, [size](Sequence& it) { it.reserve(size); });
}

HIROBA_ACP_PUBLIC size_t acp_size_vector(acp_vector_t vector) {
    return on("acp_size_vector", vector, size_t{0}, [](Sequence& it) { return it.size(); });
}

HIROBA_ACP_PUBLIC size_t acp_capacity_vector(acp_vector_t vector) {
    return on("acp_capacity_vector", vector, size_t{0}, [](Sequence& it) { return it.capacity(); });
}

HIROBA_ACP_PUBLIC int acp_empty_vector(acp_vector_t vector) {
    return on("acp_empty_vector", vector, 1, [](Sequence& it) { return it.size() == 0 ? 1 : 0; });
}

HIROBA_ACP_PUBLIC acp_ga_t acp_at_vector(acp_vector_t vector, int index) {
    return on("acp_at_vector", vector, acp_ga_t{ACP_GA_NULL}, [index](Sequence& it) {
        return index < 0 ? acp_ga_t{ACP_GA_NULL} : it.pieces(position(index), 1).first;
    });
}

HIROBA_ACP_PUBLIC acp_vector_it_t acp_begin_vector(acp_vector_t vector) { return {vector, 0}; }

HIROBA_ACP_PUBLIC acp_vector_it_t acp_end_vector(acp_vector_t vector) {
    return on("acp_end_vector", vector, acp_vector_it_t{vector, 0},
              [=](Sequence& it) { return iterator(vector, it.size()); });
}

HIROBA_ACP_PUBLIC acp_vector_it_t acp_insert_vector(acp_vector_it_t it, const acp_ga_t ga,
                                                    size_t size) {
    return on("acp_insert_vector", it.vector, it, [=](Sequence& one) {
        return iterator(it.vector, one.insert(position(it.index), ga, size));
    });
}

HIROBA_ACP_PUBLIC acp_vector_it_t acp_insert_range_vector(acp_vector_it_t it, acp_vector_it_t start,
                                                          acp_vector_it_t end) {
    if (!is_range("acp_insert_range_vector", start, end)) return it;
    return on_two("acp_insert_range_vector", it.vector, start.vector, it,
                  [=](Sequence& one, Sequence& other) {
                      const std::uint64_t from = position(start.index), to = position(end.index);
                      return iterator(it.vector, one.insert(position(it.index), other, from, to));
                  });
}

HIROBA_ACP_PUBLIC acp_vector_it_t acp_erase_vector(acp_vector_it_t it, size_t size) {
    return on("acp_erase_vector", it.vector, it, [=](Sequence& one) {
        one.erase(position(it.index), size);
        return iterator(it.vector, std::min(position(it.index), one.size()));
    });
}

HIROBA_ACP_PUBLIC acp_vector_it_t acp_erase_range_vector(acp_vector_it_t start,
                                                         acp_vector_it_t end) {
    if (!is_range("acp_erase_range_vector", start, end) || end.index <= start.index) return start;
    return acp_erase_vector(start, position(end.index) - position(start.index));
}

HIROBA_ACP_PUBLIC void acp_push_back_vector(acp_vector_t vector, const acp_ga_t ga, size_t size) {
    on("acp_push_back_vector", vector, [=](Sequence& it) { it.insert(it.size(), ga, size); });
}

HIROBA_ACP_PUBLIC void acp_pop_back_vector(acp_vector_t vector, size_t size) {
    on("acp_pop_back_vector", vector, [size](Sequence& it) {
        const std::uint64_t gone = std::min<std::uint64_t>(size, it.size());
        it.erase(it.size() - gone, gone);
    });
}

HIROBA_ACP_PUBLIC acp_ga_t acp_dereference_vector_it(acp_vector_it_t it) {
    return acp_at_vector(it.vector, it.index);
}

HIROBA_ACP_PUBLIC acp_vector_it_t acp_advance_vector_it(acp_vector_it_t it, int n) {
    return {it.vector,
            static_cast<int>(std::clamp<std::int64_t>(std::int64_t{it.index} + n, 0, INT_MAX))};
}

HIROBA_ACP_PUBLIC int acp_distance_vector_it(acp_vector_it_t first, acp_vector_it_t last) {
    return last.index - first.index;
}
