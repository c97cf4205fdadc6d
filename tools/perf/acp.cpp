// SPDX-License-Identifier: BSD-3-Clause
// Role: what the ACP layer takes beside the machine's own loads and stores where memory is mapped,
// else beside the operation of net that it stands for. Local ends are registered memory, as in
// programs. Rank 0 asks. The others wait inside whichever is measured, so that both find them
// polling.
#include <atomic>
#include <cstring>

#include "base/clock.hpp"
#include "tools/perf/acp_rank.hpp"
#include "tools/perf/done.hpp"
#include "tools/perf/floors.hpp"
#include "tools/perf/tests.hpp"

namespace hiroba::tools::perf_parts {
namespace {

constexpr std::uint64_t iterations_max = 1 << 16;

/// One access of ACP at a time beside the machine's own where memory is mapped, else beside one
/// request of net at a time.
/// @param bare  does the same by loads and stores in mapped memory
template <class Request, class Bare>
Measured beside_net(Rig& rig, AcpRank& rank, const acp::Access& access, Request&& request,
                    Bare&& bare) {
    Done done;
    std::uint64_t made = 0;
    const bool is_mapped = rig.mapped_landing(NodeId{1}) != nullptr;
    const auto floor = [&](std::uint64_t n) {
        if (is_mapped) return timed(rig, n, bare, [&] { rig.collectives().barrier(); });
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
constexpr std::uint64_t dst_offset = std::uint64_t{4096} * 8;

}  // namespace

Measured measure_acp_copy(Rig& rig) {
    AcpRank rank{rig};
    const acp::Access access =
        copy_of(rank.starter(1) + dst_offset, rank.registered(), rig.bytes());
    Measured measured = beside_net(
        rig, rank, access,
        [&](net::Callback done) {
            return rig.async().try_write(
                {NodeId{1}, {rig.source(), 0}, {rig.landing(), 0}, rig.bytes(), done});
        },
        [&] { raw_copy(rig.mapped_landing(NodeId{1}), rig.source_bytes(), rig.bytes()); });
    rank.own()[rig.bytes() / 8 - 1] = 77;
    if (rig.self() == 0) rank.node().complete(rank.access(access));
    rank.node().sync();
    measured.verified = rig.self() != 1 || rank.words()[4096 + rig.bytes() / 8 - 1] == 77;
    return measured;
}

Measured measure_acp_sync(Rig& rig) {
    AcpRank rank{rig};
    std::uint64_t met = 0;
    const auto timed_by_all = [&](std::uint64_t n, auto&& meet) {
        const std::uint64_t begun_ns = now_ns();
        for (std::uint64_t i = 0; i < n; ++i) meet();
        return static_cast<double>(now_ns() - begun_ns) / static_cast<double>(n);
    };
    Measured measured = rig.alternate(
        [&](std::uint64_t n) { return timed_by_all(n, [&] { rig.collectives().barrier(); }); },
        [&](std::uint64_t n) {
            met += n;
            return timed_by_all(n, [&] { rank.node().sync(); });
        },
        8, iterations_max);
    // No rank leaves before all have come: each tells rank 0 how often it came, before the last.
    acp::Access access = copy_of(rank.registered(), rank.starter(0), 8);
    access.is_atomic = true;
    access.op = net::AtomicOp::fetch_add;
    access.width = 8;
    access.operand = met;
    rank.node().complete(rank.access(access));
    rank.node().sync();
    measured.verified = rig.self() != 0 || rank.words()[0] == met * rig.plan().nodes;
    rank.node().sync();
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
    acp::Access access = copy_of(rank.registered(), rank.starter(1), 8);
    access.is_atomic = true;
    access.op = net::AtomicOp::fetch_add;
    access.width = 8;
    access.operand = 1;
    Measured measured = beside_net(
        rig, rank, access,
        [&](net::Callback done) {
            return rig.async().try_atomic({NodeId{1},
                                           {rig.landing(), 0},
                                           net::AtomicOp::fetch_add,
                                           8,
                                           1,
                                           0,
                                           {rig.source(), 0},
                                           done});
        },
        [&] {
            auto* const word = reinterpret_cast<std::uint64_t*>(rig.mapped_landing(NodeId{1}));
            const std::uint64_t old = std::atomic_ref(*word).fetch_add(1);
            std::memcpy(rig.source_bytes(), &old, sizeof old);
        });
    // Each found what the one before had left: the last old value is the count of the others.
    rank.node().sync();
    if (rig.self() == 0) {
        const std::uint64_t before = rank.own()[0];
        rank.node().complete(rank.access(access));
        measured.verified = before > 0 && rank.own()[0] == before + 1;
    } else {
        measured.verified = true;
    }
    return measured;
}

Measured measure_acp_third_party(Rig& rig) {
    AcpRank rank{rig};
    const acp::Access access = copy_of(rank.starter(2) + dst_offset, rank.starter(1), rig.bytes());
    Measured measured = beside_net(
        rig, rank, access,
        [&](net::Callback done) {
            return rig.async().try_read(
                {NodeId{1}, {rig.landing(), 0}, {rig.source(), 0}, rig.bytes(), done});
        },
        [&] {
            raw_copy(rig.mapped_landing(NodeId{2}), rig.mapped_landing(NodeId{1}), rig.bytes());
        });
    measured.verified = arrives(rank, access, 1, 2);
    return measured;
}

}  // namespace hiroba::tools::perf_parts
