// SPDX-License-Identifier: BSD-3-Clause
// Tests of what workers push to and others take from: each element is had once, whoever is faster.
#include "tasks/deque.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "tasks/offers.hpp"

namespace hiroba::tasks {
namespace {

constexpr std::uint64_t elements = 30'000;
constexpr int thieves = 2;

/// Has an owner push all elements, in rows of one to three, and pop what thieves leave.
/// @param push,pop,take  of element i; true: it was there
template <class Push, class Pop, class Take>
void race(Push push, Pop pop, Take take) {
    std::vector<std::atomic<int>> had(elements);
    std::atomic<bool> is_over{false};
    std::vector<std::thread> others;
    for (int i = 0; i < thieves; ++i)
        others.emplace_back([&] {
            std::uint64_t found = 0;
            while (!is_over.load())
                if (take(found)) had[found].fetch_add(1);
        });
    std::uint64_t found = 0;
    for (std::uint64_t next = 0; next < elements;) {
        for (std::uint64_t row = next % 3 + 1; row > 0 && next < elements; --row)
            ASSERT_TRUE(push(next++));
        while (pop(found)) had[found].fetch_add(1);
    }
    is_over = true;
    for (std::thread& each : others) each.join();
    std::uint64_t wrong = 0;
    for (const auto& each : had) wrong += each.load() != 1 ? 1 : 0;
    EXPECT_EQ(wrong, 0u);
}

TEST(Deque, each_element_is_had_once) {
    const auto deque = std::make_unique<Deque<std::uint64_t, 8>>();
    std::vector<std::uint64_t> values(elements);
    const auto found = [](std::uint64_t* element, std::uint64_t& to) {
        if (element != nullptr) to = *element;
        return element != nullptr;
    };
    race(
        [&](std::uint64_t i) {
            values[i] = i;
            return deque->push(&values[i]);
        },
        [&](std::uint64_t& to) { return found(deque->pop(), to); },
        [&](std::uint64_t& to) { return found(deque->take(), to); });
    EXPECT_TRUE(deque->is_empty());
}

TEST(Deque, is_full_at_its_capacity_and_gives_the_newest_to_its_owner) {
    const auto deque = std::make_unique<Deque<int, 4>>();
    int values[5] = {};
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(deque->push(&values[i]));
    EXPECT_FALSE(deque->push(&values[4]));
    EXPECT_EQ(deque->take(), &values[0]);
    EXPECT_TRUE(deque->push(&values[4]));
    EXPECT_EQ(deque->pop(), &values[4]);
    EXPECT_EQ(deque->pop(), &values[3]);
    EXPECT_EQ(deque->take(), &values[1]);
    EXPECT_EQ(deque->pop(), &values[2]);
    EXPECT_EQ(deque->pop(), nullptr);
    EXPECT_EQ(deque->take(), nullptr);
}

TEST(Offers, each_entry_is_had_once_and_whole) {
    constexpr std::uint32_t capacity = 8;
    const std::size_t bytes = Offers::bytes_of(capacity);
    const std::unique_ptr<std::byte, decltype(&std::free)> memory(
        static_cast<std::byte*>(std::aligned_alloc(64, bytes)), &std::free);
    std::memset(memory.get(), 0, bytes);
    Offers own(memory.get(), capacity), theirs(memory.get(), capacity);
    const auto check = [](const Entry& entry, std::uint64_t& to) {
        std::uint64_t words[closure_bytes_max / 8];
        std::memcpy(words, entry.closure, entry.bytes);
        to = words[0];
        for (std::size_t i = 0; i < entry.bytes / 8; ++i) EXPECT_EQ(words[i], to);
        EXPECT_EQ(entry.join, to + 1);
        return true;
    };
    race(
        [&](std::uint64_t i) {
            Entry head;
            head.bytes = static_cast<std::uint32_t>(8 + i % 12 * 8);
            head.join = i + 1;
            std::uint64_t words[closure_bytes_max / 8];
            std::fill(std::begin(words), std::end(words), i);
            return own.push(head, words);
        },
        [&](std::uint64_t& to) {
            Entry entry;
            return own.pop(entry) && check(entry, to);
        },
        [&](std::uint64_t& to) {
            Entry entry;
            return theirs.take(entry) && check(entry, to);
        });
    EXPECT_TRUE(own.is_empty());
    EXPECT_EQ(own.newest(), 0u);
}

}  // namespace
}  // namespace hiroba::tasks
