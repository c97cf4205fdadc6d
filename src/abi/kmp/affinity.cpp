// SPDX-License-Identifier: BSD-3-Clause
// Role: kmp_*_affinity*: masks of processors of the machine that the calling thread runs on.
// Invariant: a mask is a set of the kernel's, in memory of the program.
#include <sched.h>

#include <cerrno>
#include <cstring>

#include "abi/kmp/kmp.hpp"
#include "abi/libc/process/thread_attributes.hpp"

#pragma GCC visibility push(default)

using namespace hiroba::abi;

namespace {

using Mask = void*;  ///< kmp_affinity_mask_t

cpu_set_t& set_of(Mask* mask) noexcept { return *static_cast<cpu_set_t*>(*mask); }
bool exists(int processor) noexcept { return processor >= 0 && processor < CPU_SETSIZE; }

int change(int processor, Mask* mask, bool in) noexcept {
    if (!exists(processor)) return -1;
    if (in)
        CPU_SET(static_cast<unsigned>(processor), &set_of(mask));
    else
        CPU_CLR(static_cast<unsigned>(processor), &set_of(mask));
    return 0;
}
int has(int processor, Mask* mask) noexcept {
    if (!exists(processor)) return -1;
    return CPU_ISSET(static_cast<unsigned>(processor), &set_of(mask)) ? 1 : 0;
}
int apply(Mask* mask) noexcept {
    thread_attribute_changed();
    return sched_setaffinity(0, sizeof(cpu_set_t), &set_of(mask)) == 0 ? 0 : errno;
}
int read(Mask* mask) noexcept {
    return sched_getaffinity(0, sizeof(cpu_set_t), &set_of(mask)) == 0 ? 0 : errno;
}
void make(Mask* mask) noexcept { *mask = allocate_by_allocator(sizeof(cpu_set_t), 0, true); }
void end(Mask* mask) noexcept {
    free_for_program(*mask);
    *mask = nullptr;
}
int processors() noexcept {
    cpu_set_t all;
    CPU_ZERO(&all);
    if (sched_getaffinity(0, sizeof all, &all) != 0) return 0;
    int most = 0;
    for (int i = 0; i < CPU_SETSIZE; ++i)
        if (CPU_ISSET(static_cast<unsigned>(i), &all)) most = i + 1;
    return most;
}

}  // namespace

extern "C" {

void kmp_create_affinity_mask(Mask* mask) { make(mask); }
void kmp_destroy_affinity_mask(Mask* mask) { end(mask); }
int kmp_set_affinity(Mask* mask) { return apply(mask); }
int kmp_get_affinity(Mask* mask) { return read(mask); }
int kmp_get_affinity_max_proc() { return processors(); }
int kmp_set_affinity_mask_proc(int processor, Mask* mask) { return change(processor, mask, true); }
int kmp_unset_affinity_mask_proc(int processor, Mask* mask) {
    return change(processor, mask, false);
}
int kmp_get_affinity_mask_proc(int processor, Mask* mask) { return has(processor, mask); }
int kmpc_set_affinity_mask_proc(int processor, Mask* mask) { return change(processor, mask, true); }
int kmpc_unset_affinity_mask_proc(int processor, Mask* mask) {
    return change(processor, mask, false);
}
int kmpc_get_affinity_mask_proc(int processor, Mask* mask) { return has(processor, mask); }

void kmp_create_affinity_mask_(Mask* mask) { make(mask); }
void kmp_destroy_affinity_mask_(Mask* mask) { end(mask); }
int kmp_set_affinity_(Mask* mask) { return apply(mask); }
int kmp_get_affinity_(Mask* mask) { return read(mask); }
int kmp_get_affinity_max_proc_() { return processors(); }
int kmp_set_affinity_mask_proc_(const int* processor, Mask* mask) {
    return change(*processor, mask, true);
}
int kmp_unset_affinity_mask_proc_(const int* processor, Mask* mask) {
    return change(*processor, mask, false);
}
int kmp_get_affinity_mask_proc_(const int* processor, Mask* mask) { return has(*processor, mask); }

}  // extern "C"
