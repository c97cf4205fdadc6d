// SPDX-License-Identifier: BSD-3-Clause
// Role: collective calls of the ranks, compared: each rank tells what it calls, and all see when
// that does not match, where they would else wait for ever or go on with different answers.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/latch.hpp"
#include "gas/relocatable/space_messages.hpp"
#include "hiroba/gas.hpp"
#include "net/collectives.hpp"

namespace hiroba::gas {

/// What a rank calls together with the others. Travels as bytes.
struct CollectiveCall {
    enum class Kind : std::uint32_t { barrier, broadcast, allocate, free, leave };
    Kind kind = Kind::barrier;
    std::uint32_t root = 0;   ///< of broadcast
    std::uint64_t value = 0;  ///< of broadcast; of free: the address
    std::uint64_t count = 0, element_bytes = 0, block_bytes = 0;  ///< of allocate
    std::uint64_t where = 0;                                      ///< of allocate: distribution
    std::uint64_t open_page = 0;  ///< of free: one with a view of this rank; not compared

    static CollectiveCall allocate(std::uint64_t count, std::uint64_t element_bytes,
                                   const Distribution& where) noexcept;
    /// Returns the call with its arguments, as in a program's source, for a line that people read.
    std::string text() const;
    static constexpr std::size_t words = 7;
    /// Whether two ranks may call these together.
    bool matches(const CollectiveCall& other) const noexcept;
};

/// Thread: one at a time; announced() any.
///
/// A barrier stays as quick as net's: only the other calls tell the ranks what they are. Each rank
/// numbers its calls, so a rank in a barrier sees that another rank's call of the same number is
/// none.
class MatchedCalls {
public:
    MatchedCalls(net::Collectives& collectives, SpaceMessages& messages)
        : collectives_(collectives), messages_(messages) {}
    void attach(std::uint32_t rank, std::uint32_t ranks);

    /// Returns when all ranks have called it. Another call of a rank ends the job with a line.
    void barrier() noexcept;
    /// Meets all ranks. Other kinds or roots than this rank's end the job with a line. Different
    /// arguments of allocate and free come back as Fault::differs, on all ranks.
    Status meet(const CollectiveCall& mine) noexcept;
    /// After meet(): what `rank` called.
    const CollectiveCall& of(std::uint32_t rank) const noexcept { return all_[rank]; }
    /// The handler of SpaceMessageKind::calling. `words`: of a CollectiveCall.
    void announced(NodeId from, std::uint64_t number, SpaceMessages::Words words) noexcept;

private:
    struct Announced {
        std::uint64_t number = 0;
        CollectiveCall call;
    };
    void announce(const CollectiveCall& mine) noexcept;
    /// Ends the job if a rank has announced something else than the barrier this rank is in.
    void look_at_announced() noexcept;
    [[noreturn]] void end_job(std::uint32_t other) const noexcept;

    net::Collectives& collectives_;
    SpaceMessages& messages_;
    std::uint32_t rank_ = 0;
    std::uint64_t number_ = 0;  ///< of this rank's collective call
    std::vector<CollectiveCall> all_;
    /// The number of the barrier that this rank is in or was in last, and the greatest number
    /// announced. Each side stores its own, then loads the other's: one of them sees both.
    std::atomic<std::uint64_t> in_barrier_{0}, newest_{0};
    Latch latch_;
    std::vector<Announced> announced_;  ///< by rank
};

}  // namespace hiroba::gas
