// SPDX-License-Identifier: BSD-3-Clause
// Role: device memory functions where the only device is the host.
// Invariant: a number that does not mean the host is an error of the caller, answered as the
// specification says (null or a nonzero value), or taken for the host where nothing can be answered
// (memset), as gcc's runtime does.
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "abi/gomp/depend_objects.hpp"
#include "abi/gomp/host_device.hpp"
#include "abi/gomp/runtime.hpp"
#include "abi/gomp/task_clauses.hpp"

#pragma GCC visibility push(default)

using hiroba::abi::is_host;

namespace {

/// A box of a multidimensional array, as omp_target_memcpy_rect describes it.
struct Side {
    std::byte* base;
    const std::size_t* offsets;
    const std::size_t* dimensions;
};

void copy_box(std::size_t element, int dimensions, const std::size_t* volume, Side to,
              Side from) noexcept {
    if (dimensions == 1) {
        std::memcpy(to.base + to.offsets[0] * element, from.base + from.offsets[0] * element,
                    volume[0] * element);
        return;
    }
    std::size_t to_slice = element, from_slice = element;
    for (int d = 1; d < dimensions; ++d) {
        to_slice *= to.dimensions[d];
        from_slice *= from.dimensions[d];
    }
    for (std::size_t i = 0; i < volume[0]; ++i)
        copy_box(element, dimensions - 1, volume + 1,
                 {to.base + (to.offsets[0] + i) * to_slice, to.offsets + 1, to.dimensions + 1},
                 {from.base + (from.offsets[0] + i) * from_slice, from.offsets + 1,
                  from.dimensions + 1});
}

}  // namespace

extern "C" {

void* omp_target_alloc(std::size_t bytes, int device) {
    return is_host(device) ? hiroba::abi::allocate_by_allocator(bytes, 0, false) : nullptr;
}
void omp_target_free(void* block, int device) {
    if (block != nullptr && is_host(device)) hiroba::abi::free_for_program(block);
}
int omp_target_is_present(const void*, int device) { return is_host(device); }
int omp_target_is_accessible(const void*, std::size_t, int device) { return is_host(device); }
void* omp_get_mapped_ptr(const void* pointer, int device) {
    return is_host(device) ? const_cast<void*>(pointer) : nullptr;
}
void* GOMP_target_map_indirect_ptr(void* pointer) { return pointer; }
int omp_target_memcpy(void* to, const void* from, std::size_t bytes, std::size_t to_offset,
                      std::size_t from_offset, int to_device, int from_device) {
    if (!is_host(to_device) || !is_host(from_device)) return EINVAL;
    std::memcpy(static_cast<std::byte*>(to) + to_offset,
                static_cast<const std::byte*>(from) + from_offset, bytes);
    return 0;
}
int omp_target_memcpy_rect(void* to, const void* from, std::size_t element, int dimensions,
                           const std::size_t* volume, const std::size_t* to_offsets,
                           const std::size_t* from_offsets, const std::size_t* to_dimensions,
                           const std::size_t* from_dimensions, int to_device, int from_device) {
    constexpr int dimensions_max = 1 << 20;
    if (to == nullptr && from == nullptr) return dimensions_max;  // The caller asks for the limit.
    if (!is_host(to_device) || !is_host(from_device) || dimensions < 1) return EINVAL;
    copy_box(element, dimensions, volume, {static_cast<std::byte*>(to), to_offsets, to_dimensions},
             {static_cast<std::byte*>(const_cast<void*>(from)), from_offsets, from_dimensions});
    return 0;
}
// The calls `..._async` wait for what their task would wait for, and return when all is done: a
// later taskwait finds nothing to wait for.
int omp_target_memcpy_async(void* to, const void* from, std::size_t bytes, std::size_t to_offset,
                            std::size_t from_offset, int to_device, int from_device, int count,
                            void** objects) {
    if (!is_host(to_device) || !is_host(from_device)) return EINVAL;
    hiroba::abi::wait_for_objects(count, objects);
    return omp_target_memcpy(to, from, bytes, to_offset, from_offset, to_device, from_device);
}
int omp_target_memcpy_rect_async(void* to, const void* from, std::size_t element, int dimensions,
                                 const std::size_t* volume, const std::size_t* to_offsets,
                                 const std::size_t* from_offsets, const std::size_t* to_dimensions,
                                 const std::size_t* from_dimensions, int to_device, int from_device,
                                 int count, void** objects) {
    if (to != nullptr || from != nullptr) hiroba::abi::wait_for_objects(count, objects);
    return omp_target_memcpy_rect(to, from, element, dimensions, volume, to_offsets, from_offsets,
                                  to_dimensions, from_dimensions, to_device, from_device);
}
void* omp_target_memset(void* at, int value, std::size_t bytes, int) {
    return at != nullptr ? std::memset(at, value, bytes) : at;
}
void* omp_target_memset_async(void* at, int value, std::size_t bytes, int device, int count,
                              void** objects) {
    hiroba::abi::wait_for_objects(count, objects);
    return omp_target_memset(at, value, bytes, device);
}
int omp_target_associate_ptr(const void*, const void*, std::size_t, std::size_t, int) {
    return EINVAL;
}
int omp_target_disassociate_ptr(const void*, int) { return EINVAL; }

}  // extern "C"
