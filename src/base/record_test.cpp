// SPDX-License-Identifier: BSD-3-Clause
#include "base/record.hpp"

#include <gtest/gtest.h>
#include <time.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "base/sync_place.hpp"
#include "base/thread_context.hpp"

namespace hiroba {
namespace {

class RecordFile : public testing::Test {
protected:
    RecordFile() {
        char name[] = "/tmp/hiroba-record-XXXXXX";
        folder_ = mkdtemp(name);
    }
    ~RecordFile() override {
        record_is_on = false;
        std::filesystem::remove_all(folder_);
    }
    void start(std::uint64_t bytes_max) {
        ASSERT_TRUE(bool(start_recording((folder_ + "/r").c_str(), bytes_max, 3, 5, 2)));
    }
    std::vector<char> bytes() const {
        std::ifstream in(folder_ + "/r.3", std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    RecordFileHead head() const {
        RecordFileHead head;
        std::memcpy(&head, bytes().data(), sizeof head);
        return head;
    }
    /// Returns those of all chunks, in their order.
    std::vector<Record> records() const {
        std::vector<Record> found;
        const std::vector<char> all = bytes();
        for (std::size_t at = record_head_bytes; at + record_chunk_bytes <= all.size();
             at += record_chunk_bytes) {
            RecordChunkHead chunk;
            std::memcpy(&chunk, all.data() + at, sizeof chunk);
            if (chunk.magic != record_chunk_magic) continue;
            for (std::size_t i = 0; i < record_chunk_records; ++i) {
                Record record;
                std::memcpy(&record, all.data() + at + sizeof chunk + i * sizeof record,
                            sizeof record);
                if (record.kind() == RecordKind::none) break;
                found.push_back(record);
            }
        }
        return found;
    }
    std::string folder_;
};

/// In a thread of its own, whose buffer is empty.
template <class Body>
void in_thread(Body body) {
    std::thread{body}.join();
}

TEST_F(RecordFile, is_not_written_before_the_start) {
    in_thread([] { record(RecordKind::lock, 1, 2); });
    start(1 << 20);
    EXPECT_TRUE(records().empty());
    EXPECT_EQ(head().rank, 3u);
    EXPECT_EQ(head().nodes, 5u);
    EXPECT_EQ(head().chunks, 0u);
}

TEST_F(RecordFile, has_what_each_thread_recorded_in_order) {
    start(1 << 20);
    for (std::uint64_t thread = 0; thread < 3; ++thread)
        in_thread([thread] {
            for (std::uint64_t i = 0; i < 5000; ++i) record(RecordKind::lock, thread, i, i);
        });
    std::uint64_t next[3] = {}, time = 0;
    for (const Record& each : records()) {
        ASSERT_EQ(each.kind(), RecordKind::lock);
        ASSERT_EQ(each.second, next[each.first]++);
        ASSERT_EQ(each.extra(), each.second);
        ASSERT_GE(each.time, time);
        time = each.time;
    }
    EXPECT_EQ(next[0] + next[1] + next[2], 15000u);
}

TEST_F(RecordFile, names_a_place_once_and_only_where_something_follows) {
    start(1 << 20);
    in_thread([] {
        int code = 0;
        for (int i = 0; i < 9; ++i) synchronizes_at(SyncKind::critical, &code);
        record(RecordKind::lock, 1);
        record(RecordKind::lock, 2);
        synchronizes_at(SyncKind::barrier, &code);
    });
    const auto found = records();
    ASSERT_EQ(found.size(), 3u);
    EXPECT_EQ(found[0].kind(), RecordKind::place);
    EXPECT_EQ(found[0].second, static_cast<std::uint64_t>(SyncKind::critical));
    EXPECT_EQ(found[1].first, 1u);
    EXPECT_EQ(found[2].first, 2u);
}

TEST_F(RecordFile, tells_how_long_a_span_took) {
    start(1 << 20);
    in_thread([] {
        { const RecordedSpan span{RecordKind::wait, 7, 0}; }
        { const RecordedSpan too_short{RecordKind::wait, 8, 0, std::uint64_t{1} << 50}; }
    });
    const auto found = records();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].first, 7u);
    EXPECT_GT(found[0].extra(), 0u);
}

TEST_F(RecordFile, leaves_out_whole_phases_where_it_fills_up_and_says_so) {
    constexpr std::uint64_t chunks = 16;
    start(record_head_bytes + chunks * record_chunk_bytes);
    in_thread([] {
        for (std::uint64_t phase = 0; phase < 3000; ++phase) {
            record_phase(phase);
            for (std::uint64_t i = 0; i < 40; ++i) record(RecordKind::lock, phase, i);
        }
    });
    std::uint64_t phase = ~std::uint64_t{0}, in_phase = 40, samples = 0, last = 0;
    for (const Record& each : records()) {
        if (each.kind() == RecordKind::sample) {
            ++samples;
            continue;
        }
        if (each.first != phase) {
            EXPECT_EQ(in_phase, 40u) << "of phase " << phase;  // none is cut
            phase = each.first;
            in_phase = 0;
        }
        EXPECT_EQ(each.second, in_phase++);
        last = phase;
    }
    EXPECT_GT(samples, 3u);
    EXPECT_GT(last, 2000u);  // the end of the run is there
    EXPECT_LE(head().chunks, chunks);
    EXPECT_EQ(head().lost, 0u);
}

TEST_F(RecordFile, counts_what_finds_no_room) {
    start(record_head_bytes + record_chunk_bytes);
    in_thread([] {
        for (std::uint64_t i = 0; i < 3 * record_chunk_records; ++i) record(RecordKind::lock, 0, i);
    });
    EXPECT_EQ(records().size(), record_chunk_records);
    EXPECT_GT(head().lost, 0u);
}

TEST_F(RecordFile, that_cannot_be_made_is_an_error_with_its_name) {
    const auto started = start_recording("/nowhere/r", 1 << 20, 0, 1, 1);
    ASSERT_FALSE(bool(started));
    EXPECT_NE(started.error().text.find("/nowhere/r.0"), std::string::npos);
    EXPECT_FALSE(is_recording());
}

TEST(ChangeShape, keeps_its_numbers_and_says_most_of_larger_ones) {
    const ChangeShape shape = ChangeShape::of(ChangeShape{5, 4095, 300, 4096}.packed());
    EXPECT_EQ(shape.first, 5u);
    EXPECT_EQ(shape.last, 4095u);
    EXPECT_EQ(shape.runs, 300u);
    EXPECT_EQ(shape.bytes, 4096u);
    EXPECT_EQ(ChangeShape::of(ChangeShape{0, 0, 0, 1u << 20}.packed()).bytes, ChangeShape::most);
}

TEST(ThreadTime, is_that_of_the_calling_thread_alone) {
    timespec before{}, after{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    const std::uint64_t told = thread_cpu_ns();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    const auto ns = [](const timespec& time) {
        return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u +
               static_cast<std::uint64_t>(time.tv_nsec);
    };
    EXPECT_GE(told, ns(before));
    EXPECT_LE(told, ns(after));
}

}  // namespace
}  // namespace hiroba
