// SPDX-License-Identifier: BSD-3-Clause
// Role: the transitions of an entry, in the orders that messages can come in.
#include "gas/relocatable/metadata_cache.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <functional>
#include <thread>

namespace hiroba::gas {
namespace {

/// Node 1 of three; pages of nodes 0 and 1 are within reach.
class MetadataCacheTest : public testing::Test {
protected:
    MetadataCacheTest() : shape_{3, 12, 48} {
        cache_ = std::move(*MetadataCache::make(shape_, NodeId{1}, dead_));
        const std::size_t bytes = shape_.pages() << shape_.page_shift;
        for (std::byte*& base : bases_) {
            base = static_cast<std::byte*>(
                mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        }
        cache_->attach({bases_[0], bases_[1], nullptr}, 0);
    }
    ~MetadataCacheTest() override {
        for (std::byte* base : bases_) munmap(base, shape_.pages() << shape_.page_shift);
    }
    PageState state() const { return cache_->word(page).state; }
    CachedPage& entry() { return cache_->table()[page]; }
    /// As told by the directory node: owned by node 0.
    void become_live() {
        const auto token = cache_->begin_ask(page);
        cache_->told(page, *token, word(0, 5));
    }
    static PageWord word(std::uint8_t owner, std::uint32_t version, std::uint8_t mover = 0) {
        return {true, false, false, false, owner, mover, 4096, version};
    }

    static constexpr std::uint64_t page = 7;
    SpaceShape shape_;
    DeadNodes dead_;
    std::unique_ptr<MetadataCache> cache_;
    std::byte* bases_[2] = {};
};

TEST_F(MetadataCacheTest, lets_hits_go_where_the_owner_is) {
    EXPECT_EQ(entry().reads.load(), nullptr);
    become_live();
    EXPECT_EQ(entry().reads.load(), bases_[0] + page * 4096);
    EXPECT_EQ(entry().writes.load(), bases_[0] + page * 4096);
    EXPECT_FALSE(cache_->begin_ask(page));  // there is nothing to ask
}

/// Says of each page what it is told to say, at once.
class ToldDirectory final : public Directory {
public:
    std::optional<PageWord> look(std::uint64_t) noexcept override {
        ++looks;
        if (meanwhile) meanwhile();
        return word;
    }
    void ask(std::span<const AskedPage>) override {}
    std::vector<std::uint64_t> claim(std::uint64_t, std::span<const std::uint64_t>) override {
        return {};
    }
    void commit(std::span<const CommittedPage>) override {}

