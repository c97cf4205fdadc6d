// SPDX-License-Identifier: BSD-3-Clause
// Role: which numbers of devices mean the host, the only device there is.
#pragma once

#include "abi/gomp/runtime.hpp"

namespace hiroba::abi {

/// omp_get_initial_device(), omp_initial_device and omp_default_device of omp.h.
inline bool is_host(int device) noexcept {
    constexpr int by_number = 0, initial = -1, by_default = -5;
    if (device == by_default) device = runtime().icvs().default_device;
    return device == by_number || device == initial;
}

}  // namespace hiroba::abi
