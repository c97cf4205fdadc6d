// SPDX-License-Identifier: BSD-3-Clause
// A program has phases with barriers, or serial parts between join and fork, between them. In each
// phase every variable has a role that keeps threads from racing for it; roles change with the
// phase, so that bytes written by one node are read and overwritten by others. Variables of
// different roles share blocks.
#include "memory_programs/random_program.hpp"

#include <cerrno>
#include <cstdio>

#include "base/turns.hpp"

namespace hiroba::sim_test {

namespace {

using dsm::Others;

constexpr std::uint32_t variables_per_block = 8;
constexpr std::uint32_t heap_blocks = 2;  ///< of the blocks laid out, the first
constexpr std::uint32_t locks = 2;

}  // namespace

// --- drawing -------------------------------------------------------------------------------------

DrawnMemory draw_memory(Random& random) {
    const auto one_of = [&](auto... choices) {
        const std::uint64_t all[] = {static_cast<std::uint64_t>(choices)...};
        return all[random.below(sizeof...(choices))];
    };
    DrawnMemory drawn;
    drawn.threads_of_first = random.happens(30) ? 3 : 2;
    const bool small = random.happens(50);
    drawn.memory.notices_max = static_cast<std::uint32_t>(small ? one_of(1, 1, 2, 3, 4) : 1024);
    // The longest lets a few merges carry times beyond 32 bits.
    drawn.memory.lease = one_of(1, 2, 10, 1u << 30);
    drawn.memory.lock_hops = static_cast<std::uint32_t>(one_of(8, 8, 1, 0));
    drawn.memory.watch_ahead = random.happens(30);
    return drawn;
}

RandomProgram::RandomProgram(std::uint64_t seed, const ProgramShape& shape, Random& random,
                             std::uint32_t threads_of_first, const dsm::AddressMap& map,
                             Oracle& oracle, Failed failed)
    : seed_(seed),
      shape_(shape),
      threads_of_first_(threads_of_first),
      map_(map),
      oracle_(oracle),
      failed_(std::move(failed)) {
    lay_out(random);
    phases_ = 2 + static_cast<std::uint32_t>(random.below(phases_max - 1));
    for (std::uint32_t phase = 0; phase <= phases_; ++phase) draw_phase(random);
}

void RandomProgram::lay_out(Random& random) {
    const std::uint32_t nodes = shape_.nodes;
    const std::size_t block_bytes = map_.shape().block_bytes;
    const auto any_node = [&] { return NodeId{static_cast<std::uint32_t>(random.below(nodes))}; };
    const std::uintptr_t heap = map_.heap_arena(any_node()).address;
    // Half the time the next one, so that misses in a row are answered ahead.
    const std::uintptr_t other =
        (random.happens(50) ? heap : map_.heap_arena(any_node()).address) + block_bytes;
    const std::uint32_t slices = nodes * map_.shape().threads_per_node;
    const std::uintptr_t stack =
        map_.stack_slice(static_cast<std::uint32_t>(random.below(slices))).address + block_bytes;
    for (const std::uintptr_t block : {heap, other, stack}) {
        std::uintptr_t at = block + 8 * random.below(400);
        for (std::uint32_t i = 0; i < variables_per_block; ++i) {
            const std::uint32_t bytes = 1u << random.below(4);
            at = round_up(at, bytes);
            variables_.push_back({at, bytes});
            at += bytes;
        }
    }
    lay_out_messages(random);
}

void RandomProgram::draw_phase(Random& random) {
    Phase phase;
    phase.serial = random.happens(30);
    for (std::size_t i = 0; i < variables_.size(); ++i) {
        const std::uint64_t draw = random.below(100);
        Role role;
        if (draw < 35) {
            role = {Role::Kind::owned, static_cast<std::uint32_t>(random.below(threads()))};
        } else if (draw < 48) {
            role = {Role::Kind::readable, 0};
        } else if (draw < 80) {
            role = {Role::Kind::locked, static_cast<std::uint32_t>(random.below(locks))};
        } else {
            role = {Role::Kind::atomic, 0};
        }
        phase.roles.push_back(role);
    }
    if (random.happens(25)) draw_freed_block(phase, random);
    phases_drawn_.push_back(std::move(phase));
}

// Not the block of a stack, which stays accessible for good.
void RandomProgram::draw_freed_block(Phase& phase, Random& random) {
    const std::size_t block = random.below(heap_blocks);
    phase.freed_block = block;
    do {
        phase.freed_by = static_cast<std::uint32_t>(random.below(threads()));
    } while (!is_first_of_node(phase.freed_by));
    for (std::size_t i = 0; i < variables_per_block; ++i) {
        phase.roles[block * variables_per_block + i] = random.happens(50)
                                                           ? Role{Role::Kind::owned, phase.freed_by}
                                                           : Role{Role::Kind::locked, 0};
    }
}

// Often one in the block of the last: the rarest rows of the protocol take two or three different
// uses of one block between two releases.
template <class Fits>
const RandomProgram::Variable* RandomProgram::any_variable(Self& self, Fits&& fits) {
    std::size_t start = self.random.below(variables_.size());
    if (self.random.happens(40)) {
        start = start % variables_per_block + self.last / variables_per_block * variables_per_block;
    }
    for (std::size_t i = 0; i < variables_.size(); ++i) {
        const std::size_t index = (start + i) % variables_.size();
        if (!fits(phases_drawn_[self.phase].roles[index]) || is_gone(self.phase, index)) continue;
        self.last = index;
        return &variables_[index];
    }
    return nullptr;
}

// --- telling -------------------------------------------------------------------------------------

std::string RandomProgram::place(const Variable& variable) const {
    char text[96];
    std::snprintf(text, sizeof text, "variable %ld (%u bytes at 0x%lx)",
                  static_cast<long>(&variable - variables_.data()), variable.bytes,
                  variable.address);
    return text;
}

void RandomProgram::tell(const Self& self, const char* what, const Variable& variable,
                         std::uint64_t value) {
    if (!shape_.tell) return;
    std::printf("%9lu ns  thread %u (node %u) phase %u step %u: %s %s: 0x%lx\n",
                self.node.time_ns(), self.thread, self.node.self().value, self.phase, self.step,
                what, place(variable).c_str(), value);
}

void RandomProgram::check(const Self& self, const char* what, const Variable& variable,
                          std::uint64_t saw) {
    const std::uint64_t right = value_of(variable).load(std::memory_order_acquire);  // write()
    if (saw == right) return;
    char text[256];
    std::snprintf(text, sizeof text,
                  "thread %u (node %u) phase %u step %u: %s %s is 0x%lx, should be 0x%lx",
                  self.thread, self.node.self().value, self.phase, self.step, what,
                  place(variable).c_str(), saw, right);
    failed_(text);
}

// --- steps ---------------------------------------------------------------------------------------

void RandomProgram::read(Self& self, const Variable& variable, const char* how) {
    const std::uint64_t saw = self.node.load(variable.address, variable.bytes);
    tell(self, how, variable, saw);
    check(self, how, variable, saw);
}

void RandomProgram::write(Self& self, const Variable& variable, const char* how) {
    // Small values too: equal bytes at different times are where merges go wrong.
    const std::uint64_t value =
        (self.random.happens(50) ? self.random.below(4) : self.random()) & variable.mask();
    tell(self, how, variable, value);
    self.node.store(variable.address, variable.bytes, value);
    value_of(variable).store(value, std::memory_order_release);  // pairs with check()
}

void RandomProgram::use_plain(Self& self) {
    const Variable* const variable = any_variable(self, [&](const Role& role) {
        return role.kind == Role::Kind::readable ||
               (role.kind == Role::Kind::owned && role.who == self.thread);
    });
    if (variable == nullptr) return;
    const Role& role = phases_drawn_[self.phase].roles[index_of(*variable)];
    if (role.kind == Role::Kind::owned && self.random.happens(60)) {
        write(self, *variable, "write of");
    } else {
        read(self, *variable, "read of");
    }
}

void RandomProgram::use_locked(Self& self) {
    const auto lock = static_cast<std::uint32_t>(self.random.below(locks));
    const dsm::LockKey key = map_.early_arena().address + 8 * lock;
    if (self.random.happens(20)) {
        if (!self.node.locks().try_lock(key)) return;
    } else {
        self.node.locks().lock(key);
    }
    const std::uint64_t uses = 1 + self.random.below(5);
    for (std::uint64_t i = 0; i < uses; ++i) {
        const Variable* const variable = any_variable(self, [&](const Role& role) {
            return role.kind == Role::Kind::locked && role.who == lock;
        });
        if (variable == nullptr) break;
        if (self.random.happens(60)) read(self, *variable, "locked read of");
        if (self.random.happens(60)) write(self, *variable, "locked write of");
        if (self.random.happens(30)) yield();
        // What was written before the lock is still unmerged, and the lock has brought news.
        if (self.random.happens(25)) use_unlocked(self);
    }
    self.node.locks().unlock(key);
}

/// Any use that takes no lock of the program.
void RandomProgram::use_unlocked(Self& self) {
    const std::uint64_t draw = self.random.below(100);
    if (draw < 60) {
        use_plain(self);
    } else if (draw < 75) {
        use_atomic(self);
    } else if (draw < 85) {
        use_message(self);
    } else {
        use_in_system_call(self);
    }
}

void RandomProgram::use_atomic(Self& self) {
    const Variable* const variable =
        any_variable(self, [](const Role& role) { return role.kind == Role::Kind::atomic; });
    if (variable == nullptr) return;
    auto* const address = reinterpret_cast<void*>(variable->address);
    self.node.memory().enter_atomic(address, variable->bytes);
    if (self.random.happens(30)) yield();
    const std::uint64_t saw = self.node.load(variable->address, variable->bytes);
    check(self, "atomic read of", *variable, saw);
    write(self, *variable, "atomic write of");
    self.node.memory().leave_atomic(address, variable->bytes);
}

void RandomProgram::use_in_system_call(Self& self) {
    const Variable* const variable = any_variable(self, [&](const Role& role) {
        return role.kind == Role::Kind::owned && role.who == self.thread;
    });
    if (variable == nullptr) return;
    const bool writes = self.random.happens(60);
    auto* const address = reinterpret_cast<void*>(variable->address);
    self.node.lend_to_kernel(variable->address, true);
    self.node.memory().pin(address, variable->bytes, writes);
    for (int part = 0; part < 2; ++part) {
        std::uint64_t value = self.random() & variable->mask();
        if (writes) {
            tell(self, "a system call fills", *variable, value);
            if (!self.node.kernel_fills(variable->address, variable->bytes, value)) {
                failed_("refused (errno " + std::to_string(errno) + "): a call that fills " +
                        place(*variable));
            }
            value_of(*variable).store(value, std::memory_order_release);  // pairs with check()
        } else if (self.node.kernel_reads(variable->address, variable->bytes, value)) {
            check(self, "a system call's read of", *variable, value);
        } else {
            failed_("refused (errno " + std::to_string(errno) + "): a call that reads " +
                    place(*variable));
        }
        yield();
    }
    self.node.memory().unpin(address, variable->bytes);
    self.node.lend_to_kernel(variable->address, false);
}

/// Legal anywhere, and changes nothing that the program can see.
void RandomProgram::synchronize_for_nothing(Self& self) {
    dsm::SharedMemory& memory = self.node.memory();
    const Variable& near = variables_[self.random.below(variables_.size())];
    const auto* const address = reinterpret_cast<const void*>(near.address);
    switch (self.random.below(6)) {
        case 0: return memory.release(Others::running);
        case 1: return memory.acquire(Others::running);
        case 2: return memory.prefetch(address, near.bytes);
        case 3: {
            if (is_gone(self.phase, index_of(near))) return;  // that is a use
            const bool writes = self.random.happens(50);
            // One that has begun before the block is freed may end behind that.
            if (may_go(self, index_of(near))) return;
            return memory.make_accessible(address, near.bytes, writes);
        }
        case 4: memory.flush_aside(); return;
        default: return memory.flush();
    }
}

void RandomProgram::make_step(Self& self) {
    const std::uint64_t draw = self.random.below(100);
    if (draw < 75) {
        use_unlocked(self);
    } else if (draw < 90) {
        use_locked(self);
    } else {
        synchronize_for_nothing(self);
    }
    if (self.random.happens(30)) yield();
}

// --- phases --------------------------------------------------------------------------------------

bool RandomProgram::is_gone(std::uint32_t phase, std::size_t variable) const noexcept {
    return phases_drawn_[phase].freed_block == variable / variables_per_block &&
           oracle_.discard_begun[phase].load(std::memory_order_acquire);  // maybe_discard()
}

bool RandomProgram::may_go(const Self& self, std::size_t variable) const noexcept {
    const Phase& phase = phases_drawn_[self.phase];
    return phase.freed_block == variable / variables_per_block && self.thread != phase.freed_by;
}

bool RandomProgram::has_to_discard(const Self& self) const noexcept {
    return phases_drawn_[self.phase].freed_block && is_first_of_node(self.thread) &&
           !self.discarded;
}

/// Each node's first thread does it: first the one that frees the block, with writes that no
/// release has seen on top of what the lock has told of, and then the others. All go on with other
/// blocks meanwhile.
void RandomProgram::maybe_discard(Self& self) {
    if (!has_to_discard(self) || self.step < self.discards_at) return;
    const Phase& phase = phases_drawn_[self.phase];
    std::atomic<bool>& asked = oracle_.discard_asked[self.phase];
    if (self.thread != phase.freed_by) {
        // Pairs with the store below.
        if (asked.load(std::memory_order_acquire)) discard(self, *phase.freed_block);
        return;
    }
    const dsm::LockKey key = map_.early_arena().address;
    self.node.locks().lock(key);
    if (self.random.happens(50)) {
        const std::size_t any = self.random.below(variables_per_block);
        read(self, variables_[*phase.freed_block * variables_per_block + any], "last read of");
    }
    // Pairs with is_gone().
    oracle_.discard_begun[self.phase].store(true, std::memory_order_release);
    discard(self, *phase.freed_block);
    asked.store(true, std::memory_order_release);  // pairs with the load above (invariant 13)
    self.node.locks().unlock(key);
}

void RandomProgram::discard(Self& self, std::size_t block) {
    self.discarded = true;
    const Variable* const first = &variables_[block * variables_per_block];
    const std::size_t block_bytes = map_.shape().block_bytes;
    const dsm::AddressRange range{first->address / block_bytes * block_bytes, block_bytes};
    tell(self, "discard of the block of", *first, 0);
    if (!self.node.memory().discard({&range, 1})) failed_("a discard that kept something");
    // The oracle: each node says so, and no thread looks before all have.
    for (std::size_t i = 0; i < variables_per_block; ++i) {
        value_of(first[i]).store(0, std::memory_order_release);  // pairs with check()
    }
}

void RandomProgram::use_all_alone(ProgramNode& node, std::uint32_t phase) {
    Self alone{~0u, node, Random{seed_ ^ (phase + 1) * 0x5851'F42D'4C95'7F2Du}, phase, 0};
    for (; alone.step < 4; ++alone.step) {
        const Variable& variable = variables_[alone.random.below(variables_.size())];
        read(alone, variable, "serial read of");
        write(alone, variable, "serial write of");
    }
}

void RandomProgram::meet(Self& self) {
    const std::uint32_t threads = threads_of(self.node.self().value);
    if (phases_drawn_[self.phase].serial) {
        self.node.serial(threads, [&] { use_all_alone(self.node, self.phase); });
    } else {
        self.node.barrier(threads);
    }
}

void RandomProgram::check_all(Self& self) {
    for (const Variable& variable : variables_) read(self, variable, "last read of");
}

void RandomProgram::live(std::uint32_t thread, ProgramNode& node) {
    Self self{thread, node, Random{seed_ * 1'000'003 + thread}};
    const std::uint32_t steps = (shape_.steps + phases_ - 1) / phases_;
    for (; self.phase < phases_; ++self.phase) {
        self.discards_at = static_cast<std::uint32_t>(self.random.below(steps));
        self.discarded = false;
        for (self.step = 0; self.step < steps; ++self.step) {
            maybe_discard(self);
            make_step(self);
        }
        while (has_to_discard(self)) {
            maybe_discard(self);
            yield();
        }
        meet(self);
        if (phases_drawn_[self.phase].freed_block && is_first_of_node(self.thread)) {
            self.node.memory().discarded_everywhere();
        }
    }
    check_all(self);
}

}  // namespace hiroba::sim_test
