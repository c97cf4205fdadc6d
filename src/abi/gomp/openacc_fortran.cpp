// SPDX-License-Identifier: BSD-3-Clause
// Role: what gcc's Fortran module openacc calls: names that end in `_h_`, arguments by reference,
// lengths of 4 or 8 bytes, arrays by descriptors.
// Invariant: each is its C twin.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "abi/gomp/openacc.hpp"

using namespace hiroba::abi::openacc;

#pragma GCC visibility push(default)

extern "C" {

int acc_get_num_devices(int device);
const char* acc_get_property_string(int number, int device, int property);
int acc_on_device(int device);

int acc_get_num_devices_h_(const int* device) { return acc_get_num_devices(*device); }
void acc_set_device_type_h_(const int* device) { use_host(*device); }
int acc_get_device_type_h_() { return device_host; }
void acc_set_device_num_h_(const int* number, const int* device) {
    if (*device != device_none) use_host(*device);
    if (*number > 0) fail("device %d out of range", *number);
}
int acc_get_device_num_h_(const int* device) {
    require_host(*device);
    return 0;
}
// The module passes these by value.
std::size_t acc_get_property_h_(int number, int device, int property) {
    acc_get_property_string(number, device, property);
    return 0;
}
// A string of Fortran: filled up with blanks.
void acc_get_property_string_h_(int number, int device, int property, char* string,
                                std::size_t length) {
    const char* const text = acc_get_property_string(number, device, property);
    const std::size_t given = text != nullptr ? std::min(std::strlen(text), length) : 0;
    std::memset(string, ' ', length);
    if (given != 0) std::memcpy(string, text, given);
}
void acc_init_h_(const int* device) { initialize(*device); }
void acc_shutdown_h_(const int* device) { shut_down(*device); }
std::int32_t acc_on_device_h_(const int* device) { return acc_on_device(*device); }

std::int32_t acc_async_test_h_(const int* async) {
    require_async(*async);
    return 1;
}
std::int32_t acc_async_test_all_h_() { return 1; }
void acc_wait_h_(const int* async) { require_async(*async); }
void acc_wait_async_h_(const int* one, const int* other) {
    require_async(*one);
    require_async(*other);
}
void acc_wait_all_h_() {}
void acc_wait_all_async_h_(const int* async) { require_async(*async); }

std::int32_t acc_is_present_32_h_(void* begin, const std::int32_t* bytes) {
    return is_present(begin, static_cast<std::size_t>(*bytes));
}
std::int32_t acc_is_present_64_h_(void* begin, const std::int64_t* bytes) {
    return is_present(begin, static_cast<std::size_t>(*bytes));
}
std::int32_t acc_is_present_array_h_(void* const* descriptor) { return *descriptor != nullptr; }

#define HIROBA_ENTERS(name)                                     \
    void name##_32_h_(void* begin, const std::int32_t* bytes) { \
        require_range(begin, static_cast<std::size_t>(*bytes)); \
    }                                                           \
    void name##_64_h_(void* begin, const std::int64_t* bytes) { \
        require_range(begin, static_cast<std::size_t>(*bytes)); \
    }                                                           \
    void name##_array_h_(void* const*) {}
#define HIROBA_LEAVES(name)                          \
    void name##_32_h_(void*, const std::int32_t*) {} \
    void name##_64_h_(void*, const std::int64_t*) {} \
    void name##_array_h_(void* const*) {}
#define HIROBA_ASYNC(name)                                             \
    void name##_async_32_h_(void*, const std::int32_t*, const int*) {} \
    void name##_async_64_h_(void*, const std::int64_t*, const int*) {} \
    void name##_async_array_h_(void* const*, const int*) {}
HIROBA_ENTERS(acc_copyin)
HIROBA_ENTERS(acc_present_or_copyin)
HIROBA_ENTERS(acc_create)
HIROBA_ENTERS(acc_present_or_create)
HIROBA_LEAVES(acc_copyout)
HIROBA_LEAVES(acc_copyout_finalize)
HIROBA_LEAVES(acc_delete)
HIROBA_LEAVES(acc_delete_finalize)
HIROBA_LEAVES(acc_update_device)
HIROBA_LEAVES(acc_update_self)
HIROBA_ASYNC(acc_copyin)
HIROBA_ASYNC(acc_create)
HIROBA_ASYNC(acc_copyout)
HIROBA_ASYNC(acc_delete)
HIROBA_ASYNC(acc_update_device)
HIROBA_ASYNC(acc_update_self)

}  // extern "C"
