// SPDX-License-Identifier: BSD-3-Clause
#include "acp/data/call.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "acp/refusal.hpp"
#include "base/fatal.hpp"

namespace hiroba::acp::data {

Call::Call(Node& node) : node_(node) {
    auto scratch = node.heap().borrow_scratch();
    if (!scratch) {
        fail(scratch.error());
        return;
    }
    scratch_ = *scratch;
}

Call::~Call() {
    if (last_ != 0) node_.complete(last_);
    if (scratch_.at != nullptr) node_.heap().give_back(scratch_);
}

bool Call::fail(Error error) {
    if (ok_) error_ = std::move(error);
    ok_ = false;
    return false;
}

bool Call::fail(std::string text) { return fail(refused(std::move(text))); }

std::int64_t Call::issue(const Access& access) {
    if (!ok_) return 0;
    const std::int64_t order = last_ == 0 ? handle_null : handle_continue;
    const std::int64_t handle = node_.try_access(access, order);
    if (handle == 0) {
        fail(node_.why_refused(access, order));
        return 0;
    }
    last_ = node_.is_over(handle) ? 0 : handle;
    return handle;
}

void Call::complete() {
    if (last_ != 0) node_.complete(last_);
    last_ = 0;
    written_ = reading_bytes;
}

// --- bytes ---------------------------------------------------------------------------------------

void Call::read_bytes(std::uint64_t address, void* to, std::uint64_t bytes) {
    auto* const out = static_cast<std::byte*>(to);
    for (std::uint64_t done = 0; done < bytes && ok_;) {
        const std::uint64_t piece = std::min(bytes - done, reading_bytes);
        issue({false, {}, 0, scratch_.address, address + done, piece, 0, 0});
        if (!ok_) break;
        complete();
        std::memcpy(out + done, scratch_.at, piece);
        done += piece;
    }
    if (!ok_) std::memset(to, 0, bytes);
}

/// Offset in the scratch block of room for `bytes` that nothing under way reads.
std::uint64_t Call::room_to_write(std::uint64_t bytes) {
    if (last_ == 0) written_ = reading_bytes;
    if (written_ + bytes > Heap::Scratch::bytes) complete();
    const std::uint64_t at = written_;
    written_ += (bytes + 7) / 8 * 8;
    return at;
}

void Call::write_bytes(std::uint64_t address, const void* from, std::uint64_t bytes) {
    const auto* const in = static_cast<const std::byte*>(from);
    for (std::uint64_t done = 0; done < bytes && ok_;) {
        const std::uint64_t piece = std::min(bytes - done, Heap::Scratch::bytes - reading_bytes);
        const std::uint64_t at = room_to_write(piece);
        std::memcpy(scratch_.at + at, in + done, piece);
        issue({false, {}, 0, address + done, scratch_.address + at, piece, 0, 0});
        done += piece;
    }
}

void Call::copy(std::uint64_t dst, std::uint64_t src, std::uint64_t bytes) {
    if (bytes != 0) issue({false, {}, 0, dst, src, bytes, 0, 0});
}

bool Call::are_equal(std::uint64_t address, const void* here, std::uint64_t bytes) {
    const auto* const mine = static_cast<const std::byte*>(here);
    std::byte piece[reading_bytes];
    for (std::uint64_t done = 0; done < bytes; done += sizeof piece) {
        const std::uint64_t part = std::min(bytes - done, std::uint64_t{sizeof piece});
        read_bytes(address + done, piece, part);
        if (!ok_ || std::memcmp(piece, mine + done, part) != 0) return false;
    }
    return ok_;
}

bool Call::are_equal(std::uint64_t first, std::uint64_t second, std::uint64_t bytes) {
    std::byte piece[reading_bytes];
    for (std::uint64_t done = 0; done < bytes; done += sizeof piece) {
        const std::uint64_t part = std::min(bytes - done, std::uint64_t{sizeof piece});
        read_bytes(second + done, piece, part);
        if (!ok_ || !are_equal(first + done, piece, part)) return false;
    }
    return ok_;
}

// --- words, blocks -------------------------------------------------------------------------------

bool Call::lock(std::uint64_t address, void* behind, std::uint64_t bytes) {
    HIROBA_INVARIANT(bytes <= reading_bytes - 8, "%lu bytes behind a lock", bytes);
    // Its holder is in a call, so it goes soon; a rank that is lost ends the job.
    for (; ok_; ::sched_yield()) {
        issue({true, net::AtomicOp::compare_swap, 8, scratch_.address, address, 8, 1, 0});
        if (bytes != 0) copy(scratch_.address + 8, address + 8, bytes);
        complete();
        std::uint64_t before = 1;
        if (ok_) std::memcpy(&before, scratch_.at, sizeof before);
        if (before != 0) continue;
        if (bytes != 0) std::memcpy(behind, scratch_.at + 8, bytes);
        return true;
    }
    return false;
}

void Call::unlock(std::uint64_t address) {
    const bool was_ok = std::exchange(ok_, true);
    write(address, std::uint64_t{0});
    ok_ = ok_ && was_ok;
}

std::uint64_t Call::allocate(std::uint64_t bytes, std::int64_t rank) {
    if (!ok_) return 0;
    const auto block = node_.allocate(bytes, rank);
    if (block) return *block;
    fail(block.error());
    return 0;
}

void Call::release(std::uint64_t address) {
    if (!ok_ || address == 0) return;
    complete();  // The block is another's next.
    if (auto done = node_.release(address); !done) fail(done.error());
}

std::int64_t Call::rank_of(std::uint64_t address) {
    if (!ok_) return -1;
    const auto rank = node_.rank_of_address(address);
    if (rank) return *rank;
    fail(rank.error());
    return -1;
}

}  // namespace hiroba::acp::data
