// SPDX-License-Identifier: BSD-3-Clause
// Role: which parts of a heap are taken: global addresses in, global addresses out.
// Invariant: what is known of blocks lies apart from them, so that a program that writes past the
// end of one harms no more than its neighbour, and a wrong address is told from a block. Free parts
// that adjoin are one.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

namespace hiroba::acp {

/// Thread: the caller keeps to one at a time.
class HeapBlocks {
public:
    /// Blocks begin at multiples of it and have such sizes.
    static constexpr std::uint64_t alignment = 16;

    /// Gives blocks from [first, first + bytes), too. Two areas that adjoin would become one: leave
    /// a byte out.
    void add(std::uint64_t first, std::uint64_t bytes);

    /// Takes the smallest free part that is large enough, its first bytes.
    /// @param bytes  0 takes as much as 1
    /// @return the address; 0: no part is large enough
    std::uint64_t take(std::uint64_t bytes);

    /// Gives a block back. @return false: none that is taken begins at `address`
    bool give(std::uint64_t address);

    /// Bytes of the blocks that are taken, as rounded up.
    std::uint64_t taken_bytes() const noexcept { return taken_bytes_; }

    /// As take() rounds.
    static std::uint64_t rounded(std::uint64_t bytes) noexcept;

private:
    void insert(std::uint64_t first, std::uint64_t bytes);
    void remove(std::map<std::uint64_t, std::uint64_t>::iterator part);

    std::map<std::uint64_t, std::uint64_t> free_;                ///< bytes by first address
    std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;  ///< the same: bytes, address
    std::unordered_map<std::uint64_t, std::uint64_t> taken_;     ///< bytes by address
    std::uint64_t taken_bytes_ = 0;
};

}  // namespace hiroba::acp
