// SPDX-License-Identifier: BSD-3-Clause
// Role: what calls of ACP's middle layer take beside copies of as many bytes to the same rank, each
// awaited before the next: the ratio is how many of these a call is worth. The structures lie on
// rank 1; rank 0 calls.
#include <vector>

#include "acp/data/buckets.hpp"
#include "acp/data/list.hpp"
#include "acp/data/sequence.hpp"
#include "tools/perf/acp_rank.hpp"
#include "tools/perf/tests.hpp"

namespace hiroba::tools::perf_parts {
namespace {

using acp::data::Buckets;
using acp::data::Call;
using acp::data::List;
using acp::data::Sequence;

constexpr std::uint64_t iterations_max = 1 << 14;
constexpr std::uint64_t kept_max = 64;  ///< elements or keys of a structure
constexpr std::int64_t home = 1;

template <class Value>
Value need(const Result<Value>& result) {
    if (!result) die(exit_environment, "%s", result.error().text.c_str());
    return *result;
}
void need(const Call& call) {
    if (!call.ok()) die(exit_environment, "%s", call.error().text.c_str());
}

/// `operation` on rank 0 beside a copy of the rig's bytes to the heap of rank 1.
template <class Operation>
Measured beside_copies(Rig& rig, AcpRank& rank, Operation&& operation) {
    const bool asks = rig.self() == 0;
    acp::Access copy;
    copy.src = rank.registered();
    copy.bytes = rig.bytes();
    if (asks) copy.dst = need(rank.node().allocate(rig.bytes(), home));
    const auto meet = [&] { rank.node().sync(); };
    const auto floor = [&](std::uint64_t n) {
        return timed(
            rig, n, [&] { rank.node().complete(rank.access(copy)); }, meet);
    };
    const auto test = [&](std::uint64_t n) { return timed(rig, n, operation, meet); };
    Measured measured = rig.alternate(floor, test, 8, iterations_max);
    measured.verified = true;
    return measured;
}

}  // namespace

Measured measure_acp_malloc(Rig& rig) {
    AcpRank rank{rig};
    std::uint64_t last = 0;
    Measured measured = beside_copies(rig, rank, [&] {
        last = need(rank.node().allocate(rig.bytes(), home));
        if (auto freed = rank.node().release(last); !freed)
            die(exit_environment, "%s", freed.error().text.c_str());
    });
    if (rig.self() == 0) measured.verified = need(rank.node().rank_of_address(last)) == home;
    return measured;
}

Measured measure_acp_vector(Rig& rig) {
    AcpRank rank{rig};
    std::uint64_t control = 0, pushed = 0;
    if (rig.self() == 0) {
        Call call(rank.node());
        control = Sequence::create(call, Sequence::Kind::vector, 0, home);
        need(call);
    }
    Measured measured = beside_copies(rig, rank, [&] {
        Call call(rank.node());
        Sequence vector(call, Sequence::Kind::vector, control);
        if (++pushed % kept_max == 0) vector.clear();
        vector.insert(vector.size(), rank.registered(), rig.bytes());
    });
    if (rig.self() != 0) return measured;
    Call call(rank.node());
    const Sequence vector(call, Sequence::Kind::vector, control);
    const std::uint64_t kept = pushed % kept_max + (pushed < kept_max ? 0 : 1);
    measured.verified = call.ok() && vector.size() == kept * rig.bytes();
    return measured;
}

Measured measure_acp_list(Rig& rig) {
    AcpRank rank{rig};
    std::uint64_t control = 0;
    if (rig.self() == 0) {
        Call call(rank.node());
        control = List::create(call, home);
        need(call);
    }
    Measured measured = beside_copies(rig, rank, [&] {
        Call call(rank.node());
        List list(call, control);
        list.insert(list.end(), {rank.registered(), rig.bytes()}, home);
        if (list.size() > kept_max) list.erase_one(list.first());
    });
    if (rig.self() != 0) return measured;
    Call call(rank.node());
    List list(call, control);
    measured.verified = call.ok() && list.size() <= kept_max && list.size() != 0 &&
                        list.extent(list.first()).bytes == rig.bytes();
    return measured;
}

namespace {

/// A map on rank 1, with the first kept_max numbers as keys.
Buckets::Handle make_map(Rig& rig, AcpRank& rank) {
    if (rig.self() != 0) return {};
    Call call(rank.node());
    const int ranks[] = {home};
    const Buckets::Handle handle = Buckets::create(call, ranks, 4 * kept_max, home);
    Buckets map(call, Buckets::Kind::map, handle);
    for (std::uint64_t key = 0; key < kept_max; ++key) {
        rank.own()[0] = key;
        map.insert({{rank.registered(), 8}, {rank.registered(), rig.bytes()}, 1});
    }
    need(call);
    return handle;
}

}  // namespace

Measured measure_acp_map_insert(Rig& rig) {
    AcpRank rank{rig};
    const Buckets::Handle handle = make_map(rig, rank);
    bool is_right = true;
    Measured measured = beside_copies(rig, rank, [&] {
        Call call(rank.node());
        Buckets map(call, Buckets::Kind::map, handle);
        rank.own()[0] = kept_max;
        is_right =
            map.insert({{rank.registered(), 8}, {rank.registered(), rig.bytes()}, 1}) && is_right;
        map.remove({rank.registered(), 8}, 1);
    });
    if (rig.self() != 0) return measured;
    Call call(rank.node());
    measured.verified =
        is_right && Buckets(call, Buckets::Kind::map, handle).size(false) == kept_max;
    return measured;
}

Measured measure_acp_map_find(Rig& rig) {
    AcpRank rank{rig};
    const Buckets::Handle handle = make_map(rig, rank);
    std::uint64_t asked = 0, found = 0;
    Measured measured = beside_copies(rig, rank, [&] {
        Call call(rank.node());
        Buckets map(call, Buckets::Kind::map, handle);
        rank.own()[0] = asked++ % kept_max;
        if (map.find({rank.registered(), 8}).element != 0) ++found;
    });
    measured.verified = found == asked;
    return measured;
}

Measured measure_acp_channel(Rig& rig) {
    AcpRank rank{rig};
    acp::Channels& channels = rank.node().channels();
    acp::Channels::Id there = 0, back = 0;
    if (rig.self() < 2) {
        there = need(rank.node().create_channel(0, 1));
        back = need(rank.node().create_channel(1, 0));
    }
    std::vector<std::byte> bytes(rig.bytes(), std::byte{7});
    std::uint64_t got = 0, asked = 0;
    const auto talk = [&](acp::Channels::Id request) {
        got += need(rank.node().wait_for_channel(request));
    };
    const auto ping = [&] {
        ++asked;
        talk(need(channels.send(there, bytes.data(), bytes.size())));
        talk(need(channels.receive(back, bytes.data(), bytes.size())));
    };
    // Rank 1 answers as often as rank 0 asks.
    const auto meet = [&] { rank.node().sync(); };
    acp::Access copy;
    copy.src = rank.registered();
    copy.bytes = rig.bytes();
    if (rig.self() == 0) copy.dst = need(rank.node().allocate(rig.bytes(), home));
    Measured measured = rig.alternate(
        [&](std::uint64_t n) {
            return timed(
                rig, n, [&] { rank.node().complete(rank.access(copy)); }, meet);
        },
        [&](std::uint64_t n) {
            for (std::uint64_t i = 0; rig.self() == 1 && i < n; ++i) {
                talk(need(channels.receive(there, bytes.data(), bytes.size())));
                talk(need(channels.send(back, bytes.data(), bytes.size())));
            }
            return timed(rig, n, ping, meet);
        },
        8, iterations_max);
    measured.verified = rig.self() != 0 || (got == asked * rig.bytes() && bytes[0] == std::byte{7});
    return measured;
}

}  // namespace hiroba::tools::perf_parts
