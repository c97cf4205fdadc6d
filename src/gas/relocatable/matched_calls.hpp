// SPDX-License-Identifier: BSD-3-Clause
// Role: collective calls of the ranks, compared: each rank tells what it calls, and all see when
// that does not match, where they would else wait for ever or go on with different answers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hiroba/gas.hpp"
#include "net/collectives.hpp"

namespace hiroba::gas {

/// What a rank calls together with the others. Travels as bytes.
struct CollectiveCall {
    enum class Kind : std::uint64_t { barrier, broadcast, allocate, free, leave };
    Kind kind = Kind::barrier;
    std::uint64_t value = 0;  ///< of broadcast; of free: the address
    std::uint64_t root = 0;   ///< of broadcast
    std::uint64_t count = 0, element_bytes = 0, block_bytes = 0;  ///< of allocate
    std::uint64_t where = 0;                                      ///< of allocate: distribution
    std::uint64_t open_page = 0;  ///< of free: one with a view of this rank; not compared

    static CollectiveCall allocate(std::uint64_t count, std::uint64_t element_bytes,
                                   const Distribution& where) noexcept;
    /// As people write it.
    std::string text() const;
    /// Whether two ranks may call these together.
    bool matches(const CollectiveCall& other) const noexcept;
};

/// Thread: one at a time.
class MatchedCalls {
public:
    explicit MatchedCalls(net::Collectives& collectives) : collectives_(collectives) {}
    void attach(std::uint32_t rank, std::uint32_t ranks);

    /// Meets all ranks. Other kinds or roots than this rank's end the job with a line. Different
    /// arguments of allocate and free come back as Fault::differs, on all ranks.
    Status meet(const CollectiveCall& mine) noexcept;
    /// After meet(): what `rank` called.
    const CollectiveCall& of(std::uint32_t rank) const noexcept { return all_[rank]; }
    /// More ranks meet in a tree (net::kick::Barrier), which compares nothing: an exchange takes
    /// a message between any two.
    bool compares_barriers() const noexcept { return all_.size() <= 8; }

private:
    [[noreturn]] void end_job(std::uint32_t other) const noexcept;

    net::Collectives& collectives_;
    std::uint32_t rank_ = 0;
    std::vector<CollectiveCall> all_;
};

}  // namespace hiroba::gas
