// SPDX-License-Identifier: BSD-3-Clause
// Role: the C interface of the heap and of the list: converts to acp/heap.hpp, acp/data/list.hpp.
#include <acp.h>

#include <cstdint>

#include "abi/acp/data_call.hpp"
#include "acp/data/list.hpp"

namespace {

using hiroba::abi_acp::fail;
using hiroba::abi_acp::in_call;
using hiroba::abi_acp::is_ready;
using hiroba::acp::data::Call;
using hiroba::acp::data::Extent;
using hiroba::acp::data::List;

using Comparison = int (*)(const acp_element_t, const acp_element_t);

/// `work(list, call)` on one list.
template <class Value, class Work>
Value on(const char* function, acp_list_t list, Value failure, Work&& work) {
    return in_call(function, failure, [&](Call& call) {
        List it(call, list.ga);
        return call.ok() ? work(it) : failure;
    });
}
template <class Work>
void on(const char* function, acp_list_t list, Work&& work) {
    on(function, list, 0, [&](List& it) {
        work(it);
        return 0;
    });
}
/// `work(first, second)` on two, which may be one and the same.
template <class Work>
void on_two(const char* function, acp_list_t first, acp_list_t second, Work&& work) {
    in_call(function, [&](Call& call) {
        List one(call, first.ga), other(call, second.ga);
        if (call.ok()) work(one, other);
    });
}

acp_list_it_t nowhere(acp_list_t list) { return {list, ACP_GA_NULL}; }
Extent extent(acp_element_t element) { return {element.ga, element.size}; }
List::Compare comparison(Comparison compare) {
    return [compare](Extent first, Extent second) {
        return compare({first.address, first.bytes}, {second.address, second.bytes});
    };
}

}  // namespace

// --- memory --------------------------------------------------------------------------------------

HIROBA_ACP_PUBLIC acp_ga_t acp_malloc(size_t size, int rank) {
    if (!is_ready("acp_malloc")) return ACP_GA_NULL;
    const auto block = hiroba::abi_acp::current_node()->allocate(size, rank);
    return block ? *block : fail("acp_malloc", block.error(), acp_ga_t{ACP_GA_NULL});
}

HIROBA_ACP_PUBLIC void acp_free(acp_ga_t ga) {
    if (ga == ACP_GA_NULL || !is_ready("acp_free")) return;
    const auto done = hiroba::abi_acp::current_node()->release(ga);
    if (!done) fail("acp_free", done.error(), 0);
}

// --- lists ---------------------------------------------------------------------------------------

HIROBA_ACP_PUBLIC acp_list_t acp_create_list(int rank) {
    return in_call("acp_create_list", acp_list_t{ACP_GA_NULL},
                   [rank](Call& call) { return acp_list_t{List::create(call, rank)}; });
}

HIROBA_ACP_PUBLIC void acp_destroy_list(acp_list_t list) {
    on("acp_destroy_list", list, [](List& it) { it.destroy(); });
}

HIROBA_ACP_PUBLIC void acp_assign_list(acp_list_t list1, acp_list_t list2) {
    if (list1.ga == list2.ga) return;
    on_two("acp_assign_list", list1, list2, [](List& one, List& other) {
        one.clear();
        one.insert_copies(one.end(), other.first(), other.end());
    });
}

HIROBA_ACP_PUBLIC void acp_assign_range_list(acp_list_t list, acp_list_it_t start,
                                             acp_list_it_t end) {
    on("acp_assign_range_list", list, [=](List& it) {
        // The range may be this list's own, so the old elements go when the copies are there.
        const std::uint64_t old_first = it.first();
        const bool was_empty = it.size() == 0;
        const std::uint64_t copies = it.insert_copies(it.end(), start.elem, end.elem);
        if (!was_empty) it.erase(old_first, copies);
    });
}

HIROBA_ACP_PUBLIC void acp_swap_list(acp_list_t list1, acp_list_t list2) {
    on_two("acp_swap_list", list1, list2, [](List& one, List& other) { one.swap(other); });
}

HIROBA_ACP_PUBLIC void acp_clear_list(acp_list_t list) {
    on("acp_clear_list", list, [](List& it) { it.clear(); });
}

HIROBA_ACP_PUBLIC size_t acp_size_list(acp_list_t list) {
    return on("acp_size_list", list, size_t{0}, [](List& it) { return it.size(); });
}

HIROBA_ACP_PUBLIC int acp_empty_list(acp_list_t list) {
    return on("acp_empty_list", list, 1, [](List& it) { return it.size() == 0 ? 1 : 0; });
}

HIROBA_ACP_PUBLIC acp_list_it_t acp_begin_list(acp_list_t list) {
    return on("acp_begin_list", list, nowhere(list), [list](List& it) {
        return acp_list_it_t{list, it.first()};
    });
}

HIROBA_ACP_PUBLIC acp_list_it_t acp_end_list(acp_list_t list) { return {list, list.ga}; }

HIROBA_ACP_PUBLIC acp_list_it_t acp_insert_list(acp_list_it_t it, const acp_element_t elem,
                                                int rank) {
    return on("acp_insert_list", it.list, nowhere(it.list), [=](List& list) {
        return acp_list_it_t{it.list, list.insert(it.elem, extent(elem), rank)};
    });
}

HIROBA_ACP_PUBLIC acp_list_it_t acp_insert_range_list(acp_list_it_t it, acp_list_it_t start,
                                                      acp_list_it_t end) {
    return on("acp_insert_range_list", it.list, nowhere(it.list), [=](List& list) {
        return acp_list_it_t{it.list, list.insert_copies(it.elem, start.elem, end.elem)};
    });
}

