// SPDX-License-Identifier: BSD-3-Clause
// Sets, multisets and maps beside std::map: random calls of all kinds, after each of which both
// hold the same keys, counts and values. Each rank has its own, with slots on all ranks. Then one
// of each that all ranks change at the same time, each key by several.
// Usage: sets STEPS
#include <map>
#include <vector>

#include "data.hpp"

using data_test::Random;
using data_test::Window;

namespace {

constexpr size_t window_bytes = 1 << 14;
constexpr size_t value_at = 1 << 13;

/// What all three should hold of a key; a set counts 1 and has no value.
struct Kept {
    uint64_t count = 1;
    std::string value;
    bool operator==(const Kept& other) const {
        return count == other.count && value == other.value;
    }
};
using Model = std::map<std::string, Kept>;

#define COMMON(name)                                            \
    using Structure = acp_##name##_t;                           \
    using Iterator = acp_##name##_it_t;                         \
    static constexpr auto create = acp_create_##name;           \
    static constexpr auto destroy = acp_destroy_##name;         \
    static constexpr auto clear = acp_clear_##name;             \
    static constexpr auto size = acp_size_##name;               \
    static constexpr auto size_local = acp_size_local_##name;   \
    static constexpr auto empty = acp_empty_##name;             \
    static constexpr auto empty_local = acp_empty_local_##name; \
    static constexpr auto assign = acp_assign_##name;           \
    static constexpr auto merge = acp_merge_##name;             \
    static constexpr auto merge_local = acp_merge_local_##name; \
    static constexpr auto move = acp_move_##name;               \
    static constexpr auto move_local = acp_move_local_##name;   \
    static constexpr auto swap = acp_swap_##name;               \
    static constexpr auto begin = acp_begin_##name;             \
    static constexpr auto begin_local = acp_begin_local_##name; \
    static constexpr auto end_local = acp_end_local_##name;     \
    static constexpr auto end = acp_end_##name;                 \
    static constexpr auto next = acp_increment_##name##_it;     \
    static constexpr auto find = acp_find_##name

struct Sets {
    COMMON(set);
    static constexpr const char* name = "set";
    static constexpr bool counts = false, has_values = false;
    static bool insert(Structure set, acp_element_t key, acp_element_t) {
        return acp_insert_set(set, key) == 1;
    }
    static void remove(Structure set, acp_element_t key, bool) { acp_remove_set(set, key); }
    static std::pair<std::string, Kept> look(const Window& window, Iterator it) {
        const acp_element_t key = acp_dereference_set_it(it);
        return {window.look(key.ga, key.size), {}};
    }
    static Kept retrieve(const Window&, Structure, acp_element_t) { return {}; }
};
struct Multisets {
    COMMON(multiset);
    static constexpr const char* name = "multiset";
    static constexpr bool counts = true, has_values = false;
    static bool insert(Structure set, acp_element_t key, acp_element_t) {
        return acp_insert_multiset(set, key) == 1;
    }
    static void remove(Structure set, acp_element_t key, bool all) {
        (all ? acp_remove_all_multiset : acp_remove_multiset)(set, key);
    }
    static std::pair<std::string, Kept> look(const Window& window, Iterator it) {
        const acp_element_t key = acp_dereference_multiset_it(it);
        const std::string bytes = window.look(key.ga, key.size);
        return {bytes, {acp_retrieve_multiset(it.set, window.hold(bytes)), {}}};
    }
    static Kept retrieve(const Window&, Structure set, acp_element_t key) {
        return {acp_retrieve_multiset(set, key), {}};
    }
};
struct Maps {
    COMMON(map);
    static constexpr const char* name = "map";
    static constexpr bool counts = false, has_values = true;
    static bool insert(Structure map, acp_element_t key, acp_element_t value) {
        return acp_insert_map(map, {key, value}) == 1;
    }
    static void remove(Structure map, acp_element_t key, bool) { acp_remove_map(map, key); }
    static std::pair<std::string, Kept> look(const Window& window, Iterator it) {
        const acp_pair_t pair = acp_dereference_map_it(it);
        const std::string key = window.look(pair.first.ga, pair.first.size);
        return {key, {1, window.look(pair.second.ga, pair.second.size)}};
    }
    static Kept retrieve(const Window& window, Structure map, acp_element_t key) {
        const size_t bytes = acp_retrieve_map(map, {key, {window.ga() + value_at, 4000}});
        return {1, {window.here() + value_at, bytes}};
    }
};

template <class Kind>
struct Pair {
    typename Kind::Structure mine;
    Model model;
};

template <class Kind>
bool model_insert(Model& model, const std::string& key, const Kept& kept) {
    const auto [at, is_new] = model.emplace(key, kept);
    if (!is_new && Kind::counts) at->second.count += kept.count;
    return is_new || !Kind::has_values;
}

template <class Kind>
void change(Random& random, const Window& window, Pair<Kind>& one, Pair<Kind>& other) {
    std::string key = std::to_string(random.below(60));
    if (random.below(4) == 0) key += std::string(1500 + random.below(2), 'x');
    const std::string value = Kind::has_values ? random.bytes(50) : "";
    const acp_element_t held = window.hold(key), held_value = window.hold(value, value_at);
    const size_t kind = random.below(40);
    if (kind < 22) {
        CHECK(Kind::insert(one.mine, held, held_value) ==
                  model_insert<Kind>(one.model, key, {1, value}),
              "inserting a key of %zu bytes", key.size());
    } else if (kind < 34) {
        const bool all = random.below(3) == 0;
        Kind::remove(one.mine, held, all);
        const auto at = one.model.find(key);
        if (at != one.model.end() && (all || --at->second.count == 0)) one.model.erase(at);
    } else if (kind < 36) {
        (kind == 34 ? Kind::merge : Kind::move)(one.mine, other.mine);
        if (&one == &other) return;
        for (const auto& [their_key, kept] : other.model)
            model_insert<Kind>(one.model, their_key, kept);
        if (kind == 35) other.model.clear();
    } else if (kind == 36) {
        Kind::assign(one.mine, other.mine);
        one.model = Model(other.model);
    } else if (kind == 37) {
        Kind::swap(one.mine, other.mine);
        one.model.swap(other.model);
    } else if (kind == 38) {
        Kind::clear(one.mine);
        one.model.clear();
    } else {
        const auto it = Kind::find(one.mine, held);
        CHECK((it.elem != ACP_GA_NULL) == (one.model.count(key) == 1), "finding a key of %zu bytes",
              key.size());
        if (it.elem == ACP_GA_NULL) return;
        CHECK(Kind::look(window, it).first == key, "found a key of %zu bytes", key.size());
        window.hold(key);
        CHECK(Kind::retrieve(window, one.mine, held) == one.model[key], "what is kept of %zu bytes",
              key.size());
    }
}

template <class Kind>
void check(const Window& window, const Pair<Kind>& of) {
    CHECK(Kind::size(of.mine) == of.model.size(), "%zu keys in the %s, not %zu",
          Kind::size(of.mine), Kind::name, of.model.size());
    CHECK(Kind::empty(of.mine) == (of.model.empty() ? 1 : 0), "of %zu", of.model.size());
    Model all;
    size_t keys = 0;
    const auto end = Kind::end(of.mine);
    for (auto it = Kind::begin(of.mine); it.rank != end.rank; it = Kind::next(it), ++keys)
        all.insert(Kind::look(window, it));
    CHECK(keys == all.size(), "%zu keys seen, %zu of them different", keys, all.size());
    CHECK(all == of.model, "%zu keys in the %s", all.size(), Kind::name);
    size_t mine = 0;
    const auto local_end = Kind::end_local(of.mine);
    for (auto it = Kind::begin_local(of.mine); it.elem != local_end.elem && mine <= keys;
         it = Kind::next(it)) {
        CHECK(acp_query_rank(it.elem) == acp_rank(), "an element of rank %d",
              acp_query_rank(it.elem));
        ++mine;
    }
    CHECK(mine == Kind::size_local(of.mine), "%zu of %zu keys here", mine,
          Kind::size_local(of.mine));
    CHECK(Kind::empty_local(of.mine) == (mine == 0 ? 1 : 0), "%zu here", mine);
}

template <class Kind>
void run_alone(int steps, const std::vector<int>& ranks) {
    Random random(static_cast<uint64_t>(acp_rank()) * 1000003);
    const Window window(window_bytes);
    const int here = acp_rank(), count = static_cast<int>(ranks.size());
    Pair<Kind> pairs[2] = {{Kind::create(count, ranks.data(), 7, here), {}},
                           {Kind::create(1, &ranks.back(), 3, ranks.front()), {}}};
    for (int step = 0; step < steps; ++step) {
        auto& one = pairs[random.below(2)];
        auto& other = pairs[random.below(2)];
        change(random, window, one, other);
        if (step % 8 != 0) continue;
        check(window, one);
        check(window, other);
    }
    for (auto& one : pairs) Kind::destroy(one.mine);
}

/// Every rank inserts each of the same keys and removes every other one of its own again.
template <class Kind>
void run_together(const std::vector<int>& ranks) {
    constexpr size_t keys = 40;
    const Window window(window_bytes);
    const int me = acp_rank(), count = static_cast<int>(ranks.size());
    typename Kind::Structure all{};
    if (me == 0) all = Kind::create(count, ranks.data(), 2, 0);
    std::vector<uint64_t> control(ranks.size());
    exchange(all.ga, control.data(), 16);
    all = {control[0], static_cast<uint64_t>(count), 2};
    for (size_t key = 0; key < keys; ++key) {
        const std::string text = "key " + std::to_string(key);
        Kind::insert(all, window.hold(text), window.hold("of one", value_at));
        if (!Kind::counts) continue;
        Kind::insert(all, window.hold(text), {});
        if (key % 2 == 0) Kind::remove(all, window.hold(text), false);
    }
    acp_sync();
    CHECK(Kind::size(all) == keys, "%zu keys of all ranks, not %zu", Kind::size(all), keys);
    for (size_t key = 0; key < keys; ++key) {
        const acp_element_t held = window.hold("key " + std::to_string(key));
        Kept kept = Kind::retrieve(window, all, held);
        const uint64_t wanted = Kind::counts ? ranks.size() * (key % 2 == 0 ? 1 : 2) : 1;
        CHECK(kept.count == wanted, "%lu times, not %lu", kept.count, wanted);
        CHECK(!Kind::has_values || kept.value == "of one", "a value of %zu bytes",
              kept.value.size());
    }
    // Each rank takes what it has, into a structure of its own: none is lost, none is twice.
    const auto mine = Kind::create(1, &me, 4, me);
    const size_t here = Kind::size_local(all);
    Kind::merge_local(mine, all);
    CHECK(Kind::size(mine) == here, "%zu merged, not %zu", Kind::size(mine), here);
    acp_sync();
    Kind::clear(mine);
    Kind::move_local(mine, all);
    CHECK(Kind::size(mine) == here && Kind::empty_local(all) == 1, "%zu moved, not %zu",
          Kind::size(mine), here);
    acp_sync();
    CHECK(Kind::empty(all) == 1, "%zu keys left", Kind::size(all));
    Kind::destroy(mine);
    acp_sync();
    if (me == 0) Kind::destroy(all);
}

template <class Kind>
void run(int steps) {
    std::vector<int> ranks;
    for (int rank = acp_procs() - 1; rank >= 0; --rank) ranks.push_back(rank);
    run_alone<Kind>(steps, ranks);
    run_together<Kind>(ranks);
}

}  // namespace

int main(int argc, char** argv) {
    if (acp_init(&argc, &argv) != 0) return 1;
    const int steps = argc > 1 ? atoi(argv[1]) : 100;
    run<Sets>(steps);
    run<Multisets>(steps);
    run<Maps>(steps);
    acp_sync();
    if (acp_rank() == 0)
        printf("%d steps of sets and maps on %d ranks: right\n", steps, acp_procs());
    return acp_finalize();
}
