// SPDX-License-Identifier: BSD-3-Clause
// Role: which bytes of each block this node has changed lately, for whoever changes one of them
// later: a copy that was fetched does not tell whose bytes it holds (docs/protocol.md#unordered).
// Invariant: a block's entry changes only under the block's lock; the bits of a line are of one
// epoch, the last in which this node changed the line.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dsm/block/block_table.hpp"
#include "gas/gas.hpp"

namespace hiroba::dsm {

/// The node that merged last into a copy, and when by its own count. All zero: none since the
/// start.
struct LastChange {
    NodeId node;
    Epoch epoch = 0;

    static LastChange decode(std::uint64_t word) noexcept {
        return {NodeId{static_cast<std::uint32_t>(word >> epoch_bits)},
                word & ((std::uint64_t{1} << epoch_bits) - 1)};
    }
    std::uint64_t encode() const noexcept {
        return std::uint64_t{node.value} << epoch_bits | epoch;
    }

private:
    static constexpr unsigned epoch_bits = 44;
};

/// Thread: any; async-signal-safe where the provider completes inline.
class ChangeLog {
public:
    /// Per block: the epoch, a word for each line of 64 bytes, one bit a byte, and a byte for each
    /// line: by how many epochs its bits are older.
    static std::size_t entry_bytes(std::size_t block_bytes) {
        return (used_bytes(block_bytes) + 63) / 64 * 64;
    }
    static std::size_t used_bytes(std::size_t block_bytes) {
        return sizeof(Epoch) + block_bytes / 64 * (sizeof(std::uint64_t) + 1);
    }

    /// @param begin  of the first block's entry, in each node's part of `segment`
    ChangeLog(gas::Segment& segment, std::size_t block_bytes, std::uint64_t begin)
        : segment_(segment), block_bytes_(block_bytes), begin_(begin) {}

    std::size_t words() const noexcept { return block_bytes_ / 64; }

    /// With the block's lock: note(words) sets the bits of what is merged into `block` in `epoch`.
    /// @param scratch  words() words
    template <class Note>
    void note(BlockId block, Epoch epoch, std::byte* scratch, Note&& note) noexcept {
        auto* const now = reinterpret_cast<std::uint64_t*>(scratch);
        std::memset(now, 0, words() * sizeof *now);
        note(now);
        const Entry entry = grown_old(block, epoch);
        for (std::size_t line = 0; line < words(); ++line)
            if (now[line] != 0) entry.add(line, now[line]);
    }
    /// With the block's lock: where `ours` differs from `twin` in [at, +bytes) of the block, at
    /// most 16 bytes; what lies behind the first one's line is left out.
    void note_atomic(BlockId block, Epoch epoch, std::size_t at, const std::byte* ours,
                     const std::byte* twin, std::size_t bytes) noexcept {
        note_atomic(grown_old(block, epoch), at, ours, twin, bytes);
    }
    /// As note_atomic(), where the entry is of this epoch. False: it is not, and nothing was noted.
    bool note_atomic_now(BlockId block, Epoch epoch, std::size_t at, const std::byte* ours,
                         const std::byte* twin, std::size_t bytes) noexcept {
        auto* const entry = reinterpret_cast<std::uint64_t*>(segment_.local() + offset_of(block));
        if (*entry != epoch) return false;
        note_atomic(Entry{entry + 1, reinterpret_cast<std::uint8_t*>(entry + 1 + words())}, at,
                    ours, twin, bytes);
        return true;
    }
    /// This node's entry, its epoch first, as it stands.
    Bytes shown(BlockId block) noexcept {
        return {segment_.local() + offset_of(block), used_bytes(block_bytes_)};
    }
    /// Reads what `node` has changed in `block` since `first` into `to` (words() words of it; room
    /// for a block). Whole with the block's lock, or where nobody merges the block.
    /// False: nothing.
    bool read(NodeId node, BlockId block, Epoch first, std::byte* to) noexcept {
        segment_.get({node, offset_of(block)}, {to, used_bytes(block_bytes_)});
        Epoch epoch;
        std::memcpy(&epoch, to, sizeof epoch);
        if (epoch < first) return false;
        const std::byte* const ages = to + sizeof epoch + words() * sizeof(std::uint64_t);
        const std::uint64_t newer = epoch - first;
        for (std::size_t line = 0; line < words(); ++line) {
            std::uint64_t noted = 0;
            const auto age = std::to_integer<std::uint64_t>(ages[line]);
            if (age < age_max && age <= newer)
                std::memcpy(&noted, to + sizeof epoch + line * sizeof noted, sizeof noted);
            std::memcpy(to + line * sizeof noted, &noted, sizeof noted);
        }
        return true;
    }

private:
    static constexpr std::size_t line_bytes = 64;
    static constexpr std::uint64_t age_max = UINT8_MAX;  ///< or older: of no use any more

