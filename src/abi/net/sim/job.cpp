// SPDX-License-Identifier: BSD-3-Clause
// Role: see job.hpp.
#include "abi/net/sim/job.hpp"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "base/fatal.hpp"

// Read by getopt(), which keeps it in libc.
extern int optind;
extern char** environ;

namespace hiroba::abi::sim {
namespace {

Job* job = nullptr;

using Start = void (*)(int, char**, char**);

/// The calls that the loader makes for a library, and libc's start for the program: entries of its
/// dynamic section.
struct InitialCalls {
    Start first = nullptr;
    std::span<const Start> start;
    std::span<void (*const)()> finish;
    void (*last)() = nullptr;
};

template <class Function>
std::span<Function const> functions(std::uintptr_t at, std::size_t bytes) {
    return {reinterpret_cast<Function const*>(at), at == 0 ? 0 : bytes / sizeof(Function)};
}

InitialCalls calls_of(const dl_phdr_info& file) {
    InitialCalls calls;
    std::uintptr_t start = 0, finish = 0;
    std::size_t start_bytes = 0, finish_bytes = 0;
    for (const auto& header : std::span(file.dlpi_phdr, file.dlpi_phnum)) {
        if (header.p_type != PT_DYNAMIC) continue;
        const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(file.dlpi_addr + header.p_vaddr);
        for (; entry->d_tag != DT_NULL; ++entry) {
            const std::uintptr_t at = file.dlpi_addr + entry->d_un.d_ptr;
            switch (entry->d_tag) {
                case DT_INIT: calls.first = reinterpret_cast<Start>(at); break;
                case DT_FINI: calls.last = reinterpret_cast<void (*)()>(at); break;
                case DT_INIT_ARRAY: start = at; break;
                case DT_FINI_ARRAY: finish = at; break;
                case DT_INIT_ARRAYSZ: start_bytes = entry->d_un.d_val; break;
                case DT_FINI_ARRAYSZ: finish_bytes = entry->d_un.d_val; break;
                default: break;
            }
        }
    }
    calls.start = functions<Start>(start, start_bytes);
    calls.finish = functions<void (*)()>(finish, finish_bytes);
    return calls;
}

/// The calls of the program's own file, which the loader names first.
const InitialCalls& program_calls() {
    static const InitialCalls calls = [] {
        InitialCalls found;
        dl_iterate_phdr(
            [](dl_phdr_info* info, std::size_t, void* to) {
                *static_cast<InitialCalls*>(to) = calls_of(*info);
                return 1;
            },
            &found);
        return found;
    }();
    return calls;
}

/// Runs what was registered, the last first; what registers more meanwhile is run too.
void run_endings(std::vector<Ending>& endings) {
    while (!endings.empty()) {
        const Ending last = endings.back();
        endings.pop_back();
        last.function(last.argument);
    }
}

}  // namespace

Job* job_here() noexcept {
    return job != nullptr && net::Simulation::current() != nullptr ? job : nullptr;
}

void* real_function(const char* name) noexcept {
    void* const found = dlsym(RTLD_NEXT, name);
    if (found == nullptr) die(exit_environment, "the C library has no %s", name);
    return found;
}

namespace {

net::SimulationOptions with_memory(net::SimulationOptions options, net::NodeMemory& memory) {
    options.memory = &memory;
    return options;
}

}  // namespace

Job::Job(const JobWords& words, const ProgramStart& start)
    : start_(start),
      memory_(words.simulation.nodes),
      simulation_(with_memory(words.simulation, memory_)),
      nodes_(words.simulation.nodes) {
    job = this;
}

int Job::run() {
    return say_end(simulation_.run([this](NodeId node) { run_node(node); }));
}

// --- nodes ---------------------------------------------------------------------------------------

void Job::run_node(NodeId rank) {
    Node& node = nodes_[rank.value];
    initialize_node(node);
    exit_node(start_.main(start_.argc, node.argv.data(), environ));
}

void Job::initialize_node(Node& node) {
    // Programs may change the words, and the order in which getopt() left them is one node's.
    for (int i = 0; i < start_.argc; ++i) node.argv.push_back(strdup(start_.argv[i]));
    node.argv.push_back(nullptr);
    optind = 1;
    char** const argv = node.argv.data();
    if (start_.initialize != nullptr)
        return reinterpret_cast<Start>(start_.initialize)(start_.argc, argv, environ);
    const InitialCalls& calls = program_calls();
    if (calls.first != nullptr) calls.first(start_.argc, argv, environ);
    for (const Start call : calls.start) call(start_.argc, argv, environ);
}

void Job::finish_node() {
    run_endings(thread_here().endings);
    run_endings(here().endings);
    const InitialCalls& calls = program_calls();
    for (std::size_t i = calls.finish.size(); i > 0; --i) calls.finish[i - 1]();
    if (calls.last != nullptr) calls.last();
}

void Job::exit_node(int status) {
    finish_node();
    end_node(status);
}

void Job::end_node(int status) noexcept {
    here().over = true;
    here().status = status & 0xff;
    // As in a job of processes, where the launcher ends the others.
    if (here().status != 0) {
        first_failed_ = simulation_.self().value;
        simulation_.stop();
    }
    simulation_.end_node();
}

int Job::say_end(net::Simulation::End end) {
    using End = net::Simulation::End;
    if (first_failed_ != ~0u) {
        say("node %u ended with status %d, after %lu ns of virtual time", first_failed_,
            nodes_[first_failed_].status, simulation_.time_ns());
        return nodes_[first_failed_].status;
    }
    if (end == End::ended) return 0;
    std::string left;
    std::size_t count = 0;
    for (std::size_t rank = 0; rank < nodes_.size(); ++rank) {
        if (nodes_[rank].over) continue;
        left += (left.empty() ? " " : ", ") + std::to_string(rank);
        ++count;
    }
    if (count > 1) left.insert(0, "s");
    if (end == End::stuck) {
        say("node%s: every thread waits for another, after %lu ns of virtual time", left.c_str(),
            simulation_.time_ns());
    } else {
        say("node%s not ended after %lu ns of virtual time. See --limit", left.c_str(),
            simulation_.time_ns());
    }
    return exit_environment;
}

// --- threads -------------------------------------------------------------------------------------

std::uint32_t Job::start_thread(void* (*function)(void*), void* argument) {
    const std::uint32_t number = simulation_.spawn([this, function, argument] {
        thread_here().is_programs = true;
        void* const result = function(argument);
        thread_here().result = result;
        end_thread();
    });
    threads_[number].is_programs = true;
    return number;
}

void Job::end_thread() {
    const std::uint32_t self = simulation_.thread();
    run_endings(threads_[self].endings);
    // A destructor may give a key a value again; POSIX tries at least four times.
    for (int round = 0; round < 4; ++round) {
        for (auto& [key, value] : std::map(threads_[self].values)) {
            void*& current = threads_[self].values[key];
            const auto destructor = keys_.find(key);
            if (current == nullptr || destructor == keys_.end() || destructor->second == nullptr)
                continue;
            destructor->second(std::exchange(current, nullptr));
        }
    }
    threads_[self].ended = true;
}

std::optional<void*> Job::join_thread(std::uint32_t thread) {
    const auto found = threads_.find(thread);
    if (found == threads_.end() || !found->second.is_programs) return std::nullopt;
    simulation_.join(thread);
    return threads_[thread].result;
}

bool Job::wait_at(const void* word, std::uint64_t deadline_ns) {
    const std::uint32_t self = simulation_.thread();
    const auto here = std::pair{simulation_.self().value, word};
    waiting_[here].push_back(self);
    while (true) {
        simulation_.park(deadline_ns);
        const auto queue = waiting_.find(here);
        if (queue == waiting_.end()) return true;
        const auto mine = std::find(queue->second.begin(), queue->second.end(), self);
        if (mine == queue->second.end()) return true;
        if (simulation_.now_ns() < deadline_ns) continue;
        queue->second.erase(mine);
        if (queue->second.empty()) waiting_.erase(queue);
        return false;
    }
}

std::uint32_t Job::wake_at(const void* word, std::uint32_t count) {
    const auto queue = waiting_.find(std::pair{simulation_.self().value, word});
    if (queue == waiting_.end()) return 0;
    const std::size_t woken = std::min<std::size_t>(count, queue->second.size());
    const std::vector<std::uint32_t> first(
        queue->second.begin(), queue->second.begin() + static_cast<std::ptrdiff_t>(woken));
    queue->second.erase(queue->second.begin(),
                        queue->second.begin() + static_cast<std::ptrdiff_t>(woken));
    if (queue->second.empty()) waiting_.erase(queue);
    for (const std::uint32_t thread : first) simulation_.wake(thread);
    return static_cast<std::uint32_t>(woken);
}

}  // namespace hiroba::abi::sim
