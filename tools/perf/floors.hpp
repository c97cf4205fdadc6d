// SPDX-License-Identifier: BSD-3-Clause
// Role: what the machine itself takes, written with care and without any of hiroba's layers: bytes
// between mapped pages, or datagrams between sockets where nothing is mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "tools/perf/rig.hpp"

namespace hiroba::tools::perf_parts {

/// There and back between two partners, busily waited for.
class PingPong {
public:
    virtual ~PingPong() = default;
    /// The leader's share: gives and takes. @return after `iterations` round trips
    virtual void lead(std::uint64_t iterations) = 0;
    /// Its partner's.
    virtual void follow(std::uint64_t iterations) = 0;
};

/// The leader's share of a test that has give(number) and take(number).
template <class Test>
void lead_by_turns(Rig& rig, Test& test, std::uint64_t iterations) {
    for (std::uint64_t i = 0; i < iterations; ++i) {
        const std::uint64_t number = rig.next_number();
        test.give(number);
        test.take(number);
    }
}
/// Its partner's.
template <class Test>
void follow_by_turns(Rig& rig, Test& test, std::uint64_t iterations) {
    for (std::uint64_t i = 0; i < iterations; ++i) {
        const std::uint64_t number = rig.next_number();
        test.take(number);
        test.give(number);
    }
}

/// Over memory: writes `bytes` into the partner's landing area and watches its own. Over sockets:
/// datagrams of `there_bytes` and of `back_bytes`.
std::unique_ptr<PingPong> make_ping_pong(Rig& rig, std::size_t there_bytes, std::size_t back_bytes);

/// Every node gives `bytes` to every other and waits for theirs. Over memory two lines for each
/// pair, used in turn; over sockets one datagram to each.
class RawExchange {
public:
    virtual ~RawExchange() = default;
    /// One exchange; everybody's bytes are in `all`, in rank order. False: some were lost.
    virtual bool exchange(const std::byte* mine, std::byte* all) = 0;
};
std::unique_ptr<RawExchange> make_raw_exchange(Rig& rig, std::size_t bytes);

/// The first and the last eight bytes of `bytes` at `place` say `number` (one word of 8 bytes).
void mark(std::byte* place, std::size_t bytes, std::uint64_t number);
bool is_marked(const std::byte* place, std::size_t bytes, std::uint64_t number);

/// Copies as the floor of a put: eight bytes are one store.
inline void raw_copy(std::byte* to, const std::byte* from, std::size_t bytes) {
    if (bytes == 8) {
        std::uint64_t word;
        __builtin_memcpy(&word, from, 8);
        __builtin_memcpy(to, &word, 8);
        asm volatile("" ::: "memory");
    } else {
        __builtin_memcpy(to, from, bytes);
        asm volatile("" ::: "memory");
    }
}

}  // namespace hiroba::tools::perf_parts
