// SPDX-License-Identifier: BSD-3-Clause
// Role: what the threads of one program of steps share (step_program.hpp): the simulated nodes with
// their options, the roles of the words and what each one holds, locks, mail.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/dsm/cluster.hpp"
#include "sim/dsm/invariants.hpp"
#include "sim/dsm/step_roles.hpp"
#include "sim/dsm/step_walk.hpp"

namespace hiroba::sim_test {

using Mail = std::vector<std::byte>;

/// A lock of the test's own, of one step: what waits for it is the program alone.
struct StepLock {
    bool held = false;
    Mail news;  ///< of the last one that had it
};

/// Where the threads of one node meet at the end of a phase.
struct StepGate {
    std::uint32_t come = 0;
    std::uint64_t rounds = 0;  ///< that have ended
    std::uint64_t sent = 0;    ///< rounds whose news have been sent
};

/// What all threads of the program share.
struct StepWorld {
    StepWorld(net::sim::FiberStacks& stacks, std::uint64_t seed, StepShape shape, bool tell);

    void begin_choice() { cluster->scheduler().begin_choice(cluster->threads() + nodes()); }
    std::uint32_t nodes() const noexcept { return cluster->options().nodes; }
    std::uintptr_t word(std::uint32_t number) const noexcept {
        return blocks[number / words_of_block] + number % words_of_block * 8;
    }
    // Each thread sends its numbers in one block, and its flags in another one.
    std::uintptr_t sent_number(std::uint32_t thread) const noexcept {
        return blocks[(thread + flags_from) % step_blocks] + 256 + 8 * thread;
    }
    std::uintptr_t sent_flag(std::uint32_t thread) const noexcept {
        return blocks[(thread + flags_from + flags_behind) % step_blocks] + 512 + 8 * thread;
    }
    std::deque<Mail>& mail(std::uint32_t from, std::uint32_t to) {
        return mails[from * nodes() + to];
    }
    void fail(const std::string& what) {
        if (failure.empty()) failure = what;
        cluster->scheduler().stop();
    }

    const std::uint64_t seed;
    const StepShape shape;
    const bool tells;
    StepWalk walk;
    std::optional<Cluster> cluster;
    std::array<std::uintptr_t, step_blocks> blocks{};
    std::optional<Invariants> invariants;

    std::vector<PhaseRoles> roles;  ///< by phase
    std::uint32_t operations_max = 0;
    std::uint32_t first_writer = 0;      ///< of StepShape::first_use,
    std::uint32_t releases_percent = 0;  ///< and how much of it are releases and flushes
    std::uint32_t flags_from = 0, flags_behind = 0;

    std::array<std::uint64_t, step_words> right{};
    std::vector<std::uint64_t> sent;  ///< by each thread
    std::array<StepLock, step_locks> locks;
    std::unique_ptr<bool[]> in_atomic;  ///< by node and word: one of its threads is
    std::vector<StepGate> gates;
    std::vector<std::deque<Mail>> mails;
    std::string failure;

private:
    ClusterOptions draw_options();
    void tell_options() const;
    std::uint32_t draw_phases();
    void draw_program();
    std::array<std::uintptr_t, step_blocks> choose_blocks();
    std::string broken();

    Random random;
};

}  // namespace hiroba::sim_test
