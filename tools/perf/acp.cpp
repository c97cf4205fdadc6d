// SPDX-License-Identifier: BSD-3-Clause
// Role: what the ACP layer takes beside the operation of net that it stands for.
// Rank 0 asks. The others wait inside whichever is measured, so that both find them polling.
#include <atomic>
#include <cstring>

#include "acp/node.hpp"
#include "base/clock.hpp"
#include "tools/perf/done.hpp"
#include "tools/perf/tests.hpp"

namespace hiroba::tools::perf_parts {
namespace {

constexpr std::uint64_t iterations_max = 1 << 16;

/// A rank of ACP beside the rig's own end of the communication.
class AcpRank {
public:
    explicit AcpRank(Rig& rig) {
        auto opened = acp::Node::open(rig.job(), rig.control(), {});
        if (!opened) die(exit_environment, "%s", opened.error().text.c_str());
        node_ = std::move(*opened);
    }
    ~AcpRank() {
        if (auto left = node_->leave(); !left)
            die(exit_environment, "%s", left.error().text.c_str());
    }
    acp::Node& node() { return *node_; }
    /// Starter memory; this rank's, as words.
    std::uint64_t starter(std::uint32_t rank) const { return *node_->starter_address(rank); }
    std::uint64_t* words() {
        return static_cast<std::uint64_t*>(*node_->local(starter(node_->rank())));
    }
    std::int64_t access(const acp::Access& access) {
        const std::int64_t handle = node_->try_access(access, acp::handle_null);
        if (handle == 0) [[unlikely]]
            fatal("an access of the measurement was refused");
        return handle;
    }

private:
    std::unique_ptr<acp::Node> node_;
};

/// Nanoseconds of one `operation` on rank 0; on the others 0. `meet` is where the others wait.
template <class Operation, class Meet>
double timed(Rig& rig, std::uint64_t iterations, Operation&& operation, Meet&& meet) {
    double spent_ns = 0;
    if (rig.self() == 0) {
        const std::uint64_t begun_ns = now_ns();
        for (std::uint64_t i = 0; i < iterations; ++i) operation();
        spent_ns = static_cast<double>(now_ns() - begun_ns);
    }
    meet();
    return spent_ns / static_cast<double>(iterations);
}

/// One access of ACP at a time beside one request of net at a time.
template <class Request>
Measured beside_net(Rig& rig, AcpRank& rank, const acp::Access& access, Request&& request) {
    Done done;
    std::uint64_t made = 0;
    const auto floor = [&](std::uint64_t n) {
        const auto one = [&] {
            insist(rig, [&] { return request(done.callback()); });
            done.wait_for(rig, ++made);
        };
        return timed(rig, n, one, [&] { rig.collectives().barrier(); });
    };
    const auto test = [&](std::uint64_t n) {
        const auto one = [&] { rank.node().complete(rank.access(access)); };
        return timed(rig, n, one, [&] { rank.node().sync(); });
    };
    return rig.alternate(floor, test, 8, iterations_max);
}

acp::Access copy_of(std::uint64_t dst, std::uint64_t src, std::uint64_t bytes) {
    acp::Access access;
    access.dst = dst;
    access.src = src;
    access.bytes = bytes;
    return access;
}

/// Lets rank 0 and `to` compare a pattern that one access brings from `from`.
bool arrives(AcpRank& rank, const acp::Access& access, std::uint32_t from, std::uint32_t to) {
    constexpr std::uint64_t pattern = 0x0123456789abcdef;
    const std::uint64_t last = access.bytes / 8 - 1;
    if (rank.node().rank() == from) rank.words()[last] = pattern;
    if (rank.node().rank() == to) rank.words()[4096 + last] = 0;
    rank.node().sync();
    if (rank.node().rank() == 0) rank.node().complete(rank.access(access));
    rank.node().sync();
    return rank.node().rank() != to || rank.words()[4096 + last] == pattern;
}

/// Destinations lie behind the sources; 32 KiB each.
constexpr std::uint64_t dst_offset = 4096 * 8;

}  // namespace

Measured measure_acp_copy(Rig& rig) {
    AcpRank rank{rig};
    const acp::Access access = copy_of(rank.starter(1) + dst_offset, rank.starter(0), rig.bytes());
    Measured measured = beside_net(rig, rank, access, [&](net::Callback done) {
        return rig.async().try_write(
            {NodeId{1}, {rig.source(), 0}, {rig.landing(), 0}, rig.bytes(), done});
    });
    measured.verified = arrives(rank, access, 0, 1);
    return measured;
}

Measured measure_acp_copies(Rig& rig) {
    constexpr std::uint64_t together = 64;
    AcpRank rank{rig};
    const acp::Access access = copy_of(rank.starter(1) + dst_offset, rank.starter(0), rig.bytes());
    const auto sync = [&] { rank.node().sync(); };
    const auto floor = [&](std::uint64_t n) {
        return timed(
            rig, n, [&] { rank.node().complete(rank.access(access)); }, sync);
    };
    const auto test = [&](std::uint64_t n) {
        const auto many = [&] {
            for (std::uint64_t i = 0; i < together; ++i) rank.access(access);
            rank.node().complete(acp::handle_all);
        };
        return timed(rig, n, many, sync);
    };
    Measured measured = rig.alternate(floor, test, 8, iterations_max);
    measured.verified = arrives(rank, access, 0, 1);
    return measured;
}

Measured measure_acp_add8(Rig& rig) {
    AcpRank rank{rig};
    acp::Access access = copy_of(rank.starter(0), rank.starter(1), 8);
    access.is_atomic = true;
    access.op = net::AtomicOp::fetch_add;
    access.width = 8;
    access.operand = 1;
    Measured measured = beside_net(rig, rank, access, [&](net::Callback done) {
        return rig.async().try_atomic({NodeId{1},
                                       {rig.landing(), 0},
                                       net::AtomicOp::fetch_add,
                                       8,
                                       1,
                                       0,
                                       {rig.source(), 0},
                                       done});
    });
    // Each found what the one before had left: the last old value is the count of the others.
    rank.node().sync();
    if (rig.self() == 0) {
        const std::uint64_t before = rank.words()[0];
        rank.node().complete(rank.access(access));
        measured.verified = before > 0 && rank.words()[0] == before + 1;
    } else {
        measured.verified = true;
    }
    return measured;
}

Measured measure_acp_third_party(Rig& rig) {
    AcpRank rank{rig};
    const acp::Access access = copy_of(rank.starter(2) + dst_offset, rank.starter(1), rig.bytes());
    Measured measured = beside_net(rig, rank, access, [&](net::Callback done) {
        return rig.async().try_read(
            {NodeId{1}, {rig.landing(), 0}, {rig.source(), 0}, rig.bytes(), done});
    });
    measured.verified = arrives(rank, access, 1, 2);
    return measured;
}

}  // namespace hiroba::tools::perf_parts
