// SPDX-License-Identifier: BSD-3-Clause
// Role: the C interface of sets, multisets and maps: converts to acp/data/buckets.hpp. What the
// three have in common is written once, for each name.
#include <acp.h>

#include <cstdint>
#include <span>

#include "abi/acp/data_call.hpp"
#include "acp/data/buckets.hpp"

namespace {

using hiroba::abi_acp::in_call;
using hiroba::acp::data::Buckets;
using hiroba::acp::data::Call;
using hiroba::acp::data::Extent;

constexpr Buckets::Kind kind_of(acp_set_t) { return Buckets::Kind::set; }
constexpr Buckets::Kind kind_of(acp_multiset_t) { return Buckets::Kind::multiset; }
constexpr Buckets::Kind kind_of(acp_map_t) { return Buckets::Kind::map; }

template <class Handle>
Buckets buckets(Call& call, Handle handle) {
    return {call, kind_of(handle), {handle.ga, handle.num_ranks, handle.num_slots}};
}

/// `work(buckets)` on one structure.
template <class Handle, class Value, class Work>
Value on(const char* function, Handle handle, Value failure, Work&& work) {
    return in_call(function, failure, [&](Call& call) {
        Buckets it = buckets(call, handle);
        return call.ok() ? work(it) : failure;
    });
}
template <class Handle, class Work>
void on(const char* function, Handle handle, Work&& work) {
    on(function, handle, 0, [&](Buckets& it) {
        work(it);
        return 0;
    });
}
/// `work(first, second)` on two, which may be one and the same.
template <class Handle, class Work>
void on_two(const char* function, Handle first, Handle second, Work&& work) {
    in_call(function, [&](Call& call) {
        Buckets one = buckets(call, first), other = buckets(call, second);
        if (call.ok()) work(one, other);
    });
}

template <class Handle>
Handle create(const char* function, int num_ranks, const int* ranks, int num_slots, int rank) {
    return in_call(function, Handle{ACP_GA_NULL, 0, 0}, [=](Call& call) {
        const std::size_t count = ranks == nullptr || num_ranks < 0 ? 0 : std::size_t(num_ranks);
        const auto made = Buckets::create(call, std::span(ranks, count), num_slots, rank);
        return Handle{made.control, made.ranks, made.slots};
    });
}

/// An assignment to itself changes nothing.
void assign(Buckets& one, Buckets& other, bool local) {
    one.clear(false);
    one.merge(other, local);
}

template <class Iterator, class Handle>
Iterator iterator(Handle handle, Buckets::Place place) {
    return {handle, static_cast<int>(place.rank), static_cast<int>(place.slot), place.element};
}
template <class Iterator>
Buckets::Place place(Iterator it) {
    return {static_cast<std::uint64_t>(it.rank), static_cast<std::uint64_t>(it.slot), it.elem};
}
/// The iterator that `work(buckets)` finds a place for, or one that names nothing.
template <class Iterator, class Handle, class Work>
Iterator seek(const char* function, Handle handle, Work&& work) {
    const Iterator nowhere = iterator<Iterator>(handle, {handle.num_ranks, 0, 0});
    return on(function, handle, nowhere,
              [&](Buckets& it) { return iterator<Iterator>(handle, work(it)); });
}

Extent extent(acp_element_t element) { return {element.ga, element.size}; }
acp_element_t element(Extent extent) { return {extent.address, extent.bytes}; }
constexpr std::uint64_t any_count = ~std::uint64_t{0};

}  // namespace

