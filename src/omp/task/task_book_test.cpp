// SPDX-License-Identifier: BSD-3-Clause
// Role: random task graphs on simulated nodes: the books carried by mails in any order a network
// may deliver them, against an oracle that knows the program. Bugs that are planted on purpose must
// be found.
// Of memory the test simulates this: each node knows a set of things that have happened; mails take
// the sender's along (a release), and the receiver adds them (an acquire).
#include "omp/task/task_book.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <set>
#include <stdexcept>

#include "omp/task/task_loop.hpp"

namespace hiroba::omp {
namespace {

struct Op {
    enum Kind { spawn, wait, begin_group, end_group, fulfill, cancel } kind;
    int task = 0;  // of a cancel: the group
};

struct Spec {
    int parent = -1;
    std::vector<int> groups;  // ids of the groups it is created in, outermost first
    std::vector<Op> ops;
    std::vector<Dependence> dependences;
    bool undeferred = false, detached = false, dependences_matter = false;
};

/// The tasks of a program and what each does; task 0 is the implicit one.
class Program {
public:
    Program(std::uint64_t seed, int budget)
        : random_(seed), budget_(budget), cancels_(seed % 3 == 0) {
        tasks.push_back({});
        fill(0, 0);
    }
    std::vector<Spec> tasks;

private:
    int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
    int add(int parent) {
        --budget_;
        Spec spec;
        spec.parent = parent;
        spec.groups = open_groups_;
        tasks.push_back(spec);
        return static_cast<int>(tasks.size()) - 1;
    }
    void fill(int task, int depth) {
        const std::vector<int> outside = open_groups_;
        const int ops = depth == 0 ? 12 : pick(5);
        for (int i = 0; i < ops && budget_ > 0; ++i) {
            const int kind = pick(10);
            if (kind == 0) {
                tasks[task].ops.push_back({Op::wait});
            } else if (kind == 1) {
                open_groups_.push_back(++groups_);
                tasks[task].ops.push_back({Op::begin_group});
            } else if (kind == 2 && open_groups_.size() > outside.size()) {
                open_groups_.pop_back();
                tasks[task].ops.push_back({Op::end_group});
            } else if (kind == 3 && cancels_ && !open_groups_.empty()) {
                tasks[task].ops.push_back({Op::cancel, open_groups_.back()});
            } else {
                spawn_one(task, depth);
            }
        }
        for (; open_groups_.size() > outside.size(); open_groups_.pop_back())
            tasks[task].ops.push_back({Op::end_group});
    }
    void spawn_one(int task, int depth) {
        const int child = add(task);
        for (int d = pick(6) - 3; d > 0; --d)
            tasks[child].dependences.push_back({static_cast<std::uintptr_t>(1 + pick(3)),
                                                static_cast<DependenceKind>(1 + pick(5))});
        if (pick(12) == 0) tasks[child].dependences.push_back({0, DependenceKind::all_memory});
        unify(tasks[child].dependences);
        tasks[child].undeferred = pick(8) == 0;
        tasks[child].detached = pick(8) == 0;
        tasks[task].ops.push_back({Op::spawn, child});
        if (tasks[child].detached && pick(2) == 0) {
            const int other = add(task);  // Another thread does it, maybe elsewhere.
            tasks[other].ops.push_back({Op::fulfill, child});
            tasks[task].ops.push_back({Op::spawn, other});
        } else if (tasks[child].detached) {
            tasks[task].ops.push_back({Op::fulfill, child});
        }
        if (depth < 5) fill(child, depth + 1);
    }

    std::mt19937_64 random_;
    int budget_, groups_ = 0;
    bool cancels_;
    std::vector<int> open_groups_;
};

bool is_on_all_memory(const Spec& spec) {
    return !spec.dependences.empty() && spec.dependences[0].kind == DependenceKind::all_memory;
}

bool conflict(const Spec& a, const Spec& b) {
    if (is_on_all_memory(a)) return !b.dependences.empty();
    if (is_on_all_memory(b)) return !a.dependences.empty();
    for (const Dependence& x : a.dependences)
        for (const Dependence& y : b.dependences)
            if (x.address == y.address && (x.kind != y.kind || x.kind == DependenceKind::inout))
                return true;
    return false;
}

enum class Bug {
    none,
    report_lost,
    no_acquire,
    dependence_dropped,
    told_without_release,
    cancel_lost
};

/// N nodes with some threads each. Throws a line when the oracle objects.
class World {
public:
    World(std::uint64_t seed, std::uint32_t nodes, std::uint32_t threads, Bug bug)
        : program_(seed, 60), random_(seed * 77 + 1), bug_(bug), state_(program_.tasks.size()) {
        mails_.resize(nodes * nodes);
        for (std::uint32_t n = 0; n < nodes; ++n) {
            nodes_.push_back({std::make_unique<TaskBook>(NodeId{n}), {}, {}, false});
            for (std::uint32_t t = 0; t < threads; ++t) {
                Task& task = nodes_[n].book->make();
                nodes_[n].book->make_implicit(task, &nodes_[n].book->everywhere());
                Thread thread;
                const bool main = n == 0 && t == 0;
                thread.stack.push_back({main ? 0 : -1, &task, 0, false, {}});
                nodes_[n].threads.push_back(thread);
            }
        }
        nodes_[0].knows.insert(created(0));
    }

