// SPDX-License-Identifier: BSD-3-Clause
// Role: bytes that any rank may name.
#pragma once

#include <cstdint>

namespace hiroba::acp::data {

struct Extent {
    std::uint64_t address = 0, bytes = 0;
};

}  // namespace hiroba::acp::data