    struct Entry {
        std::uint64_t* noted;
        std::uint8_t* ages;
        void add(std::size_t line, std::uint64_t bits) const noexcept {
            noted[line] = ages[line] == 0 ? noted[line] | bits : bits;
            ages[line] = 0;
        }
    };
    /// Bit i: byte i of the word differs.
    template <class Word>
    static std::uint64_t changed_bytes(const std::byte* ours, const std::byte* twin) noexcept {
        Word one, other;
        std::memcpy(&one, ours, sizeof one);
        std::memcpy(&other, twin, sizeof other);
        std::uint64_t bits = one ^ other;
        bits |= bits >> 4;
        bits |= bits >> 2;
        bits |= bits >> 1;
        // The lowest bit of each byte, gathered in the highest byte.
        return ((bits & 0x0101'0101'0101'0101) * 0x0102'0408'1020'4080) >> 56;
    }
    static void note_atomic(const Entry& entry, std::size_t at, const std::byte* ours,
                            const std::byte* twin, std::size_t bytes) noexcept {
        // One that only looked has written nothing.
        if (const std::uint64_t changed = changed_at(at, ours, twin, bytes); changed != 0)
            entry.add(at / line_bytes, changed);
    }
    /// The bytes that differ, as bits of the line of `at`.
    static std::uint64_t changed_at(std::size_t at, const std::byte* ours, const std::byte* twin,
                                    std::size_t bytes) noexcept {
        std::uint64_t changed = 0;
        if (bytes == sizeof(std::uint32_t)) {
            changed = changed_bytes<std::uint32_t>(ours, twin);
        } else if (bytes == sizeof(std::uint64_t)) {
            changed = changed_bytes<std::uint64_t>(ours, twin);
        } else {
            for (std::size_t i = 0; i < bytes; ++i)
                changed |= std::uint64_t{ours[i] != twin[i]} << i;
        }
        return changed << at % line_bytes;
    }
    std::uint64_t offset_of(BlockId block) const noexcept {
        return begin_ + std::uint64_t{block} * entry_bytes(block_bytes_);
    }
    /// This node's entry, its lines older by what has passed until `epoch`.
    Entry grown_old(BlockId block, Epoch epoch) noexcept {
        std::byte* const entry = segment_.local() + offset_of(block);
        auto* const epoch_of_entry = reinterpret_cast<std::uint64_t*>(entry);
        std::uint64_t* const noted = epoch_of_entry + 1;
        auto* const ages = reinterpret_cast<std::uint8_t*>(noted + words());
        const auto gap = static_cast<std::uint8_t>(std::min(epoch - *epoch_of_entry, age_max));
        if (gap == 0) return {noted, ages};
        *epoch_of_entry = epoch;
        for (std::size_t line = 0; line < words(); ++line)
            ages[line] = static_cast<std::uint8_t>(std::min(ages[line] + gap, UINT8_MAX));
        return {noted, ages};
    }

    gas::Segment& segment_;
    std::size_t block_bytes_;
    std::uint64_t begin_;
};

}  // namespace hiroba::dsm
