// SPDX-License-Identifier: BSD-3-Clause
#include "acp/data/sequence.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "acp/refusal.hpp"

namespace hiroba::acp::data {
namespace {

using Kind = Sequence::Kind;

/// The control words as they are in memory.
struct VectorWords {
    std::uint64_t block, size, capacity;
};
struct DequeWords {
    std::uint64_t block, offset, size, capacity;
};

std::uint64_t words_bytes(Kind kind) {
    return kind == Kind::vector ? sizeof(VectorWords) : sizeof(DequeWords);
}

std::uint64_t of_eights(std::uint64_t bytes) { return (bytes + 7) / 8 * 8; }

void write_zeros(Call& call, std::uint64_t to, std::uint64_t bytes) {
    constexpr std::byte zeros[2048] = {};
    for (std::uint64_t done = 0; done < bytes && call.ok(); done += sizeof zeros) {
        call.write_bytes(to + done, zeros, std::min(bytes - done, std::uint64_t{sizeof zeros}));
    }
}

}  // namespace

// --- one sequence --------------------------------------------------------------------------------

std::uint64_t Sequence::create(Call& call, Kind kind, std::uint64_t bytes, std::int64_t rank) {
    const std::uint64_t control = call.allocate(words_bytes(kind), rank);
    State state;
    if (bytes != 0) {
        state.capacity = kind == Kind::vector ? of_eights(bytes) : bytes;
        state.block = call.allocate(state.capacity, rank);
        state.size = kind == Kind::vector ? bytes : 0;
        write_zeros(call, state.block, state.size);
    }
    store(call, kind, control, state);
    return call.ok() ? control : 0;
}

Sequence::Sequence(Call& call, Kind kind, std::uint64_t control)
    : call_(call), kind_(kind), control_(control) {
    if (kind == Kind::vector) {
        const auto words = call.read<VectorWords>(control);
        state_ = {words.block, 0, words.size, words.capacity};
    } else {
        const auto words = call.read<DequeWords>(control);
        state_ = {words.block, words.offset, words.size, words.capacity};
    }
    const bool is_one = state_.size <= state_.capacity &&
                        (state_.block == 0) == (state_.capacity == 0) &&
                        (state_.offset < state_.capacity || state_.offset == 0);
    if (is_one) return;
    call.fail("at global address " + hexadecimal(control) + " is no " +
              (kind == Kind::vector ? "vector" : "deque") + ", or no longer");
    state_ = {};
}

void Sequence::store(Call& call, Kind kind, std::uint64_t control, const State& state) {
    if (kind == Kind::vector) {
        call.write(control, VectorWords{state.block, state.size, state.capacity});
    } else {
        call.write(control, DequeWords{state.block, state.offset, state.size, state.capacity});
    }
}

Sequence::Pieces Sequence::pieces(std::uint64_t position, std::uint64_t bytes) const noexcept {
    if (position >= state_.size) return {};
    const std::uint64_t wanted = std::min(bytes, state_.size - position);
    const std::uint64_t begin = state_.offset + position;
    if (begin >= state_.capacity) return {state_.block + begin - state_.capacity, wanted, 0, 0};
    const std::uint64_t first = std::min(wanted, state_.capacity - begin);
    if (first == wanted) return {state_.block + begin, wanted, 0, 0};
    return {state_.block + begin, first, state_.block, wanted - first};
}

bool Sequence::owns(std::uint64_t address, std::uint64_t bytes) const noexcept {
    return address + bytes > state_.block && address < state_.block + state_.capacity;
}

void Sequence::destroy() {
    call_.release(state_.block);
    call_.release(control_);
    state_ = {};
}

void Sequence::clear() {
    state_.size = 0;
    state_.offset = 0;
    store();
}

// --- moving bytes --------------------------------------------------------------------------------

void Sequence::copy_out(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) const {
    const Pieces part = pieces(from, bytes);
    call_.copy(to, part.first, part.first_bytes);
    call_.copy(to + part.first_bytes, part.second, part.second_bytes);
}

void Sequence::copy_in(std::uint64_t position, std::uint64_t source, std::uint64_t bytes) const {
    const Pieces part = pieces(position, bytes);
    call_.copy(part.first, source, part.first_bytes);
    call_.copy(part.second, source + part.first_bytes, part.second_bytes);
}

std::uint64_t Sequence::move_all(std::uint64_t capacity, std::uint64_t position,
                                 std::uint64_t bytes) {
    const std::uint64_t block = call_.allocate(capacity, call_.rank_of(control_));
    if (!call_.ok()) return 0;
    copy_out(block, 0, position);
    copy_out(block + position + bytes, position, state_.size - position);
    const std::uint64_t old = state_.block;
    state_ = {block, 0, state_.size + bytes, capacity};
    return old;
}

void Sequence::shift(std::uint64_t position, std::uint64_t target, std::uint64_t bytes) {
    const std::uint64_t aside = call_.allocate(bytes, call_.rank_of(control_));
    if (!call_.ok()) return;
    copy_out(aside, position, bytes);
    state_.size = std::max(state_.size, target + bytes);
    copy_in(target, aside, bytes);
    call_.release(aside);
}

void Sequence::reserve(std::uint64_t bytes) {
    const std::uint64_t wanted = kind_ == Kind::vector ? of_eights(bytes) : bytes;
    if (wanted <= state_.capacity) return;
    const std::uint64_t old = move_all(wanted, state_.size, 0);
    store();
    call_.release(old);
}

std::uint64_t Sequence::insert(std::uint64_t position, std::uint64_t source, std::uint64_t bytes) {
    const std::uint64_t at = std::min(position, state_.size);
    const std::uint64_t behind = state_.size - at;
    if (bytes > ~std::uint64_t{0} - state_.size) {
        call_.fail("no sequence has room for " + std::to_string(bytes) + " bytes more");
    }
    if (bytes == 0 || !call_.ok()) return at;
    if (state_.size + bytes > state_.capacity) {
        // Half as much again, so that many small ones cost each a few copies.
        const std::uint64_t grown =
            of_eights(std::max(state_.size + bytes, state_.capacity / 2 * 3));
        const std::uint64_t old = move_all(grown, at, bytes);
        if (call_.ok()) copy_in(at, source, bytes);
        store();
        call_.release(old);
        return at;
    }
    std::uint64_t aside = 0;
    if (behind != 0 && owns(source, bytes)) {  // the shift would take the source along
        aside = call_.allocate(bytes, call_.rank_of(control_));
        call_.copy(aside, source, bytes);
        source = aside;
    }
    if (at == 0 && kind_ == Kind::deque) {
        state_.offset = (state_.offset + state_.capacity - bytes) % state_.capacity;
        state_.size += bytes;
    } else if (behind != 0) {
        // A source that is no memory is found before anything moves.
        call_.read<std::byte>(source);
        call_.read<std::byte>(source + bytes - 1);
        shift(at, at + bytes, behind);
    } else {
        state_.size += bytes;
    }
    copy_in(at, source, bytes);
    store();
    call_.release(aside);
    return at;
}

std::uint64_t Sequence::insert(std::uint64_t position, const Sequence& other, std::uint64_t from,
                               std::uint64_t to) {
    if (from >= to) return std::min(position, state_.size);
    const Pieces part = other.pieces(from, to - from);
    if (part.second_bytes == 0) return insert(position, part.first, part.first_bytes);
    // In two pieces, of which one may be this one's own: through a block that is in one.
    const std::uint64_t bytes = part.first_bytes + part.second_bytes;
    const std::uint64_t aside = call_.allocate(bytes, call_.rank_of(control_));
    other.copy_out(aside, from, bytes);
    const std::uint64_t at = insert(position, aside, bytes);
    call_.release(aside);
    return at;
}

void Sequence::erase(std::uint64_t position, std::uint64_t bytes) {
    if (position >= state_.size || bytes == 0) return;
    const std::uint64_t gone = std::min(bytes, state_.size - position);
    const std::uint64_t behind = state_.size - position - gone;
    if (position == 0 && kind_ == Kind::deque) {
        state_.offset = gone == state_.size ? 0 : (state_.offset + gone) % state_.capacity;
    } else if (behind != 0) {
        shift(position + gone, position, behind);
    }
    state_.size -= gone;
    store();
}

void Sequence::assign(const Sequence& other, std::uint64_t from, std::uint64_t to) {
    if (!call_.ok()) return;
    const std::uint64_t end = std::min(to, other.size());
    const std::uint64_t bytes = from < end ? end - from : 0;
    if (other.control_ == control_) {
        erase(end, state_.size);
        erase(0, state_.size - std::min(bytes, state_.size));
        return;
    }
    state_.size = 0;
    state_.offset = 0;
    const std::uint64_t old = bytes > state_.capacity ? move_all(of_eights(bytes), 0, 0) : 0;
    state_.size = bytes;
    if (bytes != 0 && call_.ok()) {
        const Pieces part = other.pieces(from, bytes);
        call_.copy(state_.block, part.first, part.first_bytes);
        call_.copy(state_.block + part.first_bytes, part.second, part.second_bytes);
    }
    store();
    call_.release(old);
}

void Sequence::swap(Sequence& other) {
    if (!call_.ok() || other.control_ == control_) return;
    const std::int64_t here = call_.rank_of(control_), there = call_.rank_of(other.control_);
    const State mine = state_, theirs = other.state_;
    std::swap(state_, other.state_);
    if (here != there) {  // The bytes stay with the control words.
        state_ = copied_to(here, theirs);
        other.state_ = copied_to(there, mine);
    }
    store();
    other.store();
    if (here == there) return;
    call_.release(mine.block);
    call_.release(theirs.block);
}

Sequence::State Sequence::copied_to(std::int64_t rank, const State& from) {
    if (from.size == 0) return {};
    State copy{0, 0, from.size, of_eights(from.size)};
    copy.block = call_.allocate(copy.capacity, rank);
    const std::uint64_t first = std::min(from.size, from.capacity - from.offset);
    call_.copy(copy.block, from.block + from.offset, first);
    call_.copy(copy.block + first, from.block, from.size - first);
    return copy;
}

}  // namespace hiroba::acp::data
