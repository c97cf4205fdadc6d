// SPDX-License-Identifier: BSD-3-Clause
// Role: a random program without data races, and what it must see: on simulated nodes
// (test/sim/dsm/simulated_program.hpp) and on real ones (real_nodes.cpp).
// Invariant: the program follows from the seed. What each thread does depends on its own share of
// the seed, not on the others.
//
// Why the oracle is exact: the program has no data race, so the last write to a variable is the
// last one that happens before any read of it; and the thread that writes enters the value into the
// oracle before it synchronizes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "memory_programs/program_node.hpp"

namespace hiroba::sim_test {

struct ProgramShape {
    std::uint32_t nodes = 3;
    std::uint32_t steps = 50;  ///< of each thread, in all phases together
    bool tell = false;         ///< print every step
};

/// What of a node's memory follows from the seed.
struct DrawnMemory {
    std::uint32_t threads_of_first = 2;  ///< of node 0; every other node has one
    dsm::MemoryOptions memory;
};
DrawnMemory draw_memory(Random& random);

class RandomProgram {
public:
    static constexpr std::uint32_t variables_max = 24;
    static constexpr std::uint32_t phases_max = 5;
    /// What is right. Zero before the start. Where the nodes are processes it lies in memory of the
    /// machine that all have, apart from the memory tested.
    struct Oracle {
        std::atomic<std::uint64_t> values[variables_max];  ///< what the last write left
        std::atomic<bool> discard_begun[phases_max];       ///< of the block freed in the phase
        std::atomic<bool> discard_asked[phases_max];       ///< once the freeing thread has done so
    };
    using Failed = std::function<void(const std::string& what)>;

    /// @param random  the same on all nodes; @param map, @param oracle outlive it
    /// @param failed  told of each wrong value, by the thread that read it
    RandomProgram(std::uint64_t seed, const ProgramShape& shape, Random& random,
                  std::uint32_t threads_of_first, const dsm::AddressMap& map, Oracle& oracle,
                  Failed failed);

    std::uint32_t threads() const noexcept { return shape_.nodes - 1 + threads_of_first_; }
    std::uint32_t threads_of(std::uint32_t rank) const noexcept {
        return rank == 0 ? threads_of_first_ : 1;
    }
    std::uint32_t node_of(std::uint32_t thread) const noexcept {
        return thread < threads_of_first_ ? 0 : thread - threads_of_first_ + 1;
    }
    /// The whole life of one of the threads, on its node.
    void live(std::uint32_t thread, ProgramNode& node);

private:
    struct Variable {
        std::uintptr_t address = 0;
        std::uint32_t bytes = 8;
        std::uint64_t mask() const noexcept {
            return bytes == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * bytes) - 1;
        }
    };
    /// Which threads may touch a variable in a phase.
    struct Role {
        enum class Kind : std::uint8_t { owned, readable, locked, atomic } kind{};
        std::uint32_t who = 0;  ///< the owner, or the lock
    };
    struct Phase {
        std::vector<Role> roles;
        bool serial = false;  ///< join and fork after it instead of a barrier
        /// The program frees all of it in the phase: some time after `freed_by` (the first thread
        /// of a node) has discarded it, under lock 0, all other nodes do. Its variables are
        /// `freed_by`'s or lock 0's, then no thread's, and 0 from the next phase on.
        std::optional<std::size_t> freed_block;
        std::uint32_t freed_by = 0;
    };
    /// One thread while it runs.
    struct Self {
        std::uint32_t thread;
        ProgramNode& node;
        Random random;
        std::uint32_t phase = 0, step = 0;
        std::size_t last = 0;           ///< variable used last
        std::uint32_t discards_at = 0;  ///< step from which on its node discards a freed block
        bool discarded = false;
        std::uint64_t sent = 0;  ///< messages
    };
    /// One thread's messages: its word, that it has told it, and the thread whose word it has read
    /// last.
    struct Messages {
        std::uintptr_t data = 0, flag = 0, relay = 0;
    };

    void lay_out(Random& random);
    void draw_phase(Random& random);
    void draw_freed_block(Phase& phase, Random& random);
    void make_step(Self& self);
    void use_plain(Self& self);
    void use_locked(Self& self);
    void use_unlocked(Self& self);
    void use_atomic(Self& self);
    void use_in_system_call(Self& self);
    // Messages: words that one thread writes and all may read at any time (random_messages.cpp).
    void lay_out_messages(Random& random);
    void use_message(Self& self);
    void send(Self& self);
    void look(Self& self);
    std::uint64_t look_at(Self& self, std::uintptr_t address);
    void put(Self& self, std::uintptr_t address, std::uint64_t value);
    void synchronize_for_nothing(Self& self);
    void discard(Self& self, std::size_t block);
    void maybe_discard(Self& self);
    /// Discards freed blocks for its node, and has not yet done so in this phase.
    bool has_to_discard(const Self& self) const noexcept;
    void meet(Self& self);
    void use_all_alone(ProgramNode& node, std::uint32_t phase);
    void check_all(Self& self);

    template <class Fits>
    const Variable* any_variable(Self& self, Fits&& fits);
    std::size_t index_of(const Variable& variable) const noexcept {
        return static_cast<std::size_t>(&variable - variables_.data());
    }
    std::atomic<std::uint64_t>& value_of(const Variable& variable) noexcept {
        return oracle_.values[index_of(variable)];
    }
    /// Freed: no thread uses it.
    bool is_gone(std::uint32_t phase, std::size_t variable) const noexcept;
    /// Another thread frees it in this phase, sooner or later.
    bool may_go(const Self& self, std::size_t variable) const noexcept;
    bool is_first_of_node(std::uint32_t thread) const noexcept {
        return thread == 0 || node_of(thread) != 0;
    }
    void read(Self& self, const Variable& variable, const char* how);
    void write(Self& self, const Variable& variable, const char* how);
    void check(const Self& self, const char* what, const Variable& variable, std::uint64_t saw);
    void tell(const Self& self, const char* what, const Variable& variable, std::uint64_t value);
    std::string place(const Variable& variable) const;

    std::uint64_t seed_;
    ProgramShape shape_;
    std::uint32_t threads_of_first_;
    const dsm::AddressMap& map_;
    Oracle& oracle_;
    Failed failed_;
    std::vector<Variable> variables_;
    std::vector<Messages> messages_;
    std::vector<Phase> phases_drawn_;
    std::uint32_t phases_ = 0;
};

}  // namespace hiroba::sim_test
