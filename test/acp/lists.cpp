// SPDX-License-Identifier: BSD-3-Clause
// Lists beside std::list: random calls of all kinds, after each of which both hold the same
// elements, forwards and backwards. Each rank has its own, with elements on any ranks.
// Usage: lists STEPS
#include <iterator>
#include <list>

#include "data.hpp"

using data_test::Random;
using data_test::Window;

namespace {

constexpr size_t window_bytes = 1 << 16;
const Window* looking_glass = nullptr;  ///< for the comparison, which is given elements alone

using Model = std::list<std::string>;
struct Pair {
    acp_list_t mine;
    Model model;
};

std::string bytes_of(acp_element_t element) {
    return looking_glass->look(element.ga, element.size);
}
int compare(const acp_element_t first, const acp_element_t second) {
    return bytes_of(first).compare(bytes_of(second));
}
int any_rank(Random& random) {
    return static_cast<int>(random.below(static_cast<size_t>(acp_procs())));
}

acp_list_it_t place(const Pair& of, size_t position) {
    return acp_advance_list_it(acp_begin_list(of.mine), static_cast<int>(position));
}
Model::iterator model_place(Pair& of, size_t position) {
    return std::next(of.model.begin(), static_cast<std::ptrdiff_t>(position));
}

void change_one(Random& random, const Window& window, Pair& one) {
    const size_t position = random.below(one.model.size() + 1);
    const std::string text = random.below(3) == 0 ? random.bytes(2000) : random.bytes(3);
    const acp_element_t held = window.hold(text);
    switch (random.below(11)) {
        case 0:
            acp_push_back_list(one.mine, held, any_rank(random));
            return one.model.push_back(text);
        case 1:
            acp_push_front_list(one.mine, held, any_rank(random));
            return one.model.push_front(text);
        case 2:
        case 3:
        case 4:
            CHECK(acp_insert_list(place(one, position), held, any_rank(random)).elem != ACP_GA_NULL,
                  "not inserted at %zu", position);
            one.model.insert(model_place(one, position), text);
            return;
        case 5:
            if (position == one.model.size()) return;
            acp_erase_list(place(one, position));
            one.model.erase(model_place(one, position));
            return;
        case 6:
            acp_pop_back_list(one.mine);
            if (!one.model.empty()) one.model.pop_back();
            return;
        case 7:
            acp_pop_front_list(one.mine);
            if (!one.model.empty()) one.model.pop_front();
            return;
        case 8:
            acp_remove_list(one.mine, held);
            one.model.remove(text);
            return;
        case 9: acp_reverse_list(one.mine); return one.model.reverse();
        case 10:
            acp_unique_list(one.mine);
            one.model.unique();
            return;
    }
}

void change_two(Random& random, Pair& one, Pair& other) {
    const size_t position = random.below(one.model.size() + 1);
    const size_t from = random.below(other.model.size() + 1);
    const size_t to = from + random.below(other.model.size() + 1 - from);
    const auto begin = place(other, from), end = place(other, to);
    const auto model_begin = model_place(other, from), model_end = model_place(other, to);
    switch (random.below(8)) {
        case 0:
            acp_sort_list(one.mine, compare);
            acp_sort_list(other.mine, compare);
            acp_merge_list(one.mine, other.mine, compare);
            one.model.sort();
            other.model.sort();
            return one.model.merge(other.model);
        case 1: acp_swap_list(one.mine, other.mine); return one.model.swap(other.model);
        case 2:
            acp_assign_list(one.mine, other.mine);
            one.model = Model(other.model);
            return;
        case 3: {
            acp_assign_range_list(one.mine, begin, end);
            one.model = Model(model_begin, model_end);
            return;
        }
        case 4:
            acp_insert_range_list(place(one, position), begin, end);
            one.model.insert(model_place(one, position), model_begin, model_end);
            return;
        case 5:
            if (from == other.model.size()) return;
            acp_splice_list(place(one, position), begin);
            return one.model.splice(model_place(one, position), other.model, model_begin);
        case 6:
            if (&one == &other) return;
            acp_splice_range_list(place(one, position), begin, end);
            return one.model.splice(model_place(one, position), other.model, model_begin,
                                    model_end);
        case 7:
            acp_erase_range_list(begin, end);
            other.model.erase(model_begin, model_end);
            return;
    }
}

void check(const Pair& of) {
    CHECK(acp_size_list(of.mine) == of.model.size(), "%zu elements, not %zu",
          acp_size_list(of.mine), of.model.size());
    CHECK(acp_empty_list(of.mine) == (of.model.empty() ? 1 : 0), "of %zu", of.model.size());
    acp_list_it_t it = acp_begin_list(of.mine);
    const acp_list_it_t end = acp_end_list(of.mine);
    CHECK(acp_distance_list_it(it, end) == static_cast<int>(of.model.size()), "of %zu",
          of.model.size());
    for (const std::string& text : of.model) {
        CHECK(bytes_of(acp_dereference_list_it(it)) == text, "an element of %zu bytes",
              text.size());
        it = acp_increment_list_it(it);
    }
    CHECK(it.elem == end.elem, "more elements than %zu", of.model.size());
    for (auto text = of.model.rbegin(); text != of.model.rend(); ++text) {
        it = acp_decrement_list_it(it);
        CHECK(bytes_of(acp_dereference_list_it(it)) == *text, "backwards, %zu bytes", text->size());
    }
    CHECK(it.elem == acp_begin_list(of.mine).elem, "more elements backwards than %zu",
          of.model.size());
}

}  // namespace

int main(int argc, char** argv) {
    if (acp_init(&argc, &argv) != 0) return 1;
    const int steps = argc > 1 ? atoi(argv[1]) : 100;
    {
        Random random(static_cast<uint64_t>(acp_rank()) * 1000003);
        const Window window(window_bytes), glass(window_bytes);
        looking_glass = &glass;
        Pair pairs[2] = {{acp_create_list(any_rank(random)), {}},
                         {acp_create_list(acp_rank()), {}}};
        for (int step = 0; step < steps; ++step) {
            Pair& one = pairs[random.below(2)];
            Pair& other = pairs[random.below(2)];
            if (random.below(4) != 0) {
                change_one(random, window, one);
            } else if (&one != &other || random.below(4) == 0) {
                change_two(random, one, other);
            }
            check(one);
            check(other);
            if (one.model.size() < 40) continue;
            acp_clear_list(one.mine);
            one.model.clear();
        }
        for (Pair& one : pairs) acp_destroy_list(one.mine);
    }
    acp_sync();
    if (acp_rank() == 0) printf("%d steps of lists on %d ranks: right\n", steps, acp_procs());
    return acp_finalize();
}