    void run() {
        for (int step = 0; step < 200'000; ++step) {
            if (is_over()) return check_end();
            const std::size_t mail = random_() % mails_.size();
            if (random_() % 3 == 0 && !mails_[mail].empty()) {
                const auto width = static_cast<std::uint32_t>(nodes_.size());
                deliver(static_cast<std::uint32_t>(mail) / width,
                        static_cast<std::uint32_t>(mail) % width);
            } else {
                const std::size_t n = random_() % nodes_.size();
                advance(static_cast<std::uint32_t>(n), random_() % nodes_[n].threads.size());
            }
        }
        throw std::runtime_error("hangs");
    }
    std::uint64_t stolen = 0, discarded = 0;

private:
    struct Level {
        int spec;
        Task* task;
        std::size_t at = 0;
        bool unmet = false;
        std::vector<TaskGroup*> groups;
    };
    struct Thread {
        std::vector<Level> stack;
        bool in_barrier = false;
    };
    struct Node {
        std::unique_ptr<TaskBook> book;
        std::vector<Thread> threads;
        std::set<int> knows;
        bool announced = false;
    };
    struct Mail {
        enum Kind { wanted, wanted_of, given, told, fulfilled, group_cancelled, cancelled } kind;
        std::vector<TaskHandle> handles;
        std::vector<GivenTask> tasks;
        std::vector<GuestReport> reports;
        std::set<int> knows;
    };
    struct State {
        int runs = 0;
        bool ended = false, fulfilled = false, discarded = false;
        TaskHandle handle;
    };

    static int created(int task) { return 3 * task; }
    static int ended(int task) { return 3 * task + 1; }
    static int fulfilled(int task) { return 3 * task + 2; }
    [[noreturn]] void fail(const std::string& what, int task) {
        throw std::runtime_error(what + " task " + std::to_string(task));
    }
    void send(std::uint32_t from, std::uint32_t to, Mail mail, bool release = true) {
        if (release) mail.knows = nodes_[from].knows;
        mails_[from * nodes_.size() + to].push_back(std::move(mail));
    }
    void send_reports(std::uint32_t n) {
        std::vector<GuestReport> reports;
        reports.swap(nodes_[n].book->reports());
        for (const GuestReport& report : reports) {
            if (bug_ == Bug::report_lost && random_() % 8 == 0) continue;
            send(n, report.task.node().value, {Mail::told, {}, {}, {report}, {}},
                 bug_ != Bug::told_without_release);
        }
    }
    void send_cancelled(std::uint32_t n) {
        TaskBook::Cancelled cancelled;
        std::swap(cancelled, nodes_[n].book->cancelled());
        const auto tell = [&](std::uint32_t to, Mail mail) {
            if (bug_ == Bug::cancel_lost && random_() % 2 == 0) return;
            send(n, to, std::move(mail), false);
        };
        for (const TaskHandle each : cancelled.groups_of)
            tell(each.node().value, {Mail::group_cancelled, {each}, {}, {}, {}});
        if (cancelled.away.empty()) return;
        for (std::uint32_t to = 0; to < nodes_.size(); ++to)
            if (to != n) tell(to, {Mail::cancelled, cancelled.away, {}, {}, {}});
    }
    /// Delivers all mails. All nodes then know of the cancellation: it is a fault when a task of a
    /// cancelled group starts later.
    void deliver_all() {
        const auto width = static_cast<std::uint32_t>(nodes_.size());
        for (;;) {
            std::vector<std::uint32_t> full;
            for (std::uint32_t mail = 0; mail < mails_.size(); ++mail)
                if (!mails_[mail].empty()) full.push_back(mail);
            if (full.empty()) return;
            const std::uint32_t mail = full[random_() % full.size()];
            deliver(mail / width, mail % width);
        }
    }

