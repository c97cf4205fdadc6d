// SPDX-License-Identifier: BSD-3-Clause
// Role: calls on pages are counted, one each, and cost what a test asks for.
#include "dsm/memory/page_calls.hpp"

#include <gtest/gtest.h>

namespace hiroba::dsm {
namespace {

std::uint64_t time_of(PageCalls& calls, void (*what)(PageCalls&)) {
    const std::uint64_t begin = now_ns();
    what(calls);
    return now_ns() - begin;
}

TEST(PageCalls, AreCountedAndDearerByWhatIsAskedFor) {
    PageCalls calls;
    calls.note_call();
    calls.note_fault();
    EXPECT_EQ(calls.count(), 1u);
    calls.make_dearer(2'000'000, 3'000'000);
    EXPECT_GE(time_of(calls, [](PageCalls& each) { each.note_call(); }), 2'000'000u);
    EXPECT_GE(time_of(calls, [](PageCalls& each) { each.note_fault(); }), 3'000'000u);
    EXPECT_EQ(calls.count(), 2u);
}

}  // namespace
}  // namespace hiroba::dsm
