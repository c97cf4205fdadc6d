// SPDX-License-Identifier: BSD-3-Clause
// Vectors and deques beside std::string: random calls of all kinds, after each of which both hold
// the same bytes. Each rank has its own, on any ranks; all work at the same time.
// Usage: sequences STEPS
#include "data.hpp"

using data_test::Random;
using data_test::Window;

namespace {

constexpr size_t window_bytes = 1 << 20;

/// The functions of one kind under one name.
struct Vectors {
    using Structure = acp_vector_t;
    using Iterator = acp_vector_it_t;
    static constexpr bool has_front = false;
    static constexpr auto create = acp_create_vector;
    static constexpr auto destroy = acp_destroy_vector;
    static constexpr auto assign = acp_assign_vector;
    static constexpr auto assign_range = acp_assign_range_vector;
    static constexpr auto swap = acp_swap_vector;
    static constexpr auto clear = acp_clear_vector;
    static constexpr auto reserve = acp_reserve_vector;
    static constexpr auto size = acp_size_vector;
    static constexpr auto capacity = acp_capacity_vector;
    static constexpr auto empty = acp_empty_vector;
    static constexpr auto at = acp_at_vector;
    static constexpr auto begin = acp_begin_vector;
    static constexpr auto end = acp_end_vector;
    static constexpr auto insert = acp_insert_vector;
    static constexpr auto insert_range = acp_insert_range_vector;
    static constexpr auto erase = acp_erase_vector;
    static constexpr auto erase_range = acp_erase_range_vector;
    static constexpr auto push_back = acp_push_back_vector;
    static constexpr auto pop_back = acp_pop_back_vector;
    static constexpr auto advance = acp_advance_vector_it;
    static constexpr auto distance = acp_distance_vector_it;
    static void push_front(Structure vector, acp_ga_t ga, size_t size) {
        insert(begin(vector), ga, size);
    }
    static void pop_front(Structure vector, size_t size) { erase(begin(vector), size); }
    static std::string content(const Window& window, Structure vector) {
        const size_t bytes = size(vector);
        return bytes == 0 ? "" : window.look(acp_dereference_vector_it(begin(vector)), bytes);
    }
};

struct Deques {
    using Structure = acp_deque_t;
    using Iterator = acp_deque_it_t;
    static constexpr bool has_front = true;
    static constexpr auto create = acp_create_deque;
    static constexpr auto destroy = acp_destroy_deque;
    static constexpr auto assign = acp_assign_deque;
    static constexpr auto assign_range = acp_assign_range_deque;
    static constexpr auto swap = acp_swap_deque;
    static constexpr auto clear = acp_clear_deque;
    static constexpr auto reserve = acp_reserve_deque;
    static constexpr auto size = acp_size_deque;
    static constexpr auto capacity = acp_capacity_deque;
    static constexpr auto empty = acp_empty_deque;
    static constexpr auto at = acp_at_deque;
    static constexpr auto begin = acp_begin_deque;
    static constexpr auto end = acp_end_deque;
    static constexpr auto insert = acp_insert_deque;
    static constexpr auto insert_range = acp_insert_range_deque;
    static constexpr auto erase = acp_erase_deque;
    static constexpr auto erase_range = acp_erase_range_deque;
    static constexpr auto push_back = acp_push_back_deque;
    static constexpr auto pop_back = acp_pop_back_deque;
    static constexpr auto push_front = acp_push_front_deque;
    static constexpr auto pop_front = acp_pop_front_deque;
    static constexpr auto advance = acp_advance_deque_it;
    static constexpr auto distance = acp_distance_deque_it;
    static std::string content(const Window& window, Structure deque) {
        const acp_pair_t all = acp_dereference_deque_it(begin(deque), size(deque));
        return window.look(all.first.ga, all.first.size) +
               window.look(all.second.ga, all.second.size);
    }
};

/// One structure and what it should hold.
template <class Kind>
struct Pair {
    typename Kind::Structure mine;
    std::string model;
};

template <class Kind>
typename Kind::Iterator place(const Pair<Kind>& of, size_t position) {
    return Kind::advance(Kind::begin(of.mine), static_cast<int>(position));
}

/// A call that changes one, and the model with it.
template <class Kind>
void change_one(Random& random, const Window& window, Pair<Kind>& one) {
    const size_t position = random.below(one.model.size() + 1);
    const size_t some = random.below(one.model.size() + 20);
    const std::string text = random.bytes(random.below(8) == 0 ? 5000 : 60);
    const acp_element_t held = window.hold(text);
    switch (random.below(9)) {
        case 0:
            Kind::push_back(one.mine, held.ga, held.size);
            one.model += text;
            return;
        case 1:
            Kind::push_front(one.mine, held.ga, held.size);
            one.model = text + one.model;
            return;
        case 2:
        case 3: {
            const auto at = Kind::insert(place(one, position), held.ga, held.size);
            CHECK(at.index == static_cast<int>(position), "at %d, not %zu", at.index, position);
            one.model.insert(position, text);
            return;
        }
        case 4:
            Kind::erase(place(one, position), some);
            one.model.erase(position, some);
            return;
        case 5:
            Kind::pop_back(one.mine, some / 3);
            one.model.erase(one.model.size() - std::min(some / 3, one.model.size()));
            return;
        case 6:
            Kind::pop_front(one.mine, some / 3);
            one.model.erase(0, some / 3);
            return;
        case 7:
            Kind::reserve(one.mine, some * 2);
            CHECK(Kind::capacity(one.mine) >= some * 2, "room for %zu", some * 2);
            return;
        case 8:  // bytes of its own, from where they are now; those of a deque may be in two pieces
            if (position == one.model.size() || Kind::has_front) return;
            Kind::insert(place(one, some), Kind::at(one.mine, static_cast<int>(position)),
                         one.model.size() - position);
            one.model.insert(std::min(some, one.model.size()), one.model.substr(position));
            return;
    }
}

/// A call on two, which may be one and the same.
template <class Kind>
void change_two(Random& random, Pair<Kind>& one, Pair<Kind>& other) {
    const size_t position = random.below(one.model.size() + 1);
    const size_t from = random.below(other.model.size() + 1);
    const size_t to = from + random.below(other.model.size() + 1 - from);
    const std::string part = other.model.substr(from, to - from);
    switch (random.below(5)) {
        case 0:
            Kind::insert_range(place(one, position), place(other, from), place(other, to));
            one.model.insert(position, part);
            return;
        case 1:
            Kind::assign_range(one.mine, place(other, from), place(other, to));
            one.model = part;
            return;
        case 2:
            Kind::swap(one.mine, other.mine);
            one.model.swap(other.model);
            return;
        case 3:
            Kind::assign(one.mine, other.mine);
            one.model = std::string(other.model);
            return;
        case 4:
            Kind::erase_range(place(other, from), place(other, to));
            other.model.erase(from, to - from);
            return;
    }
}

template <class Kind>
void check(const Window& window, const Pair<Kind>& of) {
    CHECK(Kind::size(of.mine) == of.model.size(), "%zu bytes, not %zu", Kind::size(of.mine),
          of.model.size());
    CHECK(Kind::empty(of.mine) == (of.model.empty() ? 1 : 0), "of %zu bytes", of.model.size());
    CHECK(Kind::distance(Kind::begin(of.mine), Kind::end(of.mine)) ==
              static_cast<int>(of.model.size()),
          "of %zu bytes", of.model.size());
    CHECK(Kind::content(window, of.mine) == of.model, "of %zu bytes", of.model.size());
    CHECK(Kind::at(of.mine, static_cast<int>(of.model.size())) == ACP_GA_NULL,
          "something behind the end");
    CHECK(Kind::at(of.mine, -1) == ACP_GA_NULL, "something before the first");
}

template <class Kind>
void run(int steps) {
    Random random(static_cast<uint64_t>(acp_rank()) * 1000003);
    const Window window(window_bytes);
    const auto any_rank = [&] {
        return static_cast<int>(random.below(static_cast<size_t>(acp_procs())));
    };
    const size_t first = Kind::has_front ? 0 : 40;
    Pair<Kind> pairs[3] = {{Kind::create(first, any_rank()), std::string(first, '\0')},
                           {Kind::create(0, any_rank()), {}},
                           {Kind::create(0, acp_rank()), {}}};
    for (int step = 0; step < steps; ++step) {
        auto& one = pairs[random.below(3)];
        auto& other = pairs[random.below(3)];
        if (random.below(3) != 0) {
            change_one(random, window, one);
        } else if (&one != &other || random.below(4) == 0) {
            change_two(random, one, other);
        }
        if (one.model.size() > 60000) {
            Kind::clear(one.mine);
            one.model.clear();
        }
        check(window, one);
        check(window, other);
    }
    for (auto& one : pairs) Kind::destroy(one.mine);
}

}  // namespace

int main(int argc, char** argv) {
    if (acp_init(&argc, &argv) != 0) return 1;
    const int steps = argc > 1 ? atoi(argv[1]) : 100;
    run<Vectors>(steps);
    run<Deques>(steps);
    acp_sync();
    if (acp_rank() == 0)
        printf("%d steps of vectors and deques on %d ranks: right\n", steps, acp_procs());
    return acp_finalize();
}
