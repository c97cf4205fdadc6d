// SPDX-License-Identifier: BSD-3-Clause
// Role: the vector and the deque of the middle layer: bytes in one block, of a size that grows.
// Invariant: the control words and the block lie on the rank that the structure was created on. The
// bytes are a ring that begins at `offset`; that of a vector is always 0, so its bytes have one
// piece. Positions and sizes are bytes; what an element is, the caller knows.
// Source: the public interface of ACP 3; its programs look at the words, so these are in its order.
#pragma once

#include <cstdint>

#include "acp/data/call.hpp"

namespace hiroba::acp::data {

/// One vector or deque, for the time of one call. The caller sees to it that no rank changes it
/// meanwhile.
class Sequence {
public:
    enum class Kind : std::uint8_t { vector, deque };
    /// Two pieces of memory; the second one is empty unless the ring ends in between.
    struct Pieces {
        std::uint64_t first = 0, first_bytes = 0, second = 0, second_bytes = 0;
    };

    /// @param bytes  a vector's first size, zeros; a deque's room
    /// @return where its control words are; 0 on failure
    static std::uint64_t create(Call& call, Kind kind, std::uint64_t bytes, std::int64_t rank);

    /// Reads the control words; the call fails if there are none.
    Sequence(Call& call, Kind kind, std::uint64_t control);

    std::uint64_t size() const noexcept { return state_.size; }
    std::uint64_t capacity() const noexcept { return state_.capacity; }
    /// Where [position, position + bytes) is, or what there is of it.
    Pieces pieces(std::uint64_t position, std::uint64_t bytes) const noexcept;

    void destroy();
    void clear();
    /// Makes room for `bytes`; never less than there is.
    void reserve(std::uint64_t bytes);
    /// Puts `bytes` from `source`, which may be of this one, at `position`, or the end if there is
    /// none. @return the position
    std::uint64_t insert(std::uint64_t position, std::uint64_t source, std::uint64_t bytes);
    /// As above, [from, to) of `other`, which may be this one.
    std::uint64_t insert(std::uint64_t position, const Sequence& other, std::uint64_t from,
                         std::uint64_t to);
    /// Takes `bytes` away, or what there is from `position` on.
    void erase(std::uint64_t position, std::uint64_t bytes);
    /// Takes over [from, to) of `other` instead of its own.
    void assign(const Sequence& other, std::uint64_t from, std::uint64_t to);
    void swap(Sequence& other);

private:
    struct State {
        std::uint64_t block = 0, offset = 0, size = 0, capacity = 0;
    };
    static void store(Call& call, Kind kind, std::uint64_t control, const State& state);
    void store() { store(call_, kind_, control_, state_); }
    /// Copies all bytes of `from` to a block of `rank`.
    State copied_to(std::int64_t rank, const State& from);
    /// Copies [from, from + bytes) of this one to memory in one piece.
    void copy_out(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) const;
    void copy_in(std::uint64_t position, std::uint64_t source, std::uint64_t bytes) const;
    /// Moves all to a block of `capacity`, with a gap of `bytes` at `position`. @return the old one
    std::uint64_t move_all(std::uint64_t capacity, std::uint64_t position, std::uint64_t bytes);
    /// Moves what is behind `position` to `target`, by way of a block of its own.
    void shift(std::uint64_t position, std::uint64_t target, std::uint64_t bytes);
    bool owns(std::uint64_t address, std::uint64_t bytes) const noexcept;

    Call& call_;
    Kind kind_;
    std::uint64_t control_;
    State state_;
};

}  // namespace hiroba::acp::data
