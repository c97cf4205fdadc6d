// SPDX-License-Identifier: BSD-3-Clause
// Role: mutexes of libstdc++'s own that guard objects of the program: those of std::atomic_load()
// of a shared pointer, and of what a locale has put aside. They lie in libstdc++, private to a
// node, and are the job's all the same, known by the function that takes them.
// Invariant: once one has been taken so, it always is on this node.
#pragma once

#include <pthread.h>

namespace hiroba::abi {

/// Before the first region: finds the functions in the program's libstdc++.
void learn_runtime_mutexes() noexcept;

/// Whether the caller takes such a one; then it is remembered.
bool takes_runtime_mutex(const pthread_mutex_t* mutex, const void* return_address) noexcept;
/// Whether it was taken so.
bool is_runtime_mutex(const pthread_mutex_t* mutex) noexcept;

}  // namespace hiroba::abi
