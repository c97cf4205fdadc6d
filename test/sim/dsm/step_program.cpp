// SPDX-License-Identifier: BSD-3-Clause
#include "sim/dsm/step_program.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "sim/dsm/step_world.hpp"

namespace hiroba::sim_test {

namespace {

using dsm::Others;
using net::sim::Scheduler;
using Kind = WordRole::Kind;

/// One thread of the program.
class ProgramThread {
public:
    ProgramThread(StepWorld& world, std::uint32_t self, ClusterNode& node)
        : world_(world),
          self_(self),
          node_(node),
          memory_(node.memory()),
          random_(world.seed * 1'000'003 + self) {}

    void live() {
        for (phase_ = 0; phase_ < world_.roles.size(); ++phase_) {
            const std::uint64_t drawn = random_.below(world_.operations_max + 1);
            for (std::uint64_t left = begin_phase(drawn); left > 0; --left) {
                step();
                operate();
            }
            meet();
        }
        for (std::uint32_t word = 0; word < step_words; ++word) check("last read", word);
    }

private:
    Scheduler& scheduler() { return world_.cluster->scheduler(); }
    void step() { scheduler().step(); }
    void wait() { scheduler().pass(); }  ///< StepWalk ends what waits for ever

    void say(const char* what, std::uint32_t number, std::uint64_t value) {
        if (!world_.tells) return;
        std::printf("%7" PRIu64 "  thread %u of node %u: %s %u: %" PRIu64 "\n", world_.walk.steps(),
                    self_, node_.self().value, what, number, value);
    }
    void fail(const char* what, std::uint32_t number, std::uint64_t saw, std::uint64_t right) {
        world_.fail("thread " + std::to_string(self_) + ": " + what + " " + std::to_string(number) +
                    " sees " + std::to_string(saw) + " instead of " + std::to_string(right));
    }

    void compare(const char* how, std::uint32_t word, std::uint64_t saw) {
        say(how, word, saw);
        if (saw != world_.right[word]) fail(how, word, saw, world_.right[word]);
    }
    void check(const char* how, std::uint32_t word) {
        compare(how, word, node_.load(world_.word(word), 8));
    }
    // Few values: what was there before comes again, and what is equal is not merged.
    std::uint64_t draw_value() { return random_.below(random_.happens(50) ? 3 : 1000); }
    void write(std::uint32_t word) {
        const std::uint64_t value = draw_value();
        say("write", word, value);
        node_.store(world_.word(word), 8, value);
        world_.right[word] = value;
    }

    template <class Fits>
    std::optional<std::uint32_t> any_word(Fits&& fits) {
        const auto first = static_cast<std::uint32_t>(random_.below(step_words));
        for (std::uint32_t i = 0; i < step_words; ++i) {
            const std::uint32_t word = (first + i) % step_words;
            if (fits(world_.roles[phase_][word])) return word;
        }
        return {};
    }
    bool is_own(const WordRole& role) const noexcept {
        return role.kind == Kind::owned && role.who == self_;
    }
    void write_own_words(std::uint32_t percent) {
        for (std::uint32_t word = 0; word < step_words; ++word) {
            if (is_own(world_.roles[phase_][word]) && random_.happens(percent)) write(word);
        }
    }

    // The processor makes two atomics on one word one after the other, here as many steps as they
    // take.
    bool& is_used(std::uint32_t word) {
        return world_.in_atomic[node_.self().value * step_words + word];
    }
    // Both forms of a section: where a block is the node's own there is a short one.
    void enter(std::uintptr_t address) {
        void* const at = reinterpret_cast<void*>(address);
        const dsm::OwnAtomics own = memory_.own_atomics();
        goes_by_ = world_.shape == StepShape::counters && random_.happens(70) &&
                   own.try_go_by != nullptr && own.try_go_by(own.context, at);
        if (goes_by_) return;
        if (random_.happens(50) && own.try_enter != nullptr && own.try_enter(own.context, at, 8))
            return;
        memory_.enter_atomic(at, 8);
    }
    void leave(std::uintptr_t address) {
        void* const at = reinterpret_cast<void*>(address);
        const dsm::OwnAtomics own = memory_.own_atomics();
        if (std::exchange(goes_by_, false)) return own.end_going_by(own.context);
        if (random_.happens(50) && own.try_leave != nullptr && own.try_leave(own.context, at, 8))
            return;
        memory_.leave_atomic(at, 8);
    }

    std::uint64_t begin_phase(std::uint64_t drawn);
    void operate();
    void count();
    void use_plainly();
    void use_atomically();
    void use_locked();
    void send();
    void look();
    void lend_to_kernel();
    void publish();
    void call_memory();
    void meet();
    void exchange_news(std::uint64_t round);

