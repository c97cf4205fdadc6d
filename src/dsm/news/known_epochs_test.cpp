// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/news/known_epochs.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace hiroba::dsm {
namespace {

constexpr NodeId self{0}, other{1}, third{2};

std::vector<std::byte> told(const KnownEpochs& by) {
    std::vector<std::byte> news(by.bytes());
    EXPECT_EQ(by.encode(news), news.size());
    return news;
}

TEST(KnownEpochs, what_a_node_did_itself_is_known) {
    KnownEpochs epochs{3, self};
    EXPECT_TRUE(epochs.is_known({self, 99}));
    EXPECT_FALSE(epochs.is_known({other, KnownEpochs::first_epoch}));
    EXPECT_TRUE(epochs.is_known({other, 0}));
}

TEST(KnownEpochs, news_tell_of_epochs_that_have_ended_here) {
    KnownEpochs teller{3, other}, listener{3, self};
    const LastChange change = teller.this_change();
    teller.end_epoch();
    listener.learn(told(teller));
    EXPECT_TRUE(listener.has_learned());
    EXPECT_FALSE(listener.is_known(change)) << "the program has not synchronized yet";
    listener.take_learned();
    EXPECT_FALSE(listener.has_learned());
    EXPECT_TRUE(listener.is_known(change));
    EXPECT_FALSE(listener.is_known(teller.this_change()));
}

TEST(KnownEpochs, what_a_third_node_did_is_handed_on) {
    KnownEpochs writer{3, third}, between{3, other}, listener{3, self};
    const LastChange change = writer.this_change();
    writer.end_epoch();
    between.learn(told(writer));
    listener.learn(told(between));
    EXPECT_FALSE(listener.has_learned()) << "the one between has not synchronized";
    between.take_learned();
    listener.learn(told(between));
    listener.take_learned();
    EXPECT_TRUE(listener.is_known(change));
}

TEST(KnownEpochs, what_was_flushed_is_kept_apart_and_handed_on) {
    KnownEpochs teller{3, other}, flusher{3, self};
    const LastChange change = teller.this_change();
    teller.end_epoch();
    flusher.remember_flushed(told(teller));
    EXPECT_FALSE(flusher.is_known(change));
    std::vector<std::byte> news = told(flusher);
    flusher.keep_flushed(news);
    KnownEpochs next{3, third};
    next.remember_flushed(news);
    next.know_what_was_flushed();
    EXPECT_TRUE(next.is_known(change));
    flusher.know_what_was_flushed();
    EXPECT_TRUE(flusher.is_known(change));
}

TEST(KnownEpochs, none_are_kept_where_races_are_not_looked_for) {
    KnownEpochs epochs{0, self};
    EXPECT_FALSE(epochs.are_kept());
    EXPECT_EQ(epochs.bytes(), 0u);
    epochs.learn({});
    EXPECT_FALSE(epochs.has_learned());
}

}  // namespace
}  // namespace hiroba::dsm
