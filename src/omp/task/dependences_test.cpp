// SPDX-License-Identifier: BSD-3-Clause
// Role: which siblings run side by side and which wait, for each kind of dependence that needs a
// case of its own; task_book_test.cpp has random ones.
#include <gtest/gtest.h>

#include "omp/task/task_book.hpp"

namespace hiroba::omp {
namespace {

TEST(Dependences, readers_run_side_by_side_and_writers_alone) {
    TaskBook book(NodeId{0});
    Task& parent = book.make();
    book.make_implicit(parent, &book.everywhere());
    const auto add = [&](DependenceKind kind) -> Task& {
        Task& task = book.make();
        book.create(task, parent);
        std::vector<Dependence> on{{64, kind}};
        if (book.depend(task, on)) book.make_ready(task);
        return task;
    };
    Task& writer = add(DependenceKind::out);
    Task& reader = add(DependenceKind::in);
    Task& other = add(DependenceKind::in);
    Task& last = add(DependenceKind::inout);
    EXPECT_EQ(writer.state, TaskState::ready);
    EXPECT_EQ(reader.unmet, 1u);
    EXPECT_EQ(other.unmet, 1u);
    EXPECT_EQ(last.unmet, 2u);
    book.end_body(*book.take_any(book.everywhere()));
    EXPECT_EQ(reader.state, TaskState::ready);
    EXPECT_EQ(other.state, TaskState::ready);
    book.end_body(*book.take_any(book.everywhere()));
    EXPECT_EQ(last.state, TaskState::blocked);
    book.end_body(*book.take_any(book.everywhere()));
    EXPECT_EQ(last.state, TaskState::ready);
}

TEST(Dependences, all_memory_comes_behind_every_address_and_before_those_named_later) {
    TaskBook book(NodeId{0});
    Task& parent = book.make();
    book.make_implicit(parent, &book.everywhere());
    const auto add = [&](std::vector<Dependence> on) -> Task& {
        Task& task = book.make();
        book.create(task, parent);
        if (book.depend(task, on)) book.make_ready(task);
        return task;
    };
    using enum DependenceKind;
    Task& writer = add({{64, out}});
    Task& reader = add({{128, in}});
    Task& first = add({{192, in}, {0, all_memory}});
    Task& old_address = add({{64, in}});
    Task& new_address = add({{256, in}});
    Task& beside = add({{256, in}});
    Task& second = add({{0, all_memory}});
    EXPECT_EQ(writer.state, TaskState::ready);
    EXPECT_EQ(reader.state, TaskState::ready);
    EXPECT_EQ(first.unmet, 2u);
    EXPECT_EQ(old_address.unmet, 1u);
    EXPECT_EQ(new_address.unmet, 1u);
    EXPECT_EQ(beside.unmet, 1u);
    const auto run_next = [&] { book.end_body(*book.take_any(book.everywhere())); };
    run_next();
    EXPECT_EQ(first.state, TaskState::blocked);
    run_next();
    EXPECT_EQ(first.state, TaskState::ready);
    run_next();
    EXPECT_EQ(old_address.state, TaskState::ready);
    EXPECT_EQ(new_address.state, TaskState::ready);
    EXPECT_EQ(beside.state, TaskState::ready);
    run_next();
    run_next();
    EXPECT_EQ(second.state, TaskState::blocked);
    run_next();
    EXPECT_EQ(second.state, TaskState::ready);
}

TEST(Dependences, all_memory_comes_behind_all_memory_where_no_address_is_known) {
    TaskBook book(NodeId{0});
    Task& parent = book.make();
    book.make_implicit(parent, &book.everywhere());
    Task* tasks[2];
    for (Task*& task : tasks) {
        task = &book.make();
        book.create(*task, parent);
        std::vector<Dependence> on{{0, DependenceKind::all_memory}};
        if (book.depend(*task, on)) book.make_ready(*task);
    }
    EXPECT_EQ(tasks[0]->state, TaskState::ready);
    EXPECT_EQ(tasks[1]->unmet, 1u);
}

}  // namespace
}  // namespace hiroba::omp
