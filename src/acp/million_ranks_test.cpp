// SPDX-License-Identifier: BSD-3-Clause
// What one rank of a million holds above the provider, when it talks to sixteen. The provider here
// has no network: it carries commands out itself, as the ranks asked would.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdio>
#include <cstring>
#include <deque>

#include "acp/command_station.hpp"
#include "gas/delegation_record.hpp"
#include "gas/messages.hpp"
#include "net/kick/kick.hpp"
#include "net/test_parts/idle_provider.hpp"

namespace hiroba::acp {
namespace {

constexpr std::uint32_t ranks = gas::AddressLayout::nodes_max;
using Kind = gas::DelegationRecord::Kind;

/// Answers every question with "done", and remembers what was put.
class AnsweringProvider final : public net::test::IdleProvider {
public:
    AnsweringProvider()
        : IdleProvider({.name = "answering",
                        .message_bytes_max = 65536,
                        .completes_inline = false,
                        .parallel = false,
                        .maps_peers = false}) {}
    Result<net::RegionId> allocate(std::size_t bytes) override {
        memory_.emplace_back(bytes);
        return net::RegionId{static_cast<std::uint32_t>(memory_.size() - 1)};
    }
    MutableBytes local(net::RegionId region) noexcept override { return memory_[region.value]; }
    net::Post send(NodeId to, net::MessageKind, net::Urgency,
                   std::span<const Bytes> parts) noexcept override {
        Bytes body = parts[0];
        while (!body.empty()) {
            gas::DelegationRecord record;
            Bytes data;
            if (!decode_record(body, record, data)) break;
            if (record.kind == Kind::put) std::memcpy(&last_put, data.data(), sizeof last_put);
            record.kind = Kind::done;
            answers_.push_back({to, record});
        }
        return net::Post::posted;
    }
    std::size_t poll(net::Arrivals& arrivals, std::size_t) noexcept override {
        if (answers_.empty()) return 0;
        const Answer answer = answers_.front();
        answers_.pop_front();
        arrivals.message(answer.from, gas::message::delegation,
                         gas::EncodedRecord(answer.record).bytes());
        return 1;
    }
    std::uint64_t last_put = 0;

private:
    struct Answer {
        NodeId from;
        gas::DelegationRecord record;
    };
    std::deque<std::vector<std::byte>> memory_;
    std::deque<Answer> answers_;
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool has_shadow_memory = true;  // of a sanitizer, resident as well
#else
constexpr bool has_shadow_memory = false;
#endif

/// Private memory that is resident, in KiB.
long resident_kib() {
    long kib = 0;
    char line[200];
    std::FILE* const file = std::fopen("/proc/self/status", "r");
    while (std::fgets(line, sizeof line, file) != nullptr) {
        if (std::sscanf(line, "RssAnon: %ld", &kib) == 1) break;
    }
    std::fclose(file);
    return kib;
}

TEST(MillionRanks, TalkingToSixteenTakesLittleMemory) {
    resident_kib();
    malloc_trim(0);
    const long before = resident_kib();
    auto made = std::make_unique<AnsweringProvider>();
    AnsweringProvider& provider = *made;
    auto endpoint = net::Endpoint::over(NodeId{5}, ranks, std::move(made));
    auto starter = gas::Segment::allocate(*endpoint, 1024);
    ASSERT_TRUE(starter);
    gas::GlobalMemory memory(NodeId{5}, ranks, std::move(*starter));
    struct Here {
        CommandStation station;
        gas::Delegate* delegate = nullptr;
    } here{CommandStation(*endpoint, 0)};
    gas::Delegate delegate(*endpoint, memory,
                           {&here,
                            [](void* context, std::uint64_t token, std::uint64_t bytes) noexcept {
                                auto& it = *static_cast<Here*>(context);
                                it.station.finished(*it.delegate, token, bytes);
                            },
                            [](void*, const gas::RefusedAccess&) noexcept {}});
    here.delegate = &delegate;
    auto board = net::kick::Board::create(*endpoint, 1, page_bytes);
    ASSERT_TRUE(board && net::kick::Barrier::reserve(**board));
    memory.attach();
    (*board)->attach();
    ASSERT_TRUE(net::kick::Barrier::open(**board, 0));

    auto* const word = reinterpret_cast<std::uint64_t*>(memory.symmetric().local());
    for (std::uint64_t i = 0; i < 10'000; ++i) {
        const NodeId to{static_cast<std::uint32_t>(i % 16 * 65'521 + 7)};
        *word = i;
        Access access;
        access.dst = memory.symmetric_address(to);
        access.src = memory.symmetric_address(NodeId{5});
        access.bytes = 8;
        const std::uint64_t handle =
            here.station.submit(delegate, access, memory.resolve(access.dst, 8),
                                memory.resolve(access.src, 8), Order{});
        here.station.complete(delegate, handle);
        ASSERT_EQ(provider.last_put, i);
    }
    const long used = resident_kib() - before;
    std::printf("%ld KiB resident of %u ranks, 16 of them talked to\n", used, ranks);
    EXPECT_TRUE(has_shadow_memory || used < 2 * 1024) << used;
}

}  // namespace
}  // namespace hiroba::acp