    std::optional<PageWord> word;
    int looks = 0;
    std::function<void()> meanwhile;
};

TEST_F(MetadataCacheTest, learns_of_a_page_only_while_nothing_is_known_of_it) {
    ToldDirectory directory;
    EXPECT_FALSE(cache_->learn(page, directory));  // it moves, or is not allocated
    EXPECT_EQ(state(), PageState::unknown);
    directory.word = word(0, 5);
    EXPECT_TRUE(cache_->learn(page, directory));
    EXPECT_EQ(entry().writes.load(), bases_[0] + page * 4096);
    EXPECT_EQ(cache_->limit(page), 4096u);
    cache_->stop(page, word(2, 6, 2), 0);
    EXPECT_FALSE(cache_->learn(page, directory));
    EXPECT_EQ(state(), PageState::stopped);
    EXPECT_EQ(directory.looks, 2);
}

TEST_F(MetadataCacheTest, learns_of_a_page_anew_and_drops_the_answer_to_an_abandoned_question) {
    ToldDirectory directory;
    directory.word = word(0, 5);
    const auto token = cache_->begin_ask(page);
    EXPECT_FALSE(cache_->learn(page, directory));  // another thread has asked
    cache_->abandon(page);
    EXPECT_TRUE(cache_->learn(page, directory));
    cache_->forget(page);
    EXPECT_NE(cache_->begin_ask(page), token);
    cache_->told(page, *token, word(2, 4));
    EXPECT_EQ(state(), PageState::asking);
}

TEST_F(MetadataCacheTest, does_not_learn_what_was_freed_while_it_looked) {
    ToldDirectory directory;
    directory.word = word(0, 5);
    PageWord freed = word(0, 6, 2);
    freed.live = false;
    std::atomic<bool> over{false};
    std::thread mover;
    directory.meanwhile = [&] {
        mover = std::thread{[&] {
            cache_->stop(page, freed, 0);
            cache_->move(page, freed, 0);
            cache_->resume(page, freed, 0);
            over.store(true);
        }};
        // The mover cannot be through, because this thread holds the latch. The loop gives it time
        // to go wrong.
        for (int i = 0; i < 1000 && !over.load(); ++i) std::this_thread::yield();
    };
    EXPECT_TRUE(cache_->learn(page, directory));
    mover.join();
    EXPECT_EQ(state(), PageState::unknown);
}

TEST_F(MetadataCacheTest, loses_a_learnt_page_with_its_owner) {
    ToldDirectory directory;
    directory.word = word(0, 5);
    EXPECT_TRUE(cache_->learn(page, directory));
    dead_.add(NodeId{0});
    cache_->lose();
    EXPECT_EQ(state(), PageState::lost);
}

TEST_F(MetadataCacheTest, holds_writes_back_and_reads_on_while_a_page_moves) {
    become_live();
    cache_->stop(page, word(1, 6, 1), 0);
    EXPECT_EQ(entry().writes.load(), nullptr);
    EXPECT_EQ(entry().reads.load(), bases_[0] + page * 4096);
    cache_->move(page, word(1, 6, 1), 0);
    EXPECT_EQ(entry().writes.load(), nullptr);
    EXPECT_EQ(entry().reads.load(), bases_[1] + page * 4096);
    cache_->resume(page, word(1, 6, 1), 0);
    EXPECT_EQ(entry().writes.load(), bases_[1] + page * 4096);
}

TEST_F(MetadataCacheTest, is_not_drained_while_an_access_of_before_is_under_way) {
    become_live();
    CacheWord now;
    ASSERT_TRUE(cache_->begin_write(page, now));
    ASSERT_TRUE(cache_->begin_read(page, now));
    cache_->stop(page, word(2, 6, 2), 0);
    EXPECT_FALSE(cache_->writes_drained(page));
    CacheWord held;
    EXPECT_FALSE(cache_->begin_write(page, held));  // and it does not hold the mover up
    cache_->end_write(page);
    EXPECT_TRUE(cache_->writes_drained(page));
    cache_->move(page, word(2, 6, 2), 0);
    EXPECT_FALSE(cache_->reads_drained(page));
    CacheWord later;
    ASSERT_TRUE(cache_->begin_read(page, later));  // of the new copy
    cache_->end_read(page, now.version);
    EXPECT_TRUE(cache_->reads_drained(page));
}

TEST_F(MetadataCacheTest, drops_an_answer_that_a_mover_overtook) {
    const auto token = cache_->begin_ask(page);
    cache_->stop(page, word(2, 6, 2), 0);
    EXPECT_EQ(state(), PageState::stopped);
    cache_->told(page, *token, word(0, 5));
    EXPECT_EQ(state(), PageState::stopped);
}

TEST_F(MetadataCacheTest, drops_an_answer_to_an_earlier_question) {
    const auto first = cache_->begin_ask(page);
    cache_->abandon(page);
    const auto second = cache_->begin_ask(page);
    cache_->told(page, *first, word(0, 5));
    EXPECT_EQ(state(), PageState::asking);
    cache_->told(page, *second, word(0, 5));
    EXPECT_EQ(state(), PageState::live);
}

TEST_F(MetadataCacheTest, ignores_a_resume_that_the_next_mover_overtook) {
    become_live();
    cache_->stop(page, word(2, 6, 2), 0);
    cache_->move(page, word(2, 6, 2), 0);
    cache_->stop(page, word(0, 7, 0), 2);
    cache_->resume(page, word(2, 6, 2), 0);
    EXPECT_EQ(state(), PageState::stopped);
    EXPECT_EQ(cache_->word(page).owner, 2);
}

TEST_F(MetadataCacheTest, loses_what_the_dead_had_or_moved_however_late_their_letters_come) {
    become_live();
    cache_->stop(page, word(2, 6, 2), 0);
    dead_.add(NodeId{2});
    cache_->lose();
    EXPECT_EQ(state(), PageState::lost);
    EXPECT_EQ(cache_->word(page).owner, 2);
    EXPECT_EQ(entry().reads.load(), nullptr);
    cache_->move(page, word(2, 6, 2), 0);
    EXPECT_EQ(state(), PageState::lost);
}

TEST_F(MetadataCacheTest, refuses_what_is_freed) {
    become_live();
    PageWord freed = word(0, 6, 2);
    freed.live = false;
    cache_->stop(page, freed, 0);
    cache_->move(page, freed, 0);
    EXPECT_EQ(state(), PageState::leaving);
    bases_[1][page * 4096] = std::byte{5};
    cache_->resume(page, freed, 0);
    EXPECT_EQ(state(), PageState::unknown);
    EXPECT_EQ(bases_[1][page * 4096], std::byte{0});  // the next allocation finds zeros
}

}  // namespace
}  // namespace hiroba::gas
