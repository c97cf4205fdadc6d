// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/block/sealed_chunks.hpp"

#include <gtest/gtest.h>

namespace hiroba::dsm {
namespace {

TEST(SealedChunks, what_was_to_be_written_is_never_sealed) {
    SealedChunks chunks{100, 8};
    EXPECT_TRUE(chunks.lets_writes(17));
    EXPECT_FALSE(chunks.is_fresh(16));
    EXPECT_FALSE(chunks.begin_seal(23));
    EXPECT_TRUE(chunks.begin_seal(24)) << "another chunk";
}

TEST(SealedChunks, a_sealed_chunk_lets_no_write_until_it_is_open) {
    SealedChunks chunks{100, 8};
    ASSERT_TRUE(chunks.begin_seal(9));
    EXPECT_FALSE(chunks.begin_seal(10));
    EXPECT_FALSE(chunks.is_sealed(9)) << "its pages may be written yet";
    EXPECT_FALSE(chunks.lets_writes(9));
    chunks.end_seal(9, true);
    EXPECT_TRUE(chunks.is_sealed(15));
    EXPECT_FALSE(chunks.lets_writes(15));
    chunks.begin_open(15);
    EXPECT_FALSE(chunks.is_sealed(8)) << "no block comes without a twin any more";
    EXPECT_FALSE(chunks.lets_writes(8)) << "some lack theirs";
    chunks.open(15);
    EXPECT_TRUE(chunks.lets_writes(8));
    EXPECT_FALSE(chunks.begin_seal(8));
}

TEST(SealedChunks, a_chunk_that_could_not_be_sealed_is_open) {
    SealedChunks chunks{100, 8};
    ASSERT_TRUE(chunks.begin_seal(99));
    chunks.end_seal(99, false);
    EXPECT_FALSE(chunks.is_sealed(99));
    EXPECT_TRUE(chunks.lets_writes(99));
}

}  // namespace
}  // namespace hiroba::dsm
