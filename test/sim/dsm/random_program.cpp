// SPDX-License-Identifier: BSD-3-Clause
// A program has phases with barriers, or serial parts between join and fork, between them. In each
// phase every variable has a role that keeps threads from racing for it; roles change with the
// phase, so that bytes written by one node are read and overwritten by others. Variables of
// different roles share blocks.
#include "sim/dsm/random_program.hpp"

#include <cstdio>
#include <optional>

namespace hiroba::sim_test {

namespace {

using dsm::Others;
using net::sim::Scheduler;

constexpr std::uint32_t variables_per_block = 8;
constexpr std::uint32_t heap_blocks = 2;  ///< of the blocks laid out, the first
constexpr std::uint32_t locks = 2;

struct Variable {
    std::uintptr_t address = 0;
    std::uint32_t bytes = 8;
    std::uint64_t value = 0;  ///< what the last write left: the oracle
    std::uint64_t mask() const noexcept {
        return bytes == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * bytes) - 1;
    }
};

/// Who may touch a variable in a phase.
struct Role {
    enum class Kind : std::uint8_t { owned, readable, locked, atomic } kind{};
    std::uint32_t who = 0;  ///< the owner, or the lock
};

ClusterOptions draw_options(Random& random, std::uint64_t seed, const ProgramShape& shape) {
    const auto one_of = [&](auto... choices) {
        const std::uint64_t all[] = {static_cast<std::uint64_t>(choices)...};
        return all[random.below(sizeof...(choices))];
    };
    ClusterOptions options;
    options.nodes = shape.nodes;
    options.threads_of_first = random.happens(30) ? 3 : 2;
    const bool small = random.happens(50);
    options.memory.notices_max = static_cast<std::uint32_t>(small ? one_of(1, 1, 2, 3, 4) : 1024);
    // The longest lets a few merges carry times beyond 32 bits.
    options.memory.lease = one_of(1, 2, 10, 1u << 30);
    options.memory.lock_hops = static_cast<std::uint32_t>(one_of(8, 8, 1, 0));
    options.engine.as_mprotect = random.happens(50);
    options.engine.evict = static_cast<std::uint32_t>(one_of(0, 3, 10));
    options.engine.slow_calls = static_cast<std::uint32_t>(one_of(0, 20, 50));
    options.engine.stray_reports = static_cast<std::uint32_t>(one_of(0, 20));
    options.scheduling.seed = seed;
    options.scheduling.turn_max_ns = one_of(200, 1000, 5000);
    options.scheduling.limit_ns = 300'000'000;
    options.wire.latency_ns = one_of(100, 1500);
    options.wire.jitter_ns = one_of(0, 500, 10'000);
    options.wire.loss = static_cast<std::uint32_t>(one_of(0, 0, 5, 15));
    options.wire.duplicate = static_cast<std::uint32_t>(one_of(0, 10));
    options.wire.reorder = static_cast<std::uint32_t>(one_of(0, 10, 30));
    // The longer lets whole critical sections of others by while one block is fetched.
    options.wire.reorder_ns = one_of(20'000, 300'000);
    options.wire.slow_calls = static_cast<std::uint32_t>(one_of(0, 10, 30));
    if (random.happens(20)) options.wire.calls = net::sim::Calls::one_thread;
    return options;
}

class Program {
public:
    Program(net::sim::FiberStacks& stacks, std::uint64_t seed, const ProgramShape& shape)
        : shape_(shape),
          random_(seed * 2 + 1),
          cluster_(stacks, draw_options(random_, seed, shape)),
          seed_(seed) {
        lay_out();
        phases_ = 2 + static_cast<std::uint32_t>(random_.below(4));
        for (std::uint32_t phase = 0; phase <= phases_; ++phase) draw_phase();
    }

    ProgramOutcome run();

private:
    struct Phase {
        std::vector<Role> roles;
        bool serial = false;  ///< join and fork after it instead of a barrier
        /// The program frees all of it in the phase: some time after `freed_by` (the first thread
        /// of a node) has discarded it, under lock 0, all other nodes do. Its variables are
        /// `freed_by`'s or lock 0's, then nobody's, and 0 from the next phase on.
        std::optional<std::size_t> freed_block;
        std::uint32_t freed_by = 0;
        bool discard_begun = false;
    };
    /// One thread while it runs.
    struct Self {
        std::uint32_t thread;
        ClusterNode& node;
        Random random;
        std::uint32_t phase = 0, step = 0;
        std::size_t last = 0;           ///< variable used last
        std::uint32_t discards_at = 0;  ///< step from which on its node discards a freed block
        bool discarded = false;
    };

    void lay_out();
    void draw_phase();
    void live(std::uint32_t thread, ClusterNode& node);
    void make_step(Self& self);
    void use_plain(Self& self);
    void use_locked(Self& self);
    void use_unlocked(Self& self);
    void use_atomic(Self& self);
    void use_in_system_call(Self& self);
    void synchronize_for_nothing(Self& self);
    std::size_t index_of(const Variable& variable) const noexcept {
        return static_cast<std::size_t>(&variable - variables_.data());
    }
    /// Freed: nobody uses it.
    static bool is_gone(const Phase& phase, std::size_t index) noexcept {
        return phase.discard_begun && index / variables_per_block == *phase.freed_block;
    }
    void discard(Self& self, std::size_t block);
    void maybe_discard(Self& self);
    bool is_first_of_node(std::uint32_t thread) const noexcept {
        return thread == 0 || cluster_.node_of(thread) != 0;
    }
    void meet(Self& self);
    void use_all_alone(ClusterNode& node, std::uint32_t phase);
    void check_all(Self& self);

    template <class Fits>
    Variable* any_variable(Self& self, Fits&& fits);
    void read(Self& self, Variable& variable, const char* how);
    void write(Self& self, Variable& variable, const char* how);
    void tell(const Self& self, const char* what, const Variable& variable, std::uint64_t value);
    void fail(const Self& self, const char* what, const Variable& variable, std::uint64_t saw);
    void fail(std::string text);
    std::string place(const Variable& variable) const;

    ProgramShape shape_;
    Random random_;
    Cluster cluster_;
    std::uint64_t seed_;
    std::vector<Variable> variables_;
    std::vector<Phase> phases_drawn_;
    std::uint32_t phases_ = 0;
    std::string failure_;
    std::uint64_t races_ = 0;
};

// --- drawing -------------------------------------------------------------------------------------

void Program::lay_out() {
    const auto& map = cluster_.map();
    const std::uint32_t nodes = shape_.nodes;
    const auto any_node = [&] { return NodeId{static_cast<std::uint32_t>(random_.below(nodes))}; };
    const std::uintptr_t heap = map.heap_arena(any_node()).address;
    // Half the time the next one, so that misses in a row are answered ahead.
    const std::uintptr_t other =
        random_.happens(50) ? heap + page_bytes : map.heap_arena(any_node()).address + page_bytes;
    const std::uint32_t slices = nodes * map.shape().threads_per_node;
    const std::uintptr_t stack =
        map.stack_slice(static_cast<std::uint32_t>(random_.below(slices))).address + page_bytes;
    for (const std::uintptr_t block : {heap, other, stack}) {
        std::uintptr_t at = block + 8 * random_.below(400);
        for (std::uint32_t i = 0; i < variables_per_block; ++i) {
            const std::uint32_t bytes = 1u << random_.below(4);
            at = round_up(at, bytes);
            variables_.push_back({at, bytes});
            at += bytes;
        }
    }
}

void Program::draw_phase() {
    Phase phase;
    phase.serial = random_.happens(30);
    for (std::size_t i = 0; i < variables_.size(); ++i) {
        const std::uint64_t draw = random_.below(100);
        Role role;
        if (draw < 35) {
            role = {Role::Kind::owned,
                    static_cast<std::uint32_t>(random_.below(cluster_.threads()))};
        } else if (draw < 48) {
            role = {Role::Kind::readable, 0};
        } else if (draw < 80) {
            role = {Role::Kind::locked, static_cast<std::uint32_t>(random_.below(locks))};
        } else {
            role = {Role::Kind::atomic, 0};
        }
        phase.roles.push_back(role);
    }
    // Not the block of a stack, which stays accessible for good.
    if (random_.happens(25)) {
        const std::size_t block = random_.below(heap_blocks);
        phase.freed_block = block;
        do {
            phase.freed_by = static_cast<std::uint32_t>(random_.below(cluster_.threads()));
        } while (!is_first_of_node(phase.freed_by));
        for (std::size_t i = 0; i < variables_per_block; ++i) {
            phase.roles[block * variables_per_block + i] =
                random_.happens(50) ? Role{Role::Kind::owned, phase.freed_by}
                                    : Role{Role::Kind::locked, 0};
        }
    }
    phases_drawn_.push_back(std::move(phase));
}

// Often one in the block of the last: the rarest rows of the protocol take two or three different
// uses of one block between two releases.
template <class Fits>
Variable* Program::any_variable(Self& self, Fits&& fits) {
    std::size_t start = self.random.below(variables_.size());
    if (self.random.happens(40)) {
        start = start % variables_per_block + self.last / variables_per_block * variables_per_block;
    }
    for (std::size_t i = 0; i < variables_.size(); ++i) {
        const std::size_t index = (start + i) % variables_.size();
        const Phase& phase = phases_drawn_[self.phase];
        if (!fits(phase.roles[index]) || is_gone(phase, index)) continue;
        self.last = index;
        return &variables_[index];
    }
    return nullptr;
}

// --- telling -------------------------------------------------------------------------------------

std::string Program::place(const Variable& variable) const {
    char text[96];
    std::snprintf(text, sizeof text, "variable %ld (%u bytes at 0x%lx)",
                  static_cast<long>(&variable - variables_.data()), variable.bytes,
                  variable.address);
    return text;
}

void Program::tell(const Self& self, const char* what, const Variable& variable,
                   std::uint64_t value) {
    if (!shape_.tell) return;
    std::printf("%9lu ns  thread %u (node %u) phase %u step %u: %s %s: 0x%lx\n",
                cluster_.scheduler().time_ns(), self.thread, self.node.endpoint().self().value,
                self.phase, self.step, what, place(variable).c_str(), value);
}

void Program::fail(std::string text) {
    if (failure_.empty()) failure_ = std::move(text);
    cluster_.scheduler().stop();
}

void Program::fail(const Self& self, const char* what, const Variable& variable,
                   std::uint64_t saw) {
    char text[256];
    std::snprintf(text, sizeof text,
                  "thread %u (node %u) phase %u step %u: %s %s is 0x%lx, should be 0x%lx",
                  self.thread, self.node.endpoint().self().value, self.phase, self.step, what,
                  place(variable).c_str(), saw, variable.value);
    fail(std::string(text));
}

// --- steps ---------------------------------------------------------------------------------------

void Program::read(Self& self, Variable& variable, const char* how) {
    const std::uint64_t saw = self.node.load(variable.address, variable.bytes);
    tell(self, how, variable, saw);
    if (saw != variable.value) fail(self, how, variable, saw);
}

void Program::write(Self& self, Variable& variable, const char* how) {
    // Small values too: equal bytes at different times are where merges go wrong.
    const std::uint64_t value =
        (self.random.happens(50) ? self.random.below(4) : self.random()) & variable.mask();
    tell(self, how, variable, value);
    self.node.store(variable.address, variable.bytes, value);
    variable.value = value;
}

void Program::use_plain(Self& self) {
    Variable* const variable = any_variable(self, [&](const Role& role) {
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

void Program::use_locked(Self& self) {
    const auto lock = static_cast<std::uint32_t>(self.random.below(locks));
    const dsm::LockKey key = cluster_.map().early_arena().address + 8 * lock;
    if (self.random.happens(20)) {
        if (!self.node.locks().try_lock(key)) return;
    } else {
        self.node.locks().lock(key);
    }
    const std::uint64_t uses = 1 + self.random.below(5);
    for (std::uint64_t i = 0; i < uses; ++i) {
        Variable* const variable = any_variable(self, [&](const Role& role) {
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
void Program::use_unlocked(Self& self) {
    const std::uint64_t draw = self.random.below(100);
    if (draw < 60) {
        use_plain(self);
    } else if (draw < 82) {
        use_atomic(self);
    } else {
        use_in_system_call(self);
    }
}

void Program::use_atomic(Self& self) {
    Variable* const variable =
        any_variable(self, [](const Role& role) { return role.kind == Role::Kind::atomic; });
    if (variable == nullptr) return;
    auto* const address = reinterpret_cast<void*>(variable->address);
    self.node.memory().enter_atomic(address, variable->bytes);
    if (self.random.happens(30)) yield();
    const std::uint64_t saw = self.node.load(variable->address, variable->bytes);
    if (saw != variable->value) fail(self, "atomic read of", *variable, saw);
    write(self, *variable, "atomic write of");
    self.node.memory().leave_atomic(address, variable->bytes);
}

void Program::use_in_system_call(Self& self) {
    Variable* const variable = any_variable(self, [&](const Role& role) {
        return role.kind == Role::Kind::owned && role.who == self.thread;
    });
    if (variable == nullptr) return;
    const bool writes = self.random.happens(60);
    auto* const address = reinterpret_cast<void*>(variable->address);
    self.node.engine().hold(variable->address, true);
    self.node.memory().pin(address, variable->bytes, writes);
    for (int part = 0; part < 2; ++part) {
        std::byte* const bytes = self.node.engine().kernel_touch(variable->address, writes);
        if (bytes == nullptr) {
            fail(self, writes ? "EFAULT for a call that fills" : "EFAULT for a call that reads",
                 *variable, 0);
            break;
        }
        if (writes) {
            variable->value = self.random() & variable->mask();
            tell(self, "a system call fills", *variable, variable->value);
            std::memcpy(bytes, &variable->value, variable->bytes);
        } else {
            std::uint64_t saw = 0;
            std::memcpy(&saw, bytes, variable->bytes);
            if (saw != variable->value) fail(self, "a system call's read of", *variable, saw);
        }
        yield();
    }
    self.node.memory().unpin(address, variable->bytes);
    self.node.engine().hold(variable->address, false);
}

/// Legal anywhere, and changes nothing that the program can see.
void Program::synchronize_for_nothing(Self& self) {
    dsm::SharedMemory& memory = self.node.memory();
    const Variable& near = variables_[self.random.below(variables_.size())];
    const auto* const address = reinterpret_cast<const void*>(near.address);
    switch (self.random.below(6)) {
        case 0: return memory.release(Others::running);
        case 1: return memory.acquire(Others::running);
        case 2: return memory.prefetch(address, near.bytes);
        case 3:
            // That is a use.
            if (is_gone(phases_drawn_[self.phase], index_of(near))) return;
            return memory.make_accessible(address, near.bytes, self.random.happens(50));
        case 4: memory.publish(); return;
        default: return memory.flush();
    }
}

void Program::make_step(Self& self) {
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

/// Each node's first thread does it: whoever frees the block, with writes that no release has seen
/// on top of what the lock has told of, then the others. All go on with other blocks meanwhile.
void Program::maybe_discard(Self& self) {
    Phase& phase = phases_drawn_[self.phase];
    if (!phase.freed_block || self.discarded || !is_first_of_node(self.thread)) return;
    const bool frees = self.thread == phase.freed_by;
    if (self.step < self.discards_at || (!frees && !phase.discard_begun)) return;
    self.discarded = true;
    if (!frees) return discard(self, *phase.freed_block);
    const dsm::LockKey key = cluster_.map().early_arena().address;
    self.node.locks().lock(key);
    if (self.random.happens(50)) {
        const std::size_t any = self.random.below(variables_per_block);
        read(self, variables_[*phase.freed_block * variables_per_block + any], "last read of");
    }
    phase.discard_begun = true;
    discard(self, *phase.freed_block);
    self.node.locks().unlock(key);
}

void Program::discard(Self& self, std::size_t block) {
    Variable* const first = &variables_[block * variables_per_block];
    const dsm::AddressRange page{first->address & ~(page_bytes - 1), page_bytes};
    tell(self, "discard of the block of", *first, 0);
    if (!self.node.memory().discard({&page, 1})) fail("a discard that kept something");
    // The oracle: each node says so, and nobody looks before all have.
    for (std::size_t i = 0; i < variables_per_block; ++i) first[i].value = 0;
}

void Program::use_all_alone(ClusterNode& node, std::uint32_t phase) {
    Self alone{~0u, node, Random{seed_ ^ (phase + 1) * 0x5851'F42D'4C95'7F2Du}, phase, 0};
    for (; alone.step < 4; ++alone.step) {
        Variable& variable = variables_[alone.random.below(variables_.size())];
        read(alone, variable, "serial read of");
        write(alone, variable, "serial write of");
    }
}

void Program::meet(Self& self) {
    const std::uint32_t threads = cluster_.threads_of(self.node.endpoint().self().value);
    if (phases_drawn_[self.phase].serial) {
        self.node.serial(threads, [&] { use_all_alone(self.node, self.phase); });
    } else {
        self.node.barrier(threads);
    }
}

void Program::check_all(Self& self) {
    for (Variable& variable : variables_) read(self, variable, "last read of");
}

void Program::live(std::uint32_t thread, ClusterNode& node) {
    Self self{thread, node, Random{seed_ * 1'000'003 + thread}};
    const std::uint32_t steps = (shape_.steps + phases_ - 1) / phases_;
    for (; self.phase < phases_; ++self.phase) {
        self.discards_at = static_cast<std::uint32_t>(self.random.below(steps));
        self.discarded = false;
        for (self.step = 0; self.step < steps; ++self.step) {
            maybe_discard(self);
            make_step(self);
        }
        while (phases_drawn_[self.phase].freed_block && is_first_of_node(self.thread) &&
               !self.discarded) {
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

ProgramOutcome Program::run() {
    const Scheduler::Outcome ended = cluster_.run([&](std::uint32_t thread, ClusterNode& node) {
        node.memory().on_race([](void* races, std::uintptr_t, std::uint32_t, NodeId,
                                 NodeId) noexcept { ++*static_cast<std::uint64_t*>(races); },
                              &races_);
        live(thread, node);
    });
    ProgramOutcome outcome;
    outcome.failure = failure_;
    if (failure_.empty() && ended != Scheduler::Outcome::ended) {
        outcome.failure = outcome_name(ended);
    }
    if (outcome.failure.empty() && races_ > 0) {
        outcome.failure = std::to_string(races_) + " races reported of a program without any";
    }
    outcome.rows = cluster_.rows();
    outcome.virtual_ns = cluster_.scheduler().time_ns();
    outcome.events = cluster_.scheduler().events();
    outcome.trace_hash = cluster_.scheduler().trace_hash();
    return outcome;
}

}  // namespace

ProgramOutcome run_random_program(net::sim::FiberStacks& stacks, std::uint64_t seed,
                                  const ProgramShape& shape) {
    return Program(stacks, seed, shape).run();
}

}  // namespace hiroba::sim_test
