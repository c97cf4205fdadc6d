// SPDX-License-Identifier: BSD-3-Clause
#include "sim/acp/acp_rank.hpp"

#include "base/fatal.hpp"

namespace hiroba::sim_test {
namespace {

gas::Segment starter_of(net::Endpoint& endpoint, std::uint64_t bytes) {
    auto segment = gas::Segment::allocate(endpoint, bytes);
    if (!segment) fatal("%s", segment.error().text.c_str());
    return std::move(*segment);
}

}  // namespace

AcpRank::AcpRank(std::unique_ptr<net::Endpoint> endpoint, std::uint64_t starter_bytes)
    : endpoint_(std::move(endpoint)),
      memory_(endpoint_->self(), endpoint_->nodes(), starter_of(*endpoint_, starter_bytes)),
      delegate_(*endpoint_, memory_,
                {this,
                 [](void* context, std::uint64_t token, std::uint64_t bytes) noexcept {
                     auto& rank = *static_cast<AcpRank*>(context);
                     rank.station_.finished(rank.delegate_, token, bytes);
                 },
                 [](void*, const gas::RefusedAccess& access) noexcept {
                     fatal("an access of rank %u to 0x%lx %s", access.origin.value, access.address,
                           access.why);
                 }}),
      station_(*endpoint_, 0) {}

bool AcpRank::connect() {
    if (!endpoint_->connect()) return false;
    memory_.attach();
    return true;
}

std::uint64_t AcpRank::submit(const acp::Access& access, acp::Order order) {
    return station_.submit(delegate_, access, memory_.resolve(access.dst, access.bytes),
                           memory_.resolve(access.src, access.bytes), order);
}

std::uint64_t AcpRank::copy(std::uint64_t dst, std::uint64_t src, std::uint64_t bytes,
                            acp::Order order) {
    acp::Access access;
    access.dst = dst;
    access.src = src;
    access.bytes = bytes;
    return submit(access, order);
}

std::string run_acp_job(net::sim::FiberStacks& stacks, const AcpJob& what) {
    SimJob job{stacks, what.ranks, what.scheduling, what.wire};
    std::vector<std::unique_ptr<AcpRank>> ranks(what.ranks);
    std::uint32_t running = what.ranks;
    bool met = true;
    const auto outcome = job.run([&](NodeId self) {
        ranks[self.value] = std::make_unique<AcpRank>(job.open(self), what.starter_bytes);
        AcpRank& mine = *ranks[self.value];
        met = mine.connect() && met;
        job.gather(self, {});
        if (!met) return;
        if (self == NodeId{0} && what.prepare) what.prepare(ranks);
        job.gather(self, {});
        job.scheduler().spawn(self, [&, self] {
            what.program(self.value, mine);
            if (--running != 0) return;
            for (const auto& each : ranks) each->endpoint().stop();
        });
        mine.endpoint().serve();
    });
    if (!met) return "the ranks did not meet";
    return outcome == net::sim::Scheduler::Outcome::ended ? "" : outcome_name(outcome);
}

std::uint64_t SlowWays::delay_ns(std::uint64_t what) {
    if (before_each_step) before_each_step();
    // A packet is told apart by the pair of its nodes, 24 bits up (network.cpp); a turn by the
    // highest bit.
    const bool is_packet = what >> 63 == 0;
    const std::uint64_t from = what >> 56 & 0x7f, to = what >> 24 & 0xff;
    if (!is_packet || from > 7 || to > 7 || (slow_ & bit(from, to)) == 0) return 0;
    std::uint32_t& held = held_[what];
    if (held != 0) {
        --held;
        return 0;
    }
    ++held;
    return hold_ns_;
}

}  // namespace hiroba::sim_test
