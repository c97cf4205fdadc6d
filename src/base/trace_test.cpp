// SPDX-License-Identifier: BSD-3-Clause
#include "base/trace.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "base/thread_context.hpp"

namespace hiroba {
namespace {

class Trace : public testing::Test {
protected:
    ~Trace() override { set_trace(false); }
};

/// Runs `body` in a thread of its own and returns what its ring held at the end.
template <class Body>
TraceRing ring_of_thread(Body body) {
    TraceRing ring;
    std::thread thread{[&] {
        body();
        ring = *this_thread().trace;
    }};
    thread.join();
    return ring;
}

TEST_F(Trace, RecordsNothingWhileOff) {
    const TraceRing ring = ring_of_thread([] { trace("tag", 1, 2); });
    EXPECT_EQ(ring.count, 0u);
}

TEST_F(Trace, KeepsTheLastRecordsOfManyInOrder) {
    set_trace(true);
    const TraceRing ring = ring_of_thread([] {
        for (std::uint64_t i = 0; i < 1000; ++i) trace("tag", i, 2 * i);
    });
    ASSERT_EQ(ring.count, 1000u);
    std::uint64_t time_ns = 0;
    for (std::uint64_t i = 1000 - trace_records_max; i < 1000; ++i) {
        const TraceRecord& record = ring.records[i % trace_records_max];
        EXPECT_STREQ(record.tag, "tag");
        EXPECT_EQ(record.first, i);
        EXPECT_EQ(record.second, 2 * i);
        EXPECT_GE(record.time_ns, time_ns);
        time_ns = record.time_ns;
    }
}

TEST_F(Trace, KeepsThreadsApart) {
    set_trace(true);
    trace("here");
    const TraceRing ring = ring_of_thread([] { trace("there"); });
    EXPECT_EQ(ring.count, 1u);
    EXPECT_STREQ(ring.records[0].tag, "there");
}

}  // namespace
}  // namespace hiroba
