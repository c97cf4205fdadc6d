// SPDX-License-Identifier: BSD-3-Clause
// Role: all memory of a process as one registration, so that requests have local ends anywhere.
// Providers take addresses; those that pin memory do so by address.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.hpp"
#include "hiroba/net_requests.hpp"

namespace hiroba::net {

/// What Async::register_local() takes. The first page of addresses is nobody's.
inline MutableBytes all_memory() noexcept {
    constexpr std::uint64_t first = 4096, end = std::uint64_t{1} << 47;
    return {reinterpret_cast<std::byte*>(first), end - first};
}
/// Where `memory` is in the registration `all` of that.
inline LocalAddress in_all_memory(Handle all, const void* memory) noexcept {
    return {all, reinterpret_cast<std::uint64_t>(memory) - 4096};
}

}  // namespace hiroba::net