HIROBA_ACP_PUBLIC acp_list_it_t acp_erase_list(acp_list_it_t it) {
    return on("acp_erase_list", it.list, nowhere(it.list), [=](List& list) {
        return acp_list_it_t{it.list, list.erase_one(it.elem)};
    });
}

HIROBA_ACP_PUBLIC acp_list_it_t acp_erase_range_list(acp_list_it_t start, acp_list_it_t end) {
    return on("acp_erase_range_list", start.list, nowhere(start.list), [=](List& list) {
        return acp_list_it_t{start.list, list.erase(start.elem, end.elem)};
    });
}

HIROBA_ACP_PUBLIC void acp_push_back_list(acp_list_t list, const acp_element_t elem, int rank) {
    on("acp_push_back_list", list, [=](List& it) { it.insert(it.end(), extent(elem), rank); });
}

HIROBA_ACP_PUBLIC void acp_push_front_list(acp_list_t list, const acp_element_t elem, int rank) {
    on("acp_push_front_list", list, [=](List& it) { it.insert(it.first(), extent(elem), rank); });
}

HIROBA_ACP_PUBLIC void acp_pop_back_list(acp_list_t list) {
    on("acp_pop_back_list", list, [](List& it) {
        if (it.size() != 0) it.erase_one(it.previous(it.end()));
    });
}

HIROBA_ACP_PUBLIC void acp_pop_front_list(acp_list_t list) {
    on("acp_pop_front_list", list, [](List& it) {
        if (it.size() != 0) it.erase_one(it.first());
    });
}

HIROBA_ACP_PUBLIC void acp_merge_list(acp_list_t list1, acp_list_t list2, Comparison comp) {
    on_two("acp_merge_list", list1, list2,
           [comp](List& one, List& other) { one.merge(other, comparison(comp)); });
}

HIROBA_ACP_PUBLIC void acp_sort_list(acp_list_t list, Comparison comp) {
    on("acp_sort_list", list, [comp](List& it) { it.sort(comparison(comp)); });
}

HIROBA_ACP_PUBLIC void acp_reverse_list(acp_list_t list) {
    on("acp_reverse_list", list, [](List& it) { it.reverse(); });
}

HIROBA_ACP_PUBLIC void acp_remove_list(acp_list_t list, const acp_element_t elem) {
    on("acp_remove_list", list, [elem](List& it) { it.remove(extent(elem)); });
}

HIROBA_ACP_PUBLIC void acp_unique_list(acp_list_t list) {
    on("acp_unique_list", list, [](List& it) { it.unique(); });
}

HIROBA_ACP_PUBLIC void acp_splice_list(acp_list_it_t it1, acp_list_it_t it2) {
    on_two("acp_splice_list", it1.list, it2.list, [=](List& one, List& other) {
        if (other.extent(it2.elem).address == 0) return;
        one.splice(it1.elem, other, it2.elem, other.next(it2.elem));
    });
}

HIROBA_ACP_PUBLIC void acp_splice_range_list(acp_list_it_t it, acp_list_it_t start,
                                             acp_list_it_t end) {
    on_two("acp_splice_range_list", it.list, start.list,
           [=](List& one, List& other) { one.splice(it.elem, other, start.elem, end.elem); });
}

// --- iterators -----------------------------------------------------------------------------------

HIROBA_ACP_PUBLIC acp_list_it_t acp_advance_list_it(acp_list_it_t it, int n) {
    return on("acp_advance_list_it", it.list, it, [it, n](List& list) mutable {
        acp_list_it_t at = it;
        for (; n > 0 && at.elem != list.end() && at.elem != 0; --n) at.elem = list.next(at.elem);
        for (; n < 0 && at.elem != list.first() && at.elem != 0; ++n)
            at.elem = list.previous(at.elem);
        return at;
    });
}

HIROBA_ACP_PUBLIC acp_list_it_t acp_increment_list_it(acp_list_it_t it) {
    return on("acp_increment_list_it", it.list, nowhere(it.list), [=](List& list) {
        return it.elem == list.end() ? nowhere(it.list)
                                     : acp_list_it_t{it.list, list.next(it.elem)};
    });
}

HIROBA_ACP_PUBLIC acp_list_it_t acp_decrement_list_it(acp_list_it_t it) {
    return on("acp_decrement_list_it", it.list, nowhere(it.list), [=](List& list) {
        return it.elem == list.first() ? nowhere(it.list)
                                       : acp_list_it_t{it.list, list.previous(it.elem)};
    });
}

HIROBA_ACP_PUBLIC acp_element_t acp_dereference_list_it(acp_list_it_t it) {
    return on("acp_dereference_list_it", it.list, acp_element_t{ACP_GA_NULL, 0}, [=](List& list) {
        if (it.elem == list.end()) return acp_element_t{ACP_GA_NULL, 0};
        const Extent bytes = list.extent(it.elem);
        return acp_element_t{bytes.address, bytes.bytes};
    });
}

HIROBA_ACP_PUBLIC int acp_distance_list_it(acp_list_it_t first, acp_list_it_t last) {
    return on("acp_distance_list_it", first.list, -1, [=](List& list) {
        int elements = 0;
        std::uint64_t at = first.elem;
        for (; at != last.elem && at != list.end() && at != 0; at = list.next(at)) ++elements;
        return at == last.elem ? elements : -1;
    });
}
