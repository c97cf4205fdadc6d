// SPDX-License-Identifier: BSD-3-Clause
// Role: offloading where there is no device: the compiler's code is told that it failed, and calls
// the host's version of the region.
// Invariant: data constructs change nothing, mapped data being the program's own. Constructs with
// `depend` or `nowait` are tasks of the compiler's making, so these calls never wait.
#include <cstring>

#include "abi/kmp/kmp.hpp"

#pragma GCC visibility push(default)

using namespace hiroba::abi;
using namespace hiroba::abi::kmp;
using hiroba::omp::TargetData;

namespace {
constexpr int offload_failed = ~0;
/// The only omp_interop_t: none.
constexpr void* no_interop = nullptr;
}  // namespace

extern "C" {

void* omp_target_alloc(std::size_t bytes, int device);
void omp_target_free(void* block, int device);

void __tgt_register_lib(void*) {}
void __tgt_unregister_lib(void*) {}
void __tgt_register_requires(Long) {}
void __tgt_init_all_rtls() {}

int __tgt_target_kernel(Location*, Long, Int, Int, void*, void*) { return offload_failed; }
int __tgt_target_kernel_nowait(Location*, Long, Int, Int, void*, void*, Int, void*, Int, void*) {
    return offload_failed;
}
int __tgt_target(Long, void*, Int, void**, void**, Long*, Long*) { return offload_failed; }
int __tgt_target_nowait(Long, void*, Int, void**, void**, Long*, Long*, Int, void*, Int, void*) {
    return offload_failed;
}
int __tgt_target_teams(Long, void*, Int, void**, void**, Long*, Long*, Int, Int) {
    return offload_failed;
}
int __tgt_target_teams_nowait(Long, void*, Int, void**, void**, Long*, Long*, Int, Int, Int, void*,
                              Int, void*) {
    return offload_failed;
}
int __tgt_target_mapper(Location*, Long, void*, Int, void**, void**, Long*, Long*, void**, void**) {
    return offload_failed;
}
int __tgt_target_nowait_mapper(Location*, Long, void*, Int, void**, void**, Long*, Long*, void**,
                               void**, Int, void*, Int, void*) {
    return offload_failed;
}
int __tgt_target_teams_mapper(Location*, Long, void*, Int, void**, void**, Long*, Long*, void**,
                              void**, Int, Int) {
    return offload_failed;
}
int __tgt_target_teams_nowait_mapper(Location*, Long, void*, Int, void**, void**, Long*, Long*,
                                     void**, void**, Int, Int, Int, void*, Int, void*) {
    return offload_failed;
}

#define HIROBA_DATA(name, what)                                                                    \
    void __tgt_target_data_##name(Long, Int, void**, void**, Long*, Long*) {                       \
        note_caller();                                                                             \
        tell_target_data(what, false);                                                             \
    }                                                                                              \
    void __tgt_target_data_##name##_nowait(Long, Int, void**, void**, Long*, Long*, Int, void*,    \
                                           Int, void*) {                                           \
        note_caller();                                                                             \
        tell_target_data(what, true);                                                              \
    }                                                                                              \
    void __tgt_target_data_##name##_mapper(Location*, Long, Int, void**, void**, Long*, Long*,     \
                                           void**, void**) {                                       \
        note_caller();                                                                             \
        tell_target_data(what, false);                                                             \
    }                                                                                              \
    void __tgt_target_data_##name##_nowait_mapper(Location*, Long, Int, void**, void**, Long*,     \
                                                  Long*, void**, void**, Int, void*, Int, void*) { \
        note_caller();                                                                             \
        tell_target_data(what, true);                                                              \
    }
HIROBA_DATA(begin, TargetData::enter)
HIROBA_DATA(end, TargetData::exit)
HIROBA_DATA(update, TargetData::update)

Long __tgt_mapper_num_components(void*) { return 0; }
void __tgt_push_mapper_component(void*, void*, void*, Long, Long, void*) {}
void __kmpc_push_target_tripcount(Long, UnsignedLong) {}
void __kmpc_push_target_tripcount_mapper(Location*, Long, UnsignedLong) {}
void __tgt_set_info_flag(Unsigned) {}
int __tgt_print_device_info(Long) { return 0; }
int __kmpc_get_target_offload() { return target_offload(); }

void __tgt_interop_init(Location*, Int, void** interop, Int, Int, Long, void*, Int) {
    *interop = no_interop;
}
void __tgt_interop_use(Location*, Int, void** interop, Int, Long, void*, Int) {
    *interop = no_interop;
}
void __tgt_interop_destroy(Location*, Int, void** interop, Int, Long, void*, Int) {
    *interop = no_interop;
}

void* llvm_omp_target_alloc_host(std::size_t bytes, int device) {
    return omp_target_alloc(bytes, device);
}
void* llvm_omp_target_alloc_shared(std::size_t bytes, int device) {
    return omp_target_alloc(bytes, device);
}
void* llvm_omp_target_alloc_device(std::size_t bytes, int device) {
    return omp_target_alloc(bytes, device);
}
void llvm_omp_target_free_host(void* block, int device) { omp_target_free(block, device); }
void llvm_omp_target_free_shared(void* block, int device) { omp_target_free(block, device); }
void llvm_omp_target_free_device(void* block, int device) { omp_target_free(block, device); }
void* llvm_omp_get_dynamic_shared() { return nullptr; }

}  // extern "C"