    void deliver(std::uint32_t from, std::uint32_t to) {
        Mail mail = std::move(mails_[from * nodes_.size() + to].front());
        mails_[from * nodes_.size() + to].pop_front();
        Node& node = nodes_[to];
        if (!(bug_ == Bug::no_acquire && mail.kind == Mail::given))
            node.knows.insert(mail.knows.begin(), mail.knows.end());
        std::vector<GivenTask> tasks;
        switch (mail.kind) {
            case Mail::wanted: node.book->give_any(NodeId{from}, 8, tasks); break;
            case Mail::wanted_of:
                node.book->give_descendants(NodeId{from}, mail.handles, 8, tasks);
                break;
            case Mail::given:
                for (const GivenTask& each : mail.tasks) node.book->adopt(each);
                stolen += mail.tasks.size();
                break;
            case Mail::told:
                for (const GuestReport& each : mail.reports)
                    (void)node.book->hear(each, NodeId{from});
                break;
            case Mail::fulfilled: node.book->fulfill(mail.handles[0]); break;
            case Mail::group_cancelled: node.book->hear_cancel(mail.handles[0]); break;
            case Mail::cancelled:
                for (const TaskHandle each : mail.handles) node.book->hear_cancelled(each, 1);
                break;
        }
        send_cancelled(to);
        if (!tasks.empty()) send(to, from, {Mail::given, {}, tasks, {}, {}});
        send_reports(to);
    }

    void advance(std::uint32_t n, std::size_t t) {
        Thread& thread = nodes_[n].threads[t];
        Level& level = thread.stack.back();
        if (level.unmet) {
            if (level.task->unmet != 0) return look_for_work(n, thread, level.task->parent);
            level.unmet = false;
            begin(n, level);
        }
        const Spec* const spec = level.spec < 0 ? nullptr : &program_.tasks[level.spec];
        if (spec != nullptr && level.at < spec->ops.size()) return perform(n, thread, *spec);
        if (thread.stack.size() == 1) {
            thread.in_barrier = true;
            return look_for_work(n, thread, nullptr);
        }
        const int task = level.spec;
        Task& done = *level.task;
        thread.stack.pop_back();
        state_[task].ended = true;
        nodes_[n].knows.insert(ended(task));
        nodes_[n].book->end_body(done);
        send_reports(n);
    }

    void perform(std::uint32_t n, Thread& thread, const Spec& spec) {
        Level& level = thread.stack.back();
        Node& node = nodes_[n];
        const Op op = spec.ops[level.at];
        switch (op.kind) {
            case Op::spawn: ++level.at; return spawn(n, thread, op.task);
            case Op::wait:
                if (level.task->children != 0) return look_for_work(n, thread, level.task);
                for (std::size_t i = 0; i < level.at; ++i)
                    if (spec.ops[i].kind == Op::spawn) must_know_end(n, spec.ops[i].task);
                break;
            case Op::begin_group:
                level.groups.push_back(&groups_.emplace_back());
                level.groups.back()->outer = level.task->group;
                level.task->group = level.groups.back();
                break;
            case Op::end_group: {
                TaskGroup* const group = level.groups.back();
                if (group->count != 0) return look_for_work(n, thread, level.task);
                check_group(n, level.spec, level.at);
                level.task->group = group->outer;
                level.groups.pop_back();
                break;
            }
            case Op::fulfill: fulfill(n, op.task); break;
            case Op::cancel:
                cancelled_.insert(op.task);
                if (!node.book->cancel_group(*level.task)) fail("names no group:", level.spec);
                send_cancelled(n);
                deliver_all();
                told_.insert(op.task);
                break;
        }
        ++level.at;
    }

    void fulfill(std::uint32_t n, int task) {
        Node& node = nodes_[n];
        const TaskHandle handle = state_[task].handle;
        state_[task].fulfilled = true;
        node.knows.insert(fulfilled(task));
        if (handle.node().value == n)
            node.book->fulfill(handle);
        else
            send(n, handle.node().value, {Mail::fulfilled, {handle}, {}, {}, {}});
        send_reports(n);
    }

