// SPDX-License-Identifier: BSD-3-Clause
#include "gas/relocatable/matched_calls.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <span>

#include "base/fatal.hpp"
#include "gas/relocatable/fault_notes.hpp"

namespace hiroba::gas {
namespace {

using Kind = CollectiveCall::Kind;

/// How long the other ranks leave it to one rank to say the line. It ends the job.
constexpr unsigned silent_us = 1'000'000;
constexpr char differ_format[] =
    "collective calls differ: rank %u is in %s, rank %u in %s. All ranks make the same calls in "
    "the same order";

std::string distribution_text(std::uint64_t where, std::uint64_t block_bytes) {
    const auto kind = static_cast<Distribution::Kind>(where & 255);
    std::string text = "block";
    if (kind == Distribution::Kind::cyclic) {
        text = "cyclic";
        if (block_bytes != 0) text += " by " + std::to_string(block_bytes);
    }
    if (kind == Distribution::Kind::one_rank) text = "on rank " + std::to_string(where >> 32);
    return (where >> 8 & 1) != 0 ? text + ", fixed" : text;
}

std::string hexadecimal(std::uint64_t value) {
    char text[19];
    std::snprintf(text, sizeof text, "0x%lx", static_cast<unsigned long>(value));
    return text;
}

}  // namespace

CollectiveCall CollectiveCall::allocate(std::uint64_t count, std::uint64_t element_bytes,
                                        const Distribution& where) noexcept {
    CollectiveCall call;
    call.kind = Kind::allocate;
    call.count = count;
    call.element_bytes = element_bytes;
    const bool has_rank = where.kind == Distribution::Kind::one_rank;
    call.block_bytes = where.kind == Distribution::Kind::cyclic ? where.block_bytes : 0;
    call.where = static_cast<std::uint64_t>(where.kind) | std::uint64_t{!where.relocatable} << 8 |
                 (has_rank ? std::uint64_t{where.rank} << 32 : 0);
    return call;
}

std::string CollectiveCall::text() const {
    switch (kind) {
        case Kind::barrier: return "barrier()";
        case Kind::broadcast: return "broadcast() from rank " + std::to_string(root);
        case Kind::allocate:
            return "allocate_together() of " + std::to_string(count) + " elements of " +
                   std::to_string(element_bytes) + " bytes, " +
                   distribution_text(where, block_bytes);
        case Kind::free: return "free() of " + hexadecimal(value);
        case Kind::leave: return "the end of its space";
    }
    return "?";
}

bool CollectiveCall::matches(const CollectiveCall& other) const noexcept {
    if (kind != other.kind || root != other.root) return false;
    if (kind == Kind::free) return value == other.value;
    return count == other.count && element_bytes == other.element_bytes &&
           block_bytes == other.block_bytes && where == other.where;
}

void MatchedCalls::attach(std::uint32_t rank, std::uint32_t ranks) {
    rank_ = rank;
    all_.resize(ranks);
    const std::scoped_lock guard{latch_};
    announced_.resize(ranks);  // perhaps behind the first announcement
}

void MatchedCalls::barrier() noexcept {
    in_barrier_.store(++number_);  // seq_cst, before newest_ is loaded: see announced()
    if (newest_.load() >= number_) [[unlikely]]
        look_at_announced();
    collectives_.barrier();
}

void MatchedCalls::look_at_announced() noexcept {
    const std::uint64_t number = in_barrier_.load();
    for (std::uint32_t rank = 0; rank < all_.size(); ++rank) {
        CollectiveCall theirs;
        {
            const std::scoped_lock guard{latch_};
            if (rank >= announced_.size() || announced_[rank].number != number) continue;
            theirs = announced_[rank].call;
        }
        const std::string mine = CollectiveCall{}.text(), other = theirs.text();
        die(exit_program, differ_format, std::min(rank, rank_),
            (rank < rank_ ? other : mine).c_str(), std::max(rank, rank_),
            (rank < rank_ ? mine : other).c_str());
    }
}

void MatchedCalls::announce(const CollectiveCall& mine) noexcept {
    std::uint64_t words[CollectiveCall::words];
    static_assert(sizeof words == sizeof mine);
    std::memcpy(words, &mine, sizeof words);
    for (std::uint32_t rank = 0; rank < all_.size(); ++rank) {
        if (rank != rank_) {
            messages_.send(NodeId{rank}, SpaceMessageKind::calling, number_, words);
        }
    }
}

void MatchedCalls::announced(NodeId from, std::uint64_t number,
                             SpaceMessages::Words words) noexcept {
    {
        const std::scoped_lock guard{latch_};
        if (announced_.size() <= from.value) announced_.resize(from.value + 1);
        Announced& theirs = announced_[from.value];
        if (number < theirs.number) return;  // messages may overtake each other
        theirs.number = number;
        std::memcpy(static_cast<void*>(&theirs.call), words.data(), sizeof theirs.call);
    }
    std::uint64_t newest = newest_.load();
    while (newest < number && !newest_.compare_exchange_weak(newest, number)) {
    }
    if (in_barrier_.load() == number) look_at_announced();
}

Status MatchedCalls::meet(const CollectiveCall& mine) noexcept {
    ++number_;
    announce(mine);
    collectives_.all_gather(std::as_bytes(std::span(&mine, 1)),
                            std::as_writable_bytes(std::span(all_)));
    for (std::uint32_t rank = 1; rank < all_.size(); ++rank) {
        const CollectiveCall& first = all_[0];
        const CollectiveCall& other = all_[rank];
        if (first.matches(other)) continue;
        if (first.kind != other.kind || first.root != other.root) end_job(rank);
        return noted(Fault::differs, 0, "rank 0 calls %s, rank %u %s: nothing is done on any rank",
                     first.text().c_str(), rank, other.text().c_str());
    }
    return {};
}

void MatchedCalls::end_job(std::uint32_t other) const noexcept {
    if (rank_ != other) ::usleep(silent_us);
    die(exit_program, differ_format, 0u, all_[0].text().c_str(), other, all_[other].text().c_str());
}

}  // namespace hiroba::gas
