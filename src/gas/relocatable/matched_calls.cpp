// SPDX-License-Identifier: BSD-3-Clause
#include "gas/relocatable/matched_calls.hpp"

#include <unistd.h>

#include <span>

#include "base/fatal.hpp"
#include "gas/relocatable/fault_notes.hpp"

namespace hiroba::gas {
namespace {

using Kind = CollectiveCall::Kind;

/// How long the other ranks leave it to one rank to say the line. It ends the job.
constexpr unsigned silent_us = 1'000'000;

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
}

Status MatchedCalls::meet(const CollectiveCall& mine) noexcept {
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
    die(exit_program,
        "collective calls differ: rank 0 is in %s, rank %u in %s. All ranks make the same calls in "
        "the same order",
        all_[0].text().c_str(), other, all_[other].text().c_str());
}

}  // namespace hiroba::gas
