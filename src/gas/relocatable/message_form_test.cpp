// SPDX-License-Identifier: BSD-3-Clause
#include "gas/relocatable/message_form.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.hpp"

namespace hiroba::gas {
namespace {

constexpr SpaceShape shape{66, 12, 66 * 16};
constexpr std::uint64_t last_page = shape.pages() - 1;
using Words = std::vector<std::uint64_t>;

std::uint64_t word_of(std::uint16_t owner, std::uint16_t mover, std::uint32_t limit = 4096) {
    PageWord word;
    word.live = true;
    word.owner = owner;
    word.mover = mover;
    word.limit = limit;
    return word.pack();
}

struct Example {
    SpaceMessageKind kind;
    Words good;
    std::vector<Words> bad;
};

std::vector<Example> examples() {
    const std::uint64_t good = word_of(65, 65);
    const std::vector<Words> bad_waves = {{3},
                                          {tagged(3, 65), good, 4},
                                          {tagged(last_page + 1, 0), good},
                                          {tagged(3, 66), good},
                                          {tagged(3, 0), word_of(66, 0)},
                                          {tagged(3, 0), word_of(0, 66)},
                                          {tagged(3, 0), word_of(0, 0, 4097)}};
    const Words good_wave = {tagged(last_page, 65), good, tagged(0, 0), good};
    return {
        {SpaceMessageKind::ask, {tagged(last_page, 4095), 0}, {{0, last_page + 1}}},
        {SpaceMessageKind::claim, {last_page, 0}, {{last_page + 1}, {tagged(0, 1)}}},
        {SpaceMessageKind::join,
         {tagged(last_page, 65), 0},
         {{tagged(0, 66)}, {tagged(last_page + 1, 0)}}},
        {SpaceMessageKind::told,
         {tagged(last_page, 4095), good},
         {{0}, {last_page + 1, good}, {0, word_of(66, 0)}}},
        {SpaceMessageKind::granted,
         {last_page, good, ~0ull, 3},
         {{0, good, 0}, {last_page + 1, good, 0, 0}, {0, word_of(66, 0), 0, 0}}},
        {SpaceMessageKind::commit, {last_page, good}, bad_waves},
        {SpaceMessageKind::stop, good_wave, bad_waves},
        {SpaceMessageKind::move, good_wave, bad_waves},
        {SpaceMessageKind::resume, good_wave, bad_waves},
        {SpaceMessageKind::ready, {6, 1}, {{}, {6}, {6, 1, 0}}},
        {SpaceMessageKind::publish,
         {last_page, 1, 1, 2, 65, 1},
         {{0, 1, 1, 2, 0},
          {last_page, 2, 4097, 2, 0, 1},
          {last_page + 2, 1, 1, 2, 0, 1},
          {0, 0, 0, 2, 0, 1},
          {0, 2, 4096, 2, 0, 1},
          {0, 1, 1, 2, 66, 1},
          {0, 1, 1, 1, 0, 0}}},
        {SpaceMessageKind::published, {}, {{0}}},
        {SpaceMessageKind::calling,
         {4 | 65ull << 32, 0, 0, 0, 0, 0, 0},
         {{}, {4, 0, 0, 0, 0, 0}, {5, 0, 0, 0, 0, 0, 0}, {66ull << 32, 0, 0, 0, 0, 0, 0}}},
    };
}

TEST(MessageForm, tells_what_a_node_may_write_from_what_none_does) {
    for (const Example& example : examples()) {
        const auto kind = static_cast<unsigned>(example.kind);
        EXPECT_TRUE(is_well_formed(example.kind, example.good, shape)) << "kind " << kind;
        for (std::size_t i = 0; i < example.bad.size(); ++i) {
            EXPECT_FALSE(is_well_formed(example.kind, example.bad[i], shape))
                << "kind " << kind << ", bad message " << i;
        }
    }
    EXPECT_FALSE(is_well_formed(SpaceMessageKind{0}, {}, shape));
    EXPECT_FALSE(is_well_formed(SpaceMessageKind{14}, {}, shape));
}

/// Words of noise, and good messages with a bit turned, say nothing that is followed outside.
TEST(MessageForm, lets_no_noise_name_what_is_not_there) {
    Random random{20};
    const auto all = examples();
    std::size_t passed = 0;
    for (int i = 0; i < 200'000; ++i) {
        const Example& example = all[random.below(all.size())];
        Words words = example.good;
        if (words.empty() || random.happens(30)) {
            words.resize(random.below(9));
            for (std::uint64_t& word : words) word = random() >> random.below(64);
        } else {
            words[random.below(words.size())] ^= 1ull << random.below(64);
        }
        if (!is_well_formed(example.kind, words, shape)) continue;
        ++passed;
        const bool is_wave =
            example.kind >= SpaceMessageKind::stop && example.kind <= SpaceMessageKind::resume;
        for (std::size_t at = 0; is_wave && at < words.size(); at += 2) {
            ASSERT_LT(page_of(words[at]), shape.pages());
            ASSERT_LT(tag_of(words[at]), shape.nodes);
            ASSERT_LT(PageWord::unpack(words.at(at + 1)).owner, shape.nodes);
        }
    }
    EXPECT_GT(passed, 1000u);
}

}  // namespace
}  // namespace hiroba::gas