    void spawn(std::uint32_t n, Thread& thread, int id) {
        const Spec& spec = program_.tasks[id];
        Node& node = nodes_[n];
        Task& task = node.book->make();
        task.argument = reinterpret_cast<void*>(static_cast<std::intptr_t>(id));
        task.detached = spec.detached;
        state_[id].handle = node.book->handle_of(task);
        node.knows.insert(created(id));
        node.book->create(task, *thread.stack.back().task);
        std::vector<Dependence> dependences = spec.dependences;
        if (bug_ == Bug::dependence_dropped && random_() % 4 == 0 && !dependences.empty())
            dependences.pop_back();
        if (spec.undeferred) {
            node.book->start_undeferred(task);
            const bool now = dependences.empty() || node.book->depend(task, dependences);
            thread.stack.push_back({id, &task, 0, !now, {}});
            if (now) begin(n, thread.stack.back());
        } else if (dependences.empty() || node.book->depend(task, dependences)) {
            node.book->make_ready(task);
        }
    }

    void look_for_work(std::uint32_t n, Thread& thread, Task* of) {
        Node& node = nodes_[n];
        if (node.announced && of != nullptr && thread.stack.size() == 1)
            fail("left the barrier", 0);
        Task* const task = of == nullptr ? node.book->take_any(node.book->everywhere())
                                         : node.book->take_descendant(*of);
        if (task != nullptr) {
            const int id = static_cast<int>(reinterpret_cast<std::intptr_t>(task->argument));
            if (of != nullptr) check_constraint(thread.stack.back(), id);
            thread.stack.push_back({id, task, 0, false, {}});
            return begin(n, thread.stack.back());
        }
        if (random_() % 4 != 0) return;
        const auto other = static_cast<std::uint32_t>(random_() % nodes_.size());
        if (other == n) return;
        if (of == nullptr) return send(n, other, {Mail::wanted, {}, {}, {}, {}});
        Mail mail{Mail::wanted_of, {}, {}, {}, {}};
        node.book->list_away(*of, mail.handles);
        if (!mail.handles.empty()) send(n, other, mail);
    }

    bool descends(int task, int from) const {
        while (task > from) task = program_.tasks[task].parent;
        return task == from;
    }
    void check_constraint(const Level& level, int task) {
        const int from = level.unmet ? program_.tasks[level.spec].parent : level.spec;
        if (!descends(task, from)) fail("breaks the scheduling constraint:", task);
    }
    void must_know_end(std::uint32_t n, int task) {
        if (!state_[task].ended || !nodes_[n].knows.contains(ended(task)))
            fail("did not wait for", task);
        if (!program_.tasks[task].detached || state_[task].discarded) return;
        if (!state_[task].fulfilled || !nodes_[n].knows.contains(fulfilled(task)))
            fail("did not wait for the event of", task);
    }
    /// A discarded task only fulfils events: others wait for those.
    void discard(std::uint32_t n, Level& level, int group) {
        if (!cancelled_.contains(group)) fail("is discarded, and nobody cancelled", level.spec);
        ++discarded;
        state_[level.spec].discarded = level.task->discarded = true;
        const std::vector<Op>& ops = program_.tasks[level.spec].ops;
        level.at = ops.size();
        for (const Op& op : ops)
            if (op.kind == Op::fulfill && state_[op.task].runs != 0) fulfill(n, op.task);
    }

    void begin(std::uint32_t n, Level& level) {
        const int task = level.spec;
        if (++state_[task].runs != 1) fail("runs twice:", task);
        const std::vector<int>& groups = program_.tasks[task].groups;
        const int group = groups.empty() ? 0 : groups.back();
        if (TaskBook::is_cancelled(*level.task))
            discard(n, level, group);
        else if (told_.contains(group))
            fail("starts though it is cancelled:", task);
        if (!nodes_[n].knows.contains(created(task))) fail("does not see what was before", task);
        for (const Op& op : program_.tasks[program_.tasks[task].parent].ops) {
            if (op.kind != Op::spawn) continue;
            if (op.task == task) break;
            if (conflict(program_.tasks[op.task], program_.tasks[task])) must_know_end(n, op.task);
        }
    }
    void check_group(std::uint32_t n, int spec, std::size_t end) {
        const std::vector<Op>& ops = program_.tasks[spec].ops;
        int depth = 1;
        std::size_t at = end;
        while (depth != 0) {
            --at;
            depth += ops[at].kind == Op::end_group;
            depth -= ops[at].kind == Op::begin_group;
        }
        for (; at < end; ++at) {
            if (ops[at].kind != Op::spawn) continue;
            for (int task = ops[at].task; task < static_cast<int>(state_.size()); ++task)
                if (descends(task, ops[at].task) && !is_left_out(task)) must_know_end(n, task);
        }
    }

