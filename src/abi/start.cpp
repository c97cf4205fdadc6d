// SPDX-License-Identifier: BSD-3-Clause
// Role: takes the process over. __libc_start_main runs after all library constructors and before
// the program's own initializers: here the node is put together and the program's threads begin.
// Invariant: main, and all that runs before and after it, happens on node 0 alone, in a thread
// whose stack and thread-local storage are global. One node: nothing moves.
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <bit>
#include <string>

#include "abi/assemble.hpp"
#include "abi/gomp/runtime.hpp"
#include "abi/libc/calls/system_call_trap.hpp"
#include "abi/libc/files/descriptors.hpp"
#include "abi/libc/files/remote_files.hpp"
#include "abi/libc/memory/generated_code.hpp"
#include "abi/libc/memory/memory_limit.hpp"
#include "abi/libc/process/crashes.hpp"
#include "abi/libc/process/first_thread.hpp"
#include "abi/libc/process/job_end.hpp"
#include "abi/libc/process/resource_limits.hpp"
#include "abi/libc/process/signal_masks.hpp"
#include "abi/libc/process/signals.hpp"
#include "abi/libc/process/thread_attributes.hpp"
#include "abi/libc/process/thread_signals.hpp"
#include "abi/libc/process/user_ids.hpp"
#include "abi/libc/real.hpp"
#include "abi/libc/threads/thread_keys.hpp"
#include "abi/libc/threads/threads.hpp"
#include "abi/streams.hpp"
#include "abi/world.hpp"
#include "base/fatal.hpp"
#include "base/log.hpp"
#include "base/random.hpp"
#include "base/record.hpp"
#include "base/service_thread.hpp"
#include "base/settings.hpp"
#include "dsm/memory/fault_engine.hpp"
#include "omp/process/node_threads.hpp"
#include "omp/process/openmp_runtimes.hpp"
#include "omp/process/program_vectors.hpp"
#include "omp/process/threads_apart.hpp"
#include "omp/team/told_apart.hpp"

