// SPDX-License-Identifier: BSD-3-Clause
// Role: a program's processes as nodes of a simulation: what the interposed calls of pthreads, of
// time and of exit() find here (docs/layers/sim.md, "Programs").
// Invariant: one object a process. It is used by simulated threads, which take turns, so nothing is
// locked; a thread keeps its turn until it parks or passes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "abi/net/sim/program_memory.hpp"
#include "net/simulation.hpp"

namespace hiroba::abi::sim {

using Destructor = void (*)(void*);
struct Ending {
    Destructor function = nullptr;
    void* argument = nullptr;
};

/// As the program entered it.
struct ProgramStart {
    int (*main)(int, char**, char**) = nullptr;
    int argc = 0;
    char** argv = nullptr;
    void (*initialize)() = nullptr;  ///< of programs linked against glibc before 2.34
};

/// What `hiroba sim` asks for, by HIROBA_JOB_SIMULATION.
struct JobWords {
    net::SimulationOptions simulation;
    unsigned busy_seconds = 60;  ///< of processor time in which a thread must give its turn away
};

class Job {
public:
    Job(const JobWords& words, const ProgramStart& start);

    /// Runs the program on all nodes; the exit status of the process.
    int run();
    net::Simulation& simulation() noexcept { return simulation_; }

    // --- by simulated threads --------------------------------------------------------------------

    /// exit(): runs what the node registered, and ends it.
    [[noreturn]] void exit_node(int status);
    /// _exit(): ends it at once.
    [[noreturn]] void end_node(int status) noexcept;
    void at_exit(Ending ending) { here().endings.push_back(ending); }

    /// A thread of the program; its number. Not a service thread of ours.
    std::uint32_t start_thread(void* (*function)(void*), void* argument);
    /// Waits for its end. @return what its function returned; nothing: it is no such thread
    std::optional<void*> join_thread(std::uint32_t thread);
    void at_thread_end(Ending ending) { thread_here().endings.push_back(ending); }
    void*& value_of_key(std::uint32_t key) { return thread_here().values[key]; }
    void set_destructor(std::uint32_t key, Destructor destructor) { keys_[key] = destructor; }

    /// Waits until wake_at(word), or until the virtual time passes. @return false: it passed
    bool wait_at(const void* word, std::uint64_t deadline_ns = net::Simulation::forever);
    /// Wakes up to `count` threads of the node in the order in which they came. @return how many
    std::uint32_t wake_at(const void* word, std::uint32_t count = ~0u);

private:
    struct Node {
        bool over = false;
        int status = 0;
        std::vector<Ending> endings;
        std::vector<char*> argv;
    };
    struct Thread {
        bool is_programs = false, ended = false;
        void* result = nullptr;
        std::vector<Ending> endings;
        std::map<std::uint32_t, void*> values;  ///< by key
    };
    Node& here() noexcept { return nodes_[simulation_.self().value]; }
    Thread& thread_here() { return threads_[simulation_.thread()]; }
    void run_node(NodeId node);
    void initialize_node(Node& node);
    void finish_node();
    void end_thread();
    int say_end(net::Simulation::End end);

    ProgramStart start_;
    ProgramMemory memory_;
    net::Simulation simulation_;
    std::uint32_t first_failed_ = ~0u;  ///< rank
    std::vector<Node> nodes_;
    std::unordered_map<std::uint32_t, Thread> threads_;
    std::unordered_map<std::uint32_t, Destructor> keys_;
    /// A word of a node, and the threads that wait at it, in order.
    std::map<std::pair<std::uint32_t, const void*>, std::vector<std::uint32_t>> waiting_;
};

/// The job, while the calling thread is a simulated one of it; nullptr elsewhere.
Job* job_here() noexcept;

/// Reads the value of HIROBA_JOB_SIMULATION.
JobWords read_words(const char* text);

/// Takes the process over: what stands in for __libc_start_main calls it. Returns the exit status.
int run_simulated(const ProgramStart& start);

/// The C library's own function of that name.
void* real_function(const char* name) noexcept;
template <class Function>
Function* real(const char* name) noexcept {
    return reinterpret_cast<Function*>(real_function(name));
}

}  // namespace hiroba::abi::sim
