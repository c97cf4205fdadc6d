// SPDX-License-Identifier: BSD-3-Clause
#include "omp/process/threads_apart.hpp"

#include <elf.h>

#include <algorithm>
#include <string_view>

#include "omp/process/system_libraries.hpp"

namespace hiroba::omp {
namespace {

// What a thread keeps by others is seen when it happens (abi/libc/threads/kept_by_threads.hpp).
constexpr std::string_view functions[] = {
    "make_fcontext", "jump_fcontext", "pthread_mutexattr_setrobust",
    "sigblock",      "sigsetmask",    "sighold",
    "sigrelse",      "sigset",        "setfsuid",
    "setfsgid",      "capset",        "ioprio_set",
    "sched_setattr", "pkey_set",      "__rseq_offset"};

// std::call_once() hands its function over in these, and is done with them when it returns.
constexpr std::string_view of_call_once[] = {"_ZSt11__once_call", "_ZSt15__once_callable"};

bool asks_unseen(const Relocation& relocation) noexcept {
    const bool is_cxx = relocation.of[0] == '_' && relocation.of[1] == 'Z';
    return !is_cxx &&
           std::ranges::find(functions, std::string_view{relocation.of}) != std::end(functions);
}

/// Data of threads that are reached by an offset from the thread's descriptor, not by a call of
/// __tls_get_addr().
bool reaches_data_of_threads(const Relocation& relocation) noexcept {
    const bool unseen = relocation.type == R_X86_64_TPOFF64 || relocation.type == R_X86_64_TLSDESC;
    return unseen && std::ranges::find(of_call_once, std::string_view{relocation.of}) ==
                         std::end(of_call_once);
}

bool keeps_unseen(const LoadedObject& object) noexcept {
    // The program itself reaches its own data without any relocation.
    if (object.kind == LoadedObject::Kind::program && object.tls_module != 0) return true;
    return has_relocation(object.bias, object.dynamic, [](const Relocation& relocation) {
        return asks_unseen(relocation) || reaches_data_of_threads(relocation);
    });
}

}  // namespace

bool tell_threads_apart(const std::vector<LoadedObject>& objects) noexcept {
    return std::ranges::any_of(objects, [](const LoadedObject& object) {
        return object.is_global() && keeps_unseen(object);
    });
}

}  // namespace hiroba::omp
