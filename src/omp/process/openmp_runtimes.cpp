// SPDX-License-Identifier: BSD-3-Clause
// Role: asks every loaded object for the entry points.
#include "omp/process/openmp_runtimes.hpp"

#include <dlfcn.h>

namespace hiroba::omp {
namespace {

std::uintptr_t base_of(const void* address) {
    Dl_info info{};
    return dladdr(address, &info) != 0 ? reinterpret_cast<std::uintptr_t>(info.dli_fbase) : 0;
}

/// Where the object defines `name` itself: looked up by handle, dependencies are searched as well.
/// Not inlined, so that test/cluster/switched_off.py can switch it off.
[[gnu::noinline]] bool defines(void* handle, const LoadedObject& object, const char* name) {
    const void* const address = dlsym(handle, name);
    return address != nullptr && base_of(address) == object.bias;
}

}  // namespace

Result<void> refuse_other_runtimes(std::span<const LoadedObject> objects, const void* own_address) {
    const std::uintptr_t own = base_of(own_address);
    for (const LoadedObject& object : objects) {
        if (object.kind == LoadedObject::Kind::program || object.bias == own) continue;
        void* const handle = dlopen(object.path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
        if (handle == nullptr) continue;
        const bool is_runtime =
            defines(handle, object, "GOMP_parallel") || defines(handle, object, "__kmpc_fork_call");
        dlclose(handle);
        if (is_runtime) {
            return Error{
                ErrorKind::environment,
                object.path +
                    " is a second OpenMP runtime in the process. Link all parts of the "
                    "program with libgomp or libomp as libraries, for which hiroba stands in "
                    "(gcc -fopenmp, clang -fopenmp)"};
        }
    }
    return {};
}

}  // namespace hiroba::omp