    StepWorld& world_;
    const std::uint32_t self_;
    ClusterNode& node_;
    dsm::SharedMemory& memory_;
    Random random_;
    std::uint32_t phase_ = 0;
    bool goes_by_ = false;  ///< the atomic that it has entered
};

// What comes before the operations of the phase; returns how many there are.
std::uint64_t ProgramThread::begin_phase(std::uint64_t drawn) {
    switch (world_.shape) {
        case StepShape::any: return drawn;
        case StepShape::wandering:
        case StepShape::releases:
            // Blocks become a node's own first.
            write_own_words(phase_ < 3 ? 45 : 10);
            return phase_ < 3 ? 0 : drawn;
        case StepShape::atomics:
            // Few: what is written later would bring what was lost to the other nodes.
            write_own_words(phase_ == 0 ? 80 : 50);
            if (phase_ == 0) return 0;
            return self_ == 0 ? drawn + 1 : 1 + drawn % 3;
        case StepShape::first_use:
            if (phase_ == 0 && self_ == world_.first_writer) {
                for (const std::uintptr_t block : {world_.blocks[0], world_.blocks[1]}) {
                    node_.store(block + 1024, 8, 1);
                }
            }
            return std::max<std::uint64_t>(drawn, 1);
        case StepShape::counters: return node_.self().value == 0 ? 2 * drawn + 4 : drawn % 3;
    }
    return drawn;
}

void ProgramThread::operate() {
    const bool counts = world_.shape == StepShape::atomics;
    if (world_.shape == StepShape::counters) return count();
    const bool publishes_mostly = (world_.shape == StepShape::releases || counts) && self_ == 0;
    const std::uint32_t publishes = publishes_mostly ? 70 : world_.releases_percent;
    if (random_.happens(publishes)) return publish();
    const std::uint64_t what = random_.below(counts ? 58 : 100);
    if (what < 40) return use_plainly();
    if (what < 58) return use_atomically();
    if (what < 66) return use_locked();
    if (what < 75) return send();
    if (what < 84) return look();
    if (what < 88) return lend_to_kernel();
    const bool all_calls = world_.shape == StepShape::any || world_.shape == StepShape::wandering;
    all_calls ? call_memory() : publish();
}

void ProgramThread::count() {
    const std::uint64_t what = random_.below(100);
    if (what < 60) return use_atomically();
    if (what < 75) return use_plainly();
    if (what < 85) return send();
    what < 95 ? look() : publish();
}

void ProgramThread::use_plainly() {
    const auto word =
        any_word([&](const WordRole& role) { return is_own(role) || role.kind == Kind::readable; });
    if (!word) return;
    if (is_own(world_.roles[phase_][*word]) && random_.happens(70)) return write(*word);
    check("read", *word);
}

void ProgramThread::use_atomically() {
    const auto word = any_word([&](const WordRole& role) {
        return role.kind == Kind::atomic || (role.kind == Kind::counted && node_.self().value == 0);
    });
    if (!word) return;
    while (is_used(*word)) wait();
    is_used(*word) = true;
    enter(world_.word(*word));
    check("atomic", *word);
    if (random_.happens(world_.shape == StepShape::atomics ? 40 : 75)) write(*word);
    leave(world_.word(*word));
    is_used(*word) = false;
}

void ProgramThread::use_locked() {
    const auto number = static_cast<std::uint32_t>(random_.below(step_locks));
    StepLock& lock = world_.locks[number];
    while (lock.held) wait();
    lock.held = true;
    if (!lock.news.empty()) {
        memory_.learn(NodeId{~0u}, lock.news);
        memory_.acquire(Others::running);
    }
    for (int uses = 0; uses < 2; ++uses) {
        const auto word = any_word(
            [&](const WordRole& role) { return role.kind == Kind::locked && role.who == number; });
        if (!word) break;
        check("locked read", *word);
        if (random_.happens(60)) write(*word);
    }
    memory_.release(Others::running);
    Mail news(memory_.news_bytes_max());
    news.resize(memory_.news_for_anyone(news));
    lock.news = std::move(news);
    lock.held = false;
}

// A number, and a flag behind it that tells of it: plain, or an atomic.
void ProgramThread::send() {
    const std::uint64_t value = world_.sent[self_] + 1;
    say("send", self_, value);
    node_.store(world_.sent_number(self_), 8, value);
    world_.sent[self_] = value;
    const std::uintptr_t flag = world_.sent_flag(self_);
    const bool is_atomic = random_.happens(40);
    if (is_atomic) enter(flag);
    node_.store(flag, 8, value);
    if (is_atomic) leave(flag);
}

void ProgramThread::look() {
    const auto who = static_cast<std::uint32_t>(random_.below(world_.sent.size()));
    const std::uintptr_t flag = world_.sent_flag(who);
    const bool is_atomic = random_.happens(30);
    if (is_atomic) enter(flag);
    const std::uint64_t told = node_.load(flag, 8);
    if (is_atomic) leave(flag);
    say("told by", who, told);
    const std::uint64_t saw = node_.load(world_.sent_number(who), 8);
    say("look at what was sent by", who, saw);
    if (saw < told) fail("look at what was sent by", who, saw, told);
}

// A system call on a pinned word, which comes to it twice.
void ProgramThread::lend_to_kernel() {
    const auto word = any_word([&](const WordRole& role) { return is_own(role); });
    if (!word) return;
    const bool fills = random_.happens(60);
    const std::uintptr_t at = world_.word(*word);
    node_.lend_to_kernel(at, true);
    memory_.pin(reinterpret_cast<void*>(at), 8, fills);
    for (int part = 0; part < 2; ++part) {
        std::uint64_t value = draw_value();
        if (!(fills ? node_.kernel_fills(at, 8, value) : node_.kernel_reads(at, 8, value)))
            return fail("refused system call on", *word, 0, 1);
        if (fills) world_.right[*word] = value;
        compare(fills ? "fill by the kernel" : "read by the kernel", *word, value);
        step();
    }
    memory_.unpin(reinterpret_cast<void*>(at), 8);
    node_.lend_to_kernel(at, false);
}

void ProgramThread::publish() {
    switch (random_.below(4)) {
        case 0:
        case 1: return memory_.release(Others::running);
        case 2: memory_.flush_aside(); return;
        default: memory_.flush();
    }
}

void ProgramThread::call_memory() {
    const std::uintptr_t word = world_.word(static_cast<std::uint32_t>(random_.below(step_words)));
    const auto* const at = reinterpret_cast<const void*>(word);
    switch (random_.below(6)) {
        case 0: return memory_.release(Others::running);
        case 1: return memory_.acquire(Others::running);
        case 2: return memory_.prefetch(at, 8);
        case 3: return memory_.make_accessible(at, 8, random_.happens(50));
        case 4: memory_.flush_aside(); return;
        default: memory_.flush();
    }
}

// The last thread of a node to come exchanges its news with the other nodes.
void ProgramThread::meet() {
    StepGate& gate = world_.gates[node_.self().value];
    const std::uint64_t round = gate.rounds;
    step();
    if (++gate.come < world_.cluster->threads_of(node_.self().value)) {
        while (gate.rounds == round) wait();
        return;
    }
    exchange_news(round);
    gate.come = 0;
    ++gate.rounds;
}

void ProgramThread::exchange_news(std::uint64_t round) {
    const std::uint32_t self = node_.self().value, nodes = world_.nodes();
    memory_.release(world_.seed % 3 == 0 ? Others::running : Others::stopped);
    Mail buffer(memory_.news_bytes_max());
    for (std::uint32_t i = 1; i < nodes; ++i) {
        const std::uint32_t to = (self + i) % nodes;
        const auto bytes = static_cast<std::ptrdiff_t>(memory_.news_for(NodeId{to}, buffer));
        world_.mail(self, to).emplace_back(buffer.begin(), buffer.begin() + bytes);
    }
    ++world_.gates[self].sent;
    for (std::uint32_t i = 1; i < nodes; ++i) {
        const std::uint32_t from = (self + i) % nodes;
        step();
        while (world_.gates[from].sent <= round) wait();
        memory_.learn(NodeId{from}, world_.mail(from, self).front());
        world_.mail(from, self).pop_front();
    }
    memory_.acquire(Others::stopped);
    memory_.everyone_knows();
    if (world_.seed / 7 % 2 == 1) memory_.bring_expected();
}

}  // namespace

StepOutcome run_step_program(net::sim::FiberStacks& stacks, std::uint64_t seed, StepShape shape,
                             bool tell) {
    StepWorld world{stacks, seed, shape, tell};
    Cluster& cluster = *world.cluster;
    const Scheduler::Outcome ended = cluster.run([&](std::uint32_t thread, ClusterNode& node) {
        world.begin_choice();
        ProgramThread{world, thread, node}.live();
    });
    StepOutcome outcome{.failure = world.failure, .steps = world.walk.steps()};
    if (outcome.failure.empty()) outcome.failure = world.walk.failure();
    if (outcome.failure.empty() && ended != Scheduler::Outcome::ended)
        outcome.failure = std::string("not ended: ") + outcome_name(ended);
    for (std::uint32_t rank = 0; rank < world.nodes(); ++rank) {
        outcome.counts[rank] = cluster.node(rank).memory().counts();
    }
    return outcome;
}

}  // namespace hiroba::sim_test
