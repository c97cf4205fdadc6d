// SPDX-License-Identifier: BSD-3-Clause
#include "base/program_call.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace hiroba {
namespace {

struct Seen {
    std::uintptr_t frame = 0;
    void* argument = nullptr;
    bool by_program = false;
};

[[gnu::noinline]] void look(void* at) {
    auto& seen = *static_cast<Seen*>(at);
    seen.argument = at;
    seen.by_program = is_program_call(__builtin_return_address(0));
    volatile char here = 0;
    seen.frame = reinterpret_cast<std::uintptr_t>(&here);
}

TEST(ProgramCall, apart_begins_below_the_blocks_of_its_callers) {
    for (const std::size_t block_bytes : {4096ul, 16384ul}) {
        const auto mine = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
        Seen seen;
        call_program_apart(&look, static_cast<void*>(&seen), block_bytes);
        EXPECT_EQ(seen.argument, &seen);
        EXPECT_TRUE(seen.by_program);
        EXPECT_LT(seen.frame / block_bytes, reinterpret_cast<std::uintptr_t>(&seen) / block_bytes);
        EXPECT_LT(mine - seen.frame, 2 * block_bytes + 4096) << "no more of the stack than that";
    }
}

}  // namespace
}  // namespace hiroba