    /// Never created, because one it descends from was discarded.
    bool is_left_out(int task) const {
        while ((task = program_.tasks[task].parent) > 0)
            if (state_[task].discarded) return true;
        return false;
    }

    bool is_over() {
        bool all = true;
        for (Node& node : nodes_) {
            bool arrived = true;
            for (const Thread& thread : node.threads) arrived &= thread.in_barrier;
            node.announced |= arrived && node.book->live() == 0;
            all &= node.announced;
        }
        return all;
    }
    void check_end() {
        for (std::size_t task = 1; task < state_.size(); ++task)
            if (!is_left_out(static_cast<int>(task)) &&
                (state_[task].runs != 1 || !state_[task].ended))
                fail("not over at the barrier:", static_cast<int>(task));
        for (Node& node : nodes_)
            if (node.book->used() != node.threads.size()) fail("a descriptor is left over;", 0);
    }

    Program program_;
    std::mt19937_64 random_;
    Bug bug_;
    std::vector<Node> nodes_;
    std::vector<std::deque<Mail>> mails_;
    std::vector<State> state_;
    std::set<int> cancelled_, told_;  // groups
    std::deque<TaskGroup> groups_;    // all that began
};

std::uint64_t seeds() {
    const char* const wanted = std::getenv("TASK_SEEDS");
    return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 3000;
}

TEST(TaskBook, random_programs_run_each_task_once_and_in_order) {
    std::uint64_t stolen = 0, discarded = 0;
    for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
        World world(seed, static_cast<std::uint32_t>(1 + seed % 4),
                    static_cast<std::uint32_t>(1 + seed / 4 % 2), Bug::none);
        try {
            world.run();
        } catch (const std::runtime_error& wrong) {
            FAIL() << "seed " << seed << ": " << wrong.what();
        }
        stolen += world.stolen;
        discarded += world.discarded;
    }
    EXPECT_GT(stolen, seeds());
    EXPECT_GT(discarded, seeds() / 2);
}

class Planted : public testing::TestWithParam<Bug> {};
INSTANTIATE_TEST_SUITE_P(Bugs, Planted,
                         testing::Values(Bug::report_lost, Bug::no_acquire, Bug::dependence_dropped,
                                         Bug::told_without_release, Bug::cancel_lost));

TEST_P(Planted, is_found) {
    int found = 0;
    for (std::uint64_t seed = 1; seed <= 200 && found < 3; ++seed) {
        try {
            World(seed, 3, 1, GetParam()).run();
        } catch (const std::runtime_error&) {
            ++found;
        }
    }
    EXPECT_GE(found, 3);
}

TEST(TaskBook, higher_priorities_come_first) {
    TaskBook book(NodeId{0});
    Task& parent = book.make();
    book.make_implicit(parent, &book.everywhere());
    for (const int priority : {0, 5, 1, 5}) {
        Task& task = book.make();
        task.priority = priority;
        book.create(task, parent);
        book.make_ready(task);
    }
    std::vector<int> order;
    while (Task* const task = book.take_any(book.everywhere())) order.push_back(task->priority);
    EXPECT_EQ(order, (std::vector<int>{5, 5, 1, 0}));
}

TEST(TaskLoop, tasks_cover_the_loop) {
    for (std::uint64_t count = 1; count < 40; ++count)
        for (std::uint64_t wanted = 0; wanted < 12; ++wanted)
            for (const bool is_grainsize : {false, true})
                for (const bool strict : {false, true}) {
                    const TaskLoop loop{0, 1, count, wanted, is_grainsize, strict};
                    const std::uint64_t tasks = loop.tasks(4);
                    std::uint64_t sum = 0;
                    for (std::uint64_t i = 0; i < tasks; ++i) {
                        const std::uint64_t some = loop.iterations_of(i, tasks);
                        ASSERT_GE(some, 1u);
                        if (is_grainsize && wanted > 0 && count >= wanted && !strict) {
                            ASSERT_GE(some, wanted);
                            ASSERT_LT(some, 2 * wanted);
                        }
                        if (is_grainsize && strict && i + 1 < tasks) {
                            ASSERT_EQ(some, std::max<std::uint64_t>(wanted, 1));
                        }
                        sum += some;
                    }
                    ASSERT_EQ(sum, count);
                    if (!is_grainsize && wanted > 0) {
                        ASSERT_EQ(tasks, std::min(wanted, count));
                    }
                }
}

}  // namespace
}  // namespace hiroba::omp
