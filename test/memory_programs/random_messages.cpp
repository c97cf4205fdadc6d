// SPDX-License-Identifier: BSD-3-Clause
// Role: words through which threads hand on what they have written, without any synchronization
// but the order of their writes (docs/protocol.md#before).
// Invariant: each word has one writer, which writes its data before its flag, so a thread that
// reads a flag and then the data finds the latter no older. So does one that is told by a third
// thread.
#include <cstdio>

#include "memory_programs/random_program.hpp"

namespace hiroba::sim_test {

namespace {
constexpr unsigned who_shift = 32;
}  // namespace

// Data lie in one block and flags in another, of any node, with those of other threads.
void RandomProgram::lay_out_messages(Random& random) {
    const std::size_t block_bytes = map_.shape().block_bytes;
    const auto any_arena = [&] {
        const auto node = static_cast<std::uint32_t>(random.below(shape_.nodes));
        return map_.heap_arena(NodeId{node}).address;
    };
    const std::uintptr_t one = any_arena() + 2 * block_bytes + 8 * random.below(200);
    const std::uintptr_t other = any_arena() + 3 * block_bytes + 8 * random.below(200);
    for (std::uint32_t thread = 0; thread < threads(); ++thread) {
        const bool turned = random.happens(50);
        const std::uintptr_t offset = 24 * thread;
        messages_.push_back({(turned ? one : other) + offset, (turned ? other : one) + offset + 8,
                             (random.happens(50) ? one : other) + offset + 16});
    }
}

void RandomProgram::put(Self& self, std::uintptr_t address, std::uint64_t value) {
    if (self.random.happens(50)) return self.node.store(address, 8, value);
    auto* const word = reinterpret_cast<void*>(address);
    self.node.memory().enter_atomic(word, 8);
    self.node.store(address, 8, value);
    self.node.memory().leave_atomic(word, 8);
}

std::uint64_t RandomProgram::look_at(Self& self, std::uintptr_t address) {
    if (self.random.happens(70)) return self.node.load(address, 8);
    auto* const word = reinterpret_cast<void*>(address);
    self.node.memory().enter_atomic(word, 8);
    const std::uint64_t value = self.node.load(address, 8);
    self.node.memory().leave_atomic(word, 8);
    return value;
}

void RandomProgram::use_message(Self& self) {
    if (self.thread >= messages_.size()) return;
    self.random.happens(50) ? send(self) : look(self);
}

void RandomProgram::send(Self& self) {
    const Messages& mine = messages_[self.thread];
    self.node.store(mine.data, 8, ++self.sent);
    if (self.random.happens(30)) yield();
    put(self, mine.flag, self.sent);
}

void RandomProgram::look(Self& self) {
    auto who = static_cast<std::uint32_t>(self.random.below(messages_.size()));
    const bool relayed = self.random.happens(40);
    const std::uint64_t word = look_at(self, relayed ? messages_[who].relay : messages_[who].flag);
    const std::uint32_t told_by = who;
    if (relayed) who = static_cast<std::uint32_t>(word >> who_shift);
    const std::uint64_t told = word & ((std::uint64_t{1} << who_shift) - 1);
    if (told == 0) return;
    const std::uint64_t saw = self.node.load(messages_[who].data, 8);
    if (saw < told) {
        char text[256];
        std::snprintf(text, sizeof text,
                      "thread %u (node %u) phase %u step %u: told by thread %u of message %lu of "
                      "thread %u, and sees %lu",
                      self.thread, self.node.self().value, self.phase, self.step, told_by, told,
                      who, saw);
        failed_(text);
    }
    put(self, messages_[self.thread].relay, std::uint64_t{who} << who_shift | told);
}

}  // namespace hiroba::sim_test