#define HIROBA_ACP_BUCKETS(name, field)                                                            \
    HIROBA_ACP_PUBLIC acp_##name##_t acp_create_##name(int num_ranks, const int* ranks,            \
                                                       int num_slots, int rank) {                  \
        return create<acp_##name##_t>("acp_create_" #name, num_ranks, ranks, num_slots, rank);     \
    }                                                                                              \
    HIROBA_ACP_PUBLIC void acp_destroy_##name(acp_##name##_t field) {                              \
        on("acp_destroy_" #name, field, [](Buckets& it) { it.destroy(); });                        \
    }                                                                                              \
    HIROBA_ACP_PUBLIC void acp_clear_##name(acp_##name##_t field) {                                \
        on("acp_clear_" #name, field, [](Buckets& it) { it.clear(false); });                       \
    }                                                                                              \
    HIROBA_ACP_PUBLIC size_t acp_size_##name(acp_##name##_t field) {                               \
        return on("acp_size_" #name, field, size_t{0},                                             \
                  [](Buckets& it) { return it.size(false); });                                     \
    }                                                                                              \
    HIROBA_ACP_PUBLIC size_t acp_size_local_##name(acp_##name##_t field) {                         \
        return on("acp_size_local_" #name, field, size_t{0},                                       \
                  [](Buckets& it) { return it.size(true); });                                      \
    }                                                                                              \
    HIROBA_ACP_PUBLIC int acp_empty_##name(acp_##name##_t field) {                                 \
        return on("acp_empty_" #name, field, 1,                                                    \
                  [](Buckets& it) { return it.begin(false).element == 0 ? 1 : 0; });               \
    }                                                                                              \
    HIROBA_ACP_PUBLIC int acp_empty_local_##name(acp_##name##_t field) {                           \
        return on("acp_empty_local_" #name, field, 1,                                              \
                  [](Buckets& it) { return it.begin(true).element == 0 ? 1 : 0; });                \
    }                                                                                              \
    HIROBA_ACP_PUBLIC void acp_assign_##name(acp_##name##_t one, acp_##name##_t two) {             \
        if (one.ga == two.ga) return;                                                              \
        on_two("acp_assign_" #name, one, two,                                                      \
               [](Buckets& to, Buckets& from) { assign(to, from, false); });                       \
    }                                                                                              \
    HIROBA_ACP_PUBLIC void acp_assign_local_##name(acp_##name##_t one, acp_##name##_t two) {       \
        if (one.ga == two.ga) return;                                                              \
        on_two("acp_assign_local_" #name, one, two,                                                \
               [](Buckets& to, Buckets& from) { assign(to, from, true); });                        \
    }                                                                                              \
    HIROBA_ACP_PUBLIC void acp_merge_##name(acp_##name##_t one, acp_##name##_t two) {              \
        on_two("acp_merge_" #name, one, two,                                                       \
               [](Buckets& to, Buckets& from) { to.merge(from, false); });                         \
    }                                                                                              \
    HIROBA_ACP_PUBLIC void acp_merge_local_##name(acp_##name##_t one, acp_##name##_t two) {        \
        on_two("acp_merge_local_" #name, one, two,                                                 \
               [](Buckets& to, Buckets& from) { to.merge(from, true); });                          \
    }                                                                                              \
    HIROBA_ACP_PUBLIC void acp_move_##name(acp_##name##_t one, acp_##name##_t two) {               \
        on_two("acp_move_" #name, one, two,                                                        \
               [](Buckets& to, Buckets& from) { to.move(from, false); });                          \
    }                                                                                              \
    HIROBA_ACP_PUBLIC void acp_move_local_##name(acp_##name##_t one, acp_##name##_t two) {         \
        on_two("acp_move_local_" #name, one, two,                                                  \
               [](Buckets& to, Buckets& from) { to.move(from, true); });                           \
    }                                                                                              \
    HIROBA_ACP_PUBLIC void acp_swap_##name(acp_##name##_t one, acp_##name##_t two) {               \
        on_two("acp_swap_" #name, one, two, [](Buckets& to, Buckets& from) { to.swap(from); });    \
    }                                                                                              \
    HIROBA_ACP_PUBLIC acp_##name##_it_t acp_begin_##name(acp_##name##_t field) {                   \
        return seek<acp_##name##_it_t>("acp_begin_" #name, field,                                  \
                                       [](Buckets& it) { return it.begin(false); });               \
    }                                                                                              \
    HIROBA_ACP_PUBLIC acp_##name##_it_t acp_end_##name(acp_##name##_t field) {                     \
        return iterator<acp_##name##_it_t>(field, {field.num_ranks, 0, 0});                        \
    }                                                                                              \
    HIROBA_ACP_PUBLIC acp_##name##_it_t acp_begin_local_##name(acp_##name##_t field) {             \
        return seek<acp_##name##_it_t>("acp_begin_local_" #name, field,                            \
                                       [](Buckets& it) { return it.begin(true); });                \
    }                                                                                              \
    HIROBA_ACP_PUBLIC acp_##name##_it_t acp_end_local_##name(acp_##name##_t field) {               \
        return seek<acp_##name##_it_t>("acp_end_local_" #name, field,                              \
                                       [](Buckets& it) { return it.local_end(); });                \
    }                                                                                              \
    HIROBA_ACP_PUBLIC acp_##name##_it_t acp_increment_##name##_it(acp_##name##_it_t it) {          \
        return seek<acp_##name##_it_t>("acp_increment_" #name "_it", it.field,                     \
                                       [it](Buckets& all) { return all.next(place(it)); });        \
    }                                                                                              \
    HIROBA_ACP_PUBLIC acp_##name##_it_t acp_find_##name(acp_##name##_t field, acp_element_t key) { \
        return seek<acp_##name##_it_t>("acp_find_" #name, field,                                   \
                                       [key](Buckets& it) { return it.find(extent(key)); });       \
    }
