// SPDX-License-Identifier: BSD-3-Clause
// Role: where tasks go that change data: to the node that changed them last; and what goes along
// with a task.
#include <gtest/gtest.h>

#include <cstring>

#include "omp/task/task_book.hpp"

namespace hiroba::omp {
namespace {

constexpr NodeId here{0}, there{1}, elsewhere{2};

/// A node's books, and the implicit task that makes all others.
struct Books {
    explicit Books(NodeId self) : book(self), implicit(book.make()) {
        book.make_implicit(implicit, &book.everywhere());
    }
    /// Makes a task that changes `address`; 0: nothing in particular. Ready unless it must wait.
    Task& make(std::uintptr_t address) {
        Task& task = book.make();
        book.create(task, implicit);
        std::vector<Dependence> dependences;
        if (address != 0)
            dependences = {{address + 1, DependenceKind::in}, {address, DependenceKind::inout}};
        if (dependences.empty() || book.depend(task, dependences)) book.make_ready(task);
        return task;
    }
    std::vector<GivenTask> give(NodeId thief) {
        std::vector<GivenTask> given;
        book.give_any(thief, 32, given);
        return given;
    }
    Task* take() { return book.take_any(book.everywhere()); }
    /// As its host reports it.
    void end_elsewhere(const GivenTask& given, NodeId host) {
        EXPECT_EQ(book.hear({given.path[0], true, true, false}, host), nullptr);
    }

    TaskBook book;
    Task& implicit;
};

/// Addresses 0x100 and 0x300 were changed there, 0x200 here. Of 0x100 and 0x200 a task waits each.
struct ChangedAtTwoNodes : testing::Test {
    ChangedAtTwoNodes() {
        keeps_the_table = &books.make(0x900);
        EXPECT_EQ(books.take(), keeps_the_table);
        books.make(0x100);
        books.make(0x300);
        std::vector<GivenTask> given = books.give(there);
        EXPECT_EQ(given.size(), 1u);  // half
        given.push_back(books.give(there).at(0));
        Task& own = books.make(0x200);
        EXPECT_EQ(books.take(), &own);
        changes_there = &books.make(0x100);
        changes_here = &books.make(0x200);
        for (const GivenTask& each : given) books.end_elsewhere(each, there);
        books.book.end_body(own);
    }
    Books books{here};
    Task *keeps_the_table, *changes_there, *changes_here;
};

TEST_F(ChangedAtTwoNodes, a_node_takes_what_changes_its_data_first) {
    EXPECT_EQ(books.take(), changes_here);
    EXPECT_EQ(books.take(), changes_there);
}

TEST_F(ChangedAtTwoNodes, a_thread_that_waits_does_so_too) {
    Task& newest = books.make(0x300);
    EXPECT_EQ(newest.data_at, there);
    EXPECT_EQ(books.book.take_descendant(books.implicit), changes_here);
    EXPECT_EQ(books.book.take_descendant(books.implicit), &newest);
}

TEST_F(ChangedAtTwoNodes, a_thief_gets_what_changes_its_data_before_older_ones) {
    books.make(0);
    const std::vector<GivenTask> given = books.give(there);
    ASSERT_EQ(given.size(), 2u);  // half of three, rounded up
    EXPECT_EQ(given[0].data_at, there);
    EXPECT_EQ(given[1].data_at, nowhere);
    EXPECT_EQ(books.take(), changes_here);
}

TEST_F(ChangedAtTwoNodes, a_thief_gets_the_data_of_others_if_there_is_nothing_else) {
    const std::vector<GivenTask> given = books.give(elsewhere);
    ASSERT_EQ(given.size(), 1u);
    EXPECT_EQ(given[0].data_at, there);  // the older one
}

TEST_F(ChangedAtTwoNodes, a_guest_keeps_its_place) {
    const std::vector<GivenTask> given = books.give(elsewhere);
    Books third{elsewhere};
    third.make(0);
    third.book.adopt(given[0]);
    const std::vector<GivenTask> passed_on = third.give(there);
    ASSERT_EQ(passed_on.size(), 1u);
    EXPECT_EQ(passed_on[0].path[0].raw, given[0].path[0].raw);
}

TEST(TaskArgument, a_short_one_goes_along_and_comes_back) {
    Books creator{here}, thief{there};
    Task& task = creator.book.make();
    const char words[] = "short enough";
    task.short_bytes = sizeof words;
    std::memcpy(task.short_argument, words, sizeof words);
    creator.book.create(task, creator.implicit);
    creator.book.make_ready(task);
    const std::vector<GivenTask> given = creator.give(there);
    ASSERT_EQ(given.size(), 1u);
    thief.book.adopt(given[0]);
    std::vector<GivenTask> back = thief.give(here);
    ASSERT_EQ(back.size(), 1u);
    EXPECT_EQ(back[0].short_bytes, sizeof words);
    EXPECT_STREQ(reinterpret_cast<const char*>(back[0].short_argument), words);
    creator.book.adopt(back[0]);
    ASSERT_EQ(creator.take(), &task);
    EXPECT_STREQ(reinterpret_cast<const char*>(task.short_argument), words);
    creator.book.end_body(task);
    // The descriptor's next user has no argument.
    EXPECT_EQ(creator.book.make().short_bytes, 0u);
}

}  // namespace
}  // namespace hiroba::omp
