// SPDX-License-Identifier: BSD-3-Clause
// Role: see siphash.hpp. Assumes a little-endian processor, as all of `wire` does.
#include "net/wire/siphash.hpp"

#include <cstring>

namespace hiroba::net::wire {

static_assert(std::endian::native == std::endian::little);

std::uint64_t siphash(const HashKey& key, Bytes bytes) noexcept {
    SipHash hash{key};
    const std::size_t whole = bytes.size() & ~std::size_t{7};
    std::uint64_t word = 0;
    for (std::size_t at = 0; at < whole; at += 8) {
        std::memcpy(&word, bytes.data() + at, 8);
        hash.absorb(word);
    }
    word = 0;
    if (bytes.size() > whole) std::memcpy(&word, bytes.data() + whole, bytes.size() - whole);
    return hash.finish(word | std::uint64_t{bytes.size()} << 56);
}

}  // namespace hiroba::net::wire