HIROBA_ACP_BUCKETS(set, set)
HIROBA_ACP_BUCKETS(multiset, set)
HIROBA_ACP_BUCKETS(map, map)

HIROBA_ACP_PUBLIC int acp_insert_set(acp_set_t set, acp_element_t key) {
    return on("acp_insert_set", set, 0, [key](Buckets& it) {
        return it.insert({extent(key), {}, 1}) ? 1 : 0;
    });
}

HIROBA_ACP_PUBLIC void acp_remove_set(acp_set_t set, acp_element_t key) {
    on("acp_remove_set", set, [key](Buckets& it) { it.remove(extent(key), any_count); });
}

HIROBA_ACP_PUBLIC acp_element_t acp_dereference_set_it(acp_set_it_t it) {
    return on("acp_dereference_set_it", it.set, acp_element_t{ACP_GA_NULL, 0},
              [it](Buckets& all) { return element(all.content(place(it)).key); });
}

HIROBA_ACP_PUBLIC int acp_insert_multiset(acp_multiset_t set, acp_element_t key) {
    return on("acp_insert_multiset", set, 0, [key](Buckets& it) {
        return it.insert({extent(key), {}, 1}) ? 1 : 0;
    });
}

HIROBA_ACP_PUBLIC void acp_remove_multiset(acp_multiset_t set, acp_element_t key) {
    on("acp_remove_multiset", set, [key](Buckets& it) { it.remove(extent(key), 1); });
}

HIROBA_ACP_PUBLIC void acp_remove_all_multiset(acp_multiset_t set, acp_element_t key) {
    on("acp_remove_all_multiset", set, [key](Buckets& it) { it.remove(extent(key), any_count); });
}

HIROBA_ACP_PUBLIC uint64_t acp_retrieve_multiset(acp_multiset_t set, acp_element_t key) {
    return on("acp_retrieve_multiset", set, uint64_t{0},
              [key](Buckets& it) { return it.count(extent(key)); });
}

HIROBA_ACP_PUBLIC acp_element_t acp_dereference_multiset_it(acp_multiset_it_t it) {
    return on("acp_dereference_multiset_it", it.set, acp_element_t{ACP_GA_NULL, 0},
              [it](Buckets& all) { return element(all.content(place(it)).key); });
}

HIROBA_ACP_PUBLIC void acp_clear_local_map(acp_map_t map) {
    on("acp_clear_local_map", map, [](Buckets& it) { it.clear(true); });
}

HIROBA_ACP_PUBLIC int acp_insert_map(acp_map_t map, acp_pair_t pair) {
    return on("acp_insert_map", map, 0, [pair](Buckets& it) {
        return it.insert({extent(pair.first), extent(pair.second), 1}) ? 1 : 0;
    });
}

HIROBA_ACP_PUBLIC void acp_remove_map(acp_map_t map, acp_element_t key) {
    on("acp_remove_map", map, [key](Buckets& it) { it.remove(extent(key), any_count); });
}

HIROBA_ACP_PUBLIC size_t acp_retrieve_map(acp_map_t map, acp_pair_t pair) {
    return on("acp_retrieve_map", map, size_t{0},
              [pair](Buckets& it) { return it.retrieve(extent(pair.first), extent(pair.second)); });
}

HIROBA_ACP_PUBLIC acp_pair_t acp_dereference_map_it(acp_map_it_t it) {
    return on("acp_dereference_map_it", it.map, acp_pair_t{}, [it](Buckets& all) {
        const Buckets::Content content = all.content(place(it));
        return acp_pair_t{element(content.key), element(content.value)};
    });
}