namespace hiroba::abi {
namespace {

using MainFunction = int (*)(int, char**, char**);
using StartMain = int(MainFunction, int, char**, void (*)(), void (*)(), void (*)(), void*);

/// The arguments that the program's entry code hands to libc, kept for the thread that will run
/// main.
struct ProgramStart {
    MainFunction main = nullptr;
    int argc = 0;
    char** argv = nullptr;
    void (*initialize)() = nullptr;
    void (*finish)() = nullptr;
    void (*finish_loader)() = nullptr;
    void* stack_end = nullptr;
    omp::AuxiliaryVector auxiliary;
    sigset_t signal_mask{};  ///< of the process when it was started
};
constinit ProgramStart program;

[[noreturn]] void refuse(const Error& error) {
    const int status = error.kind == ErrorKind::usage ? exit_usage : exit_environment;
    die(status, "%s", error.text.c_str());
}

template <class T>
void require(const Result<T>& result) {
    if (!result) refuse(result.error());
}

void name_process(const net::JobInfo& job) {
    char host[256] = {};
    gethostname(host, sizeof host - 1);
    set_identity(job.self.value, host);
}

void* allocate_global(std::size_t bytes) {
    bool zeroed = false;
    void* const block = world()->heap->allocate(bytes, 16, &zeroed);
    if (block == nullptr) {
        die(exit_environment, "no room for %lu bytes of arguments and environment: set HIROBA_HEAP",
            bytes);
    }
    return block;
}

void* allocate_private(std::size_t bytes) {
    void* const block = malloc(bytes);
    if (block == nullptr) die(exit_environment, "no memory for %lu bytes of arguments", bytes);
    return block;
}

/// libc's own start: runs initializers and main, then exits the process.
int start_main(const omp::ProgramVectors& vectors) {
    // libc took the environment from the loader long ago; it does not look behind argv again.
    environ = vectors.environment;
    auto* const real = reinterpret_cast<StartMain*>(find_real("__libc_start_main"));
    return real(program.main, program.argc, vectors.argv, program.initialize, program.finish,
                program.finish_loader, program.stack_end);
}

void run_main() {
    become_main_thread();
    inherit_key_values();
    world()->omp->become_initial_thread();
    const auto vectors =
        omp::copy_vectors(program.argc, program.argv, environ, program.auxiliary, &allocate_global);
    pthread_sigmask(SIG_SETMASK, &program.signal_mask, nullptr);
    exit(start_main(vectors));
}

void run_thread(std::uint32_t local_thread) {
    examine_this_thread();
    note_program_thread();
    if (local_thread == 0) {
        if (world()->job.self.value == 0) {
            become_first_thread();
            run_main();
        }
        // As main on node 0, this thread has what is meant for the whole process.
        keep_child_signal_closed(program.signal_mask);
    } else {
        keep_signals_closed(program.signal_mask);
    }
    world()->omp->work(local_thread);
    // On node 0 the process ends with main's thread.
    if (world()->job.self.value != 0) end_worker_thread();
    for (;;) pause();
}

/// A thread of this process on a private stack; it ends with the process.
void start_background_flusher() {
    pthread_t thread;
    const int failure = pthread_create(
        &thread, nullptr,
        [](void*) -> void* {
            world()->flusher->run();
            return nullptr;
        },
        nullptr);
    if (failure != 0) ServiceThreadStart::fail("publishes writes", failure);
}

/// A function that a stack protector watches may begin on one node and, as a fiber, go on on
/// another: all threads of the job have one guard word, as those of a process have. Before the
/// program's threads start: they inherit this one's. Its lowest byte ends strings.
// Not inlined, so that test/cluster/switched_off.py can switch it off.
[[gnu::noinline]] void share_stack_guard(const net::JobInfo& job) noexcept {
    const std::uint64_t guard =
        (Random{job.job_key}() ^ std::rotl(Random{job.job_key_high}(), 32)) & ~std::uint64_t{0xff};
    asm volatile("movq %0, %%fs:0x28" : : "r"(guard) : "memory");
}

/// What a recording's addresses are.
void record_space(const dsm::AddressMap& map) noexcept {
    const dsm::SpaceShape& shape = map.shape();
    note_block_bytes(shape.block_bytes);
    record(RecordKind::shape, map.stack_slice(0).address, shape.stack_bytes,
           shape.nodes * shape.threads_per_node);
}

[[noreturn]] void run_node(const net::JobInfo& job) {
    prepare_streams(job.nodes);
    const auto objects = omp::loaded_objects();
    // One node speaks; the others wait for it in the first collective until the job ends.
    if (job.self.value == 0) require(omp::refuse_other_runtimes(objects, &program));
    require(assemble_node(job, objects));
    record_space(*world()->map);
    share_stack_guard(job);
    if (omp::tell_threads_apart(objects)) omp::program_tells_threads_apart.store(true);
    program.signal_mask = omp::block_asynchronous_signals();
    note_first_attributes(program.signal_mask);
    tell_of_crashes();
    adopt_signal_actions();
    require(find_code_of_others());
    learn_memory_limit();
    prepare_system_call_trap();
    prepare_thread_signals();
    note_first_limits();
    share_descriptors(job.self, job.nodes);
    require(world()->files->start());
    prepare_changes_of_ids();
    if (job.self.value == 0) start_exit_thread();
    require(omp::start_node_threads(*world()->map, job.self, job.threads_per_node, &run_thread));
    start_background_flusher();
    world()->endpoint->serve();
    for (;;) pause();  // ends with the process, by one of its other threads
}

int run_alone(const net::JobInfo& job) {
    prepare_streams(job.nodes);
    require(assemble_alone(job));
    become_main_thread();
    world()->omp->become_initial_thread();
    if (job.control_fd < 0) return start_main({program.argv, environ});
    return start_main(omp::copy_vectors(program.argc, program.argv, environ, program.auxiliary,
                                        &allocate_private));
}

void record_if_asked(const net::JobInfo& job) {
    const std::string path(setting("HIROBA_RECORD"));
    if (path.empty()) return;
    const auto bytes_max = setting_number("HIROBA_RECORD_SIZE");
    require(bytes_max);
    require(
        start_recording(path.c_str(), *bytes_max, job.self.value, job.nodes, job.threads_per_node));
}

/// Never returns where libc's own would not.
int take_over() {
    resolve_real_functions();
    auto job = net::read_job_info();
    require(job);
    if (job->control_fd >= 0) name_process(*job);
    require(check_settings());
    require(set_up_diagnostics());
    record_if_asked(*job);
    program.auxiliary = omp::auxiliary_vector(program.argc, program.argv);
    end_early_runtime();
    net::restore_user_environment(environ);
    register_end_of_program();
    if (job->nodes > 1) run_node(*job);
    return run_alone(*job);
}

}  // namespace
}  // namespace hiroba::abi

extern "C" [[gnu::visibility("default")]] int __libc_start_main(
    hiroba::abi::MainFunction main, int argc, char** argv, void (*initialize)(), void (*finish)(),
    void (*finish_loader)(), void* stack_end) {
    auto& program = hiroba::abi::program;
    program.main = main;
    program.argc = argc;
    program.argv = argv;
    program.initialize = initialize;
    program.finish = finish;
    program.finish_loader = finish_loader;
    program.stack_end = stack_end;
    return hiroba::abi::take_over();
}
