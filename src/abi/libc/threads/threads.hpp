// SPDX-License-Identifier: BSD-3-Clause
// Role: which thread runs main, and threads made in the program's name.
// Invariant: main's is set once, before the program's first instruction.
#pragma once

#include <pthread.h>

#include <cstdint>

namespace hiroba::abi {

/// Remembers the caller as the thread whose pthread_exit() leaves the rest of the job running.
void become_main_thread() noexcept;

bool is_main_thread() noexcept;
/// Whether a thread that the program has made on this node has not ended.
bool program_threads_run() noexcept;

/// Starts one more of the runtime's threads of this node (omp::Parts::start_thread).
void start_another_thread(std::uint32_t local_thread);

/// As pthread_create() by the program. Only on several nodes. `argument` is handed on as it is.
int create_thread(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                  void* argument) noexcept;

}  // namespace hiroba::abi
