// SPDX-License-Identifier: BSD-3-Clause
// Role: OpenACC's functions that C and Fortran entry points share.
// Invariant: the host is the only device, and shares the program's memory.
#pragma once

#include <cstddef>

namespace hiroba::abi::openacc {

/// acc_device_t of gcc's openacc.h.
enum Device : int {
    device_current = -1,
    device_none = 0,
    device_default = 1,
    device_host = 2,
    device_not_host = 4,
    device_end = 9
};
constexpr int async_min = -2;  ///< acc_async_sync

/// Ends the program as libgomp does, with a line and status 1.
[[noreturn]] void fail(const char* format, ...) noexcept [[gnu::format(printf, 1, 2)]];

/// Returns if the host can be used by that name, otherwise the program ends.
void require_host(int device) noexcept;
/// The same, and the device is in use from here on: it is not to be initialized any more.
void use_host(int device) noexcept;
void initialize(int device) noexcept;
void shut_down(int device) noexcept;
void require_async(int async) noexcept;
/// Returns if memory is there that is to be on the device.
void require_range(const void* begin, std::size_t bytes) noexcept;
inline bool is_present(const void* begin, std::size_t bytes) noexcept {
    return begin != nullptr && bytes != 0;
}

}  // namespace hiroba::abi::openacc
