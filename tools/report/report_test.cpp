// SPDX-License-Identifier: BSD-3-Clause
// Role: recordings made by hand: what is read of them, and what it comes to.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "tools/report/blocks.hpp"
#include "tools/report/output.hpp"
#include "tools/report/progress.hpp"
#include "tools/report/race_sites.hpp"
#include "tools/report/top.hpp"

namespace hiroba::tools {
namespace {

constexpr std::uint64_t us = 3000;  // ticks

/// What one node would have written.
class WrittenNode {
public:
    explicit WrittenNode(std::uint32_t rank, std::uint32_t nodes = 2) {
        std::memcpy(head_.magic, record_magic, sizeof record_magic);
        head_.rank = rank;
        head_.nodes = nodes;
        head_.threads = 1;
        head_.cores = 8;
        head_.processors[0] = 0xff;
        head_.block_bytes = 4096;
        head_.monotonic_ns = 1'000'000;
        head_.realtime_ns = 5'000'000;
        head_.host = 1;
        std::strcpy(head_.host_name, "here");
    }
    void bind_to(unsigned processor) {
        head_.cores = 1;
        head_.processors[0] = std::uint64_t{1} << processor;
    }
    /// Another host, whose clocks are ahead by so much.
    void move_to_host(std::uint64_t host, std::uint64_t ticks_ahead) {
        head_.host = host;
        ahead_ = ticks_ahead;
        head_.ticks += ticks_ahead;
    }
    void add(std::uint64_t at_us, RecordKind kind, std::uint64_t first = 0,
             std::uint64_t second = 0, std::uint64_t extra = 0) {
        Record record;
        record.time = at_us * us + ahead_;
        record.head = extra << 8 | static_cast<std::uint64_t>(kind);
        record.first = first;
        record.second = second;
        records_.push_back(record);
    }
    void span(std::uint64_t begin_us, std::uint64_t end_us, RecordKind kind,
              std::uint64_t first = 0, std::uint64_t second = 0) {
        add(end_us, kind, first, second, (end_us - begin_us) * us);
    }
    void write(const std::string& path) {
        head_.chunks = head_.chunks_max = 1;
        std::string bytes(record_head_bytes + record_chunk_bytes, '\0');
        std::memcpy(bytes.data(), &head_, sizeof head_);
        RecordChunkHead chunk{};
        chunk.magic = record_chunk_magic;
        chunk.stream = 1;
        chunk.ticks = 3'000'000'000 + ahead_;  // a second later
        chunk.monotonic_ns = 1'001'000'000;
        std::memcpy(bytes.data() + record_head_bytes, &chunk, sizeof chunk);
        std::memcpy(bytes.data() + record_head_bytes + sizeof chunk, records_.data(),
                    records_.size() * sizeof(Record));
        std::ofstream(path + "." + std::to_string(head_.rank), std::ios::binary) << bytes;
    }

private:
    RecordFileHead head_{};
    std::uint64_t ahead_ = 0;
    std::vector<Record> records_;
};

class Report : public testing::Test {
protected:
    Report() {
        char name[] = "/tmp/hiroba-report-XXXXXX";
        folder_ = mkdtemp(name);
        path_ = folder_ + "/r";
        job_.nodes = 2;
        job_.threads = 1;
        job_.command = "./program 1";
        EXPECT_TRUE(bool(begin_archive(path_, job_)));
    }
    ~Report() override { std::filesystem::remove_all(folder_); }
    Recording recording() {
        auto archive = open_archive(path_);
        EXPECT_TRUE(bool(archive));
        return archive ? decode(*archive) : Recording{};
    }
    std::string refusal() {
        const auto archive = open_archive(path_);
        return archive ? "" : archive.error().text;
    }
    void replace(const std::string& bytes) {
        std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
    }
    std::string content() {
        std::ifstream in(path_, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    /// Two nodes, a region of 100 us with a barrier in it, for which node 1 is late. Or node 0
    /// comes later than it had to, since it had no processor.
    /// @param processors  that the nodes are bound to; none: they are not
    void write_a_run(std::uint64_t first_at = 40, std::vector<unsigned> processors = {}) {
        WrittenNode first(0), second(1);
        if (!processors.empty()) first.bind_to(processors[0]), second.bind_to(processors[1]);
        first.add(0, RecordKind::member, 0);
        first.add(0, RecordKind::program, 1);
        first.span(10, 20, RecordKind::fork, 1);
        first.add(20, RecordKind::region, 1, std::uint64_t{2} << 32, 0);
        first.add(first_at, RecordKind::barrier_at, 1, 0, 20'000);
        first.span(75, 80, RecordKind::release, 1);
        first.span(first_at, 90, RecordKind::barrier, 1, 0);
        first.span(92, 97, RecordKind::fault, 0x5000 | std::uint64_t{1} << 56, 0x40);
        first.add(100, RecordKind::ends, 1, 0, 30'000);
        first.span(100, 110, RecordKind::join, 1);
        first.add(120, RecordKind::program, 0);
        second.add(0, RecordKind::member, 1);
        second.span(0, 20, RecordKind::idle, 0);
        second.add(20, RecordKind::region, 1, 1 | std::uint64_t{2} << 32, 0);
        second.add(70, RecordKind::barrier_at, 1, std::uint64_t{1} << 32, 50'000);
        second.span(70, 90, RecordKind::barrier, 1, std::uint64_t{1} << 32);
        second.add(100, RecordKind::ends, 1, 0, 60'000);
        second.span(100, 120, RecordKind::idle, 1);
        first.write(path_);
        second.write(path_);
    }
    std::string folder_, path_;
    RecordedJob job_;
};

std::int64_t share(const Analysis& analysis, std::size_t thread, Share which) {
    return analysis.threads.at(thread).ns[static_cast<unsigned>(which)];
}

TEST_F(Report, reads_a_killed_job_up_to_there_and_says_so) {
    write_a_run();
    const Recording found = recording();
    ASSERT_EQ(found.streams.size(), 2u);
    EXPECT_EQ(found.streams[1].thread, 1);
    ASSERT_EQ(found.notes.size(), 1u);
    EXPECT_NE(found.notes[0].find("had not ended"), std::string::npos);
}

TEST_F(Report, is_the_same_once_the_parts_are_in_one_file) {
    write_a_run();
    const Analysis before = analyse(recording());
    job_.status = 0;
    ASSERT_TRUE(bool(finish_archive(path_, job_, "code 64 1 a.c:3 (f)\n")));
    EXPECT_FALSE(std::filesystem::exists(path_ + ".0"));
    const Recording together = recording();
    EXPECT_TRUE(together.notes.empty());
    const Analysis after = analyse(together);
    EXPECT_EQ(before.all, after.all);
    EXPECT_EQ(after.names.code(0x40), "a.c:3 (f)");
}

TEST_F(Report, gives_each_moment_of_a_thread_to_one_share) {
    write_a_run();
    const Recording found = recording();
    const Analysis analysis = analyse(found);
    EXPECT_NEAR(static_cast<double>(analysis.wall_ns), 120'000, 100);
    for (const ThreadTime& thread : analysis.threads) {
        std::int64_t sum = 0;
        for (const std::int64_t ns : thread.ns) sum += ns;
        EXPECT_NEAR(static_cast<double>(sum), static_cast<double>(analysis.wall_ns), 10);
    }
    const auto near_us = [&](std::size_t thread, Share which, double expected) {
        EXPECT_NEAR(static_cast<double>(share(analysis, thread, which)) / 1000, expected, .1)
            << "thread " << thread << ", " << text_of(which);
    };
    near_us(0, Share::slower, 30);   // from 40, when it came, to 70, when the other one did
    near_us(0, Share::releases, 5);  // inside the barrier: not the barrier's
    near_us(0, Share::faults, 5);
    near_us(0, Share::meetings, 10 + 15 + 10);  // fork, barrier, join
    near_us(1, Share::slower, 0);
    near_us(1, Share::serial, 10 + 10);  // before the fork and behind the join
    near_us(1, Share::computing, 50 + 10);
}

/// What is advised at one illness would save, in microseconds; 0: nothing is.
std::int64_t saved_us(const Analysis& analysis, const std::string& illness) {
    std::int64_t sum = 0;
    for (const Advice& each : analysis.advice)
        if (each.illness == illness) sum += each.saves_ns / 1000;
    return sum;
}

TEST_F(Report, advises_to_balance_where_a_thread_waits) {
    write_a_run();
    const Recording found = recording();
    EXPECT_EQ(saved_us(analyse(found), "unbalanced loop"), 15);
    EXPECT_EQ(analyse(found).busy, "");
}

TEST_F(Report, tells_of_a_busy_machine_and_not_of_balance_where_nobody_waits) {
    write_a_run(70);
    const Recording found = recording();
    const Analysis analysis = analyse(found);
    EXPECT_EQ(saved_us(analysis, "unbalanced loop"), 0);
    EXPECT_NE(analysis.busy.find("a processor for 73 %"), std::string::npos) << analysis.busy;
    EXPECT_NE(report_text(analysis).find(analysis.busy), std::string::npos);
}

std::vector<std::string> illnesses_of(const Recording& recording) {
    std::vector<std::string> found;
    for (const Advice& each : analyse(recording).advice) found.push_back(each.illness);
    return found;
}

TEST_F(Report, counts_the_processors_that_nodes_of_a_host_are_bound_to) {
    const auto is_crowded = [&](unsigned second) {
        write_a_run(40, {0, second});
        const auto found = illnesses_of(recording());
        return std::ranges::find(found, "more threads than cores") != found.end();
    };
    EXPECT_FALSE(is_crowded(1));
    EXPECT_TRUE(is_crowded(0));
}

class RegionReport : public Report {
protected:
    /// What is advised where both threads compute for 100 us in each region. The join takes so many
    /// microseconds, and a hundred times as many in each eighth region.
    std::vector<std::string> illnesses(std::uint64_t join_us) {
        WrittenNode first(0), second(1);
        first.add(0, RecordKind::member, 0);
        second.add(0, RecordKind::member, 1);
        first.add(0, RecordKind::program, 1);
        std::uint64_t at = 10;
        for (std::uint64_t region = 1; region <= 24; ++region) {
            const std::uint64_t computed = region * 100'000;
            first.span(at, at + 5, RecordKind::fork, region);
            second.span(at - 10, at + 5, RecordKind::idle, region - 1);
            for (WrittenNode* const node : {&first, &second}) {
                node->add(at + 5, RecordKind::region, region,
                          std::uint64_t{node == &second} | std::uint64_t{2} << 32,
                          computed - 100'000);
                node->add(at + 105, RecordKind::ends, region, 0, computed);
            }
            const std::uint64_t join = join_us * (region % 8 == 0 ? 100 : 1);
            first.span(at + 105, at + 105 + join, RecordKind::join, region);
            at += 105 + join + 10;
        }
        first.add(at, RecordKind::program, 0);
        first.write(path_);
        second.write(path_);
        return illnesses_of(recording());
    }
};

TEST_F(RegionReport, few_joins_that_lost_their_core_make_no_region_too_small) {
    EXPECT_EQ(illnesses(200), std::vector<std::string>{"regions too small"});
    EXPECT_EQ(illnesses(40), std::vector<std::string>{});
}

TEST_F(Report, shows_clocks_of_hosts_so_that_nobody_leaves_before_all_have_come) {
    WrittenNode first(0), second(1);
    second.move_to_host(2, 7'777 * us);
    const auto run = [](WrittenNode& node, std::uint64_t thread, std::uint64_t late_us) {
        node.add(1, RecordKind::member, thread);
        for (std::uint64_t i = 0; i < 10; ++i) {
            const std::uint64_t at = 100 * (i + 1);
            node.add(at + late_us, RecordKind::barrier_at, 1, i | thread << 32);
            node.span(at + late_us, at + 60, RecordKind::barrier, 1, i | thread << 32);
        }
    };
    run(first, 0, 10);
    run(second, 1, 50);
    first.write(path_);
    second.write(path_);
    const Recording found = recording();
    std::map<std::uint64_t, std::pair<std::int64_t, std::int64_t>>
        meetings;  // last come, first left
    for (const Stream& stream : found.streams) {
        for (const Event& event : stream.events) {
            const std::uint64_t number = event.second & 0xffff'ffff;
            auto& [come, left] =
                meetings.try_emplace(number, std::int64_t{-1} << 60, std::int64_t{1} << 60)
                    .first->second;
            if (event.kind == RecordKind::barrier_at) come = std::max(come, event.end_ns);
            if (event.kind == RecordKind::barrier) left = std::min(left, event.end_ns);
        }
    }
    ASSERT_EQ(meetings.size(), 10u);
    for (const auto& [number, times] : meetings) EXPECT_LE(times.first, times.second) << number;
}

TEST_F(Report, refuses_what_is_no_recording_with_a_line) {
    EXPECT_NE(refusal().find("no node has recorded anything"), std::string::npos);
    replace("");
    EXPECT_NE(refusal().find("is empty"), std::string::npos);
    replace(std::string(1000, 'x'));
    EXPECT_NE(refusal().find("is no recording"), std::string::npos);
    std::filesystem::remove(path_);
    EXPECT_NE(refusal().find(path_), std::string::npos);
}

TEST_F(Report, reads_a_cut_file_up_to_there) {
    write_a_run();
    job_.status = 0;
    ASSERT_TRUE(bool(finish_archive(path_, job_, "")));
    const std::string whole = content();
    for (std::size_t bytes = 0; bytes < whole.size(); bytes += 97) {
        replace(whole.substr(0, bytes));
        const auto archive = open_archive(path_);
        if (!archive) {
            EXPECT_NE(archive.error().text.find(path_), std::string::npos);
            continue;
        }
        const Recording found = decode(*archive);
        EXPECT_FALSE(found.notes.empty());
        EXPECT_NE(report_text(analyse(found)), "");
    }
}

TEST_F(Report, survives_any_bytes) {
    write_a_run();
    job_.status = 0;
    ASSERT_TRUE(bool(finish_archive(path_, job_, "code 64 1 a.c:3\ndata 20480 8 b.c:1 x\n")));
    const std::string whole = content();
    std::mt19937_64 random(1);
    for (int round = 0; round < 300; ++round) {
        std::string bytes = whole;
        // Where the records, heads and texts are; the rest of the chunks is empty.
        for (int change = 0; change < 6; ++change) {
            const std::size_t section = random() % 3;
            const std::size_t at =
                section == 0 ? random() % 400
                             : (section == 1 ? 0 : record_chunk_bytes + 4096) + random() % 6000;
            if (at < bytes.size()) bytes[at] = static_cast<char>(random());
        }
        replace(bytes);
        const auto archive = open_archive(path_);
        if (!archive) continue;
        const Recording found = decode(*archive);
        const Analysis analysis = analyse(found);
        EXPECT_NE(report_text(analysis), "");
        EXPECT_TRUE(nlohmann::json::accept(report_json(analysis)));
        std::ostringstream trace;
        write_trace(analysis, trace);
        EXPECT_TRUE(nlohmann::json::accept(trace.str()));
    }
}

TEST_F(Report, writes_a_trace_with_a_track_for_each_thread) {
    write_a_run();
    const Recording found = recording();
    std::ostringstream out;
    write_trace(analyse(found), out);
    const auto trace = nlohmann::json::parse(out.str());
    int faults = 0, regions = 0;
    std::set<int> tracks;
    for (const auto& event : trace["traceEvents"]) {
        if (event["ph"] != "X") continue;
        tracks.insert(event["pid"].get<int>());
        faults += event["name"] == "fault";
        regions += event.contains("args") && event["args"].contains("region");
        EXPECT_GE(event["dur"].get<double>(), 0);
    }
    EXPECT_EQ(tracks.size(), 2u);
    EXPECT_EQ(faults, 1);
    EXPECT_EQ(regions, 2);
}

Touch merged(std::uint32_t node, Phase phase, ChangeShape shape, std::uint64_t parts) {
    Touch touch;
    touch.node = node;
    touch.phase = phase;
    touch.kind = Touch::Kind::merged;
    touch.shape = shape;
    touch.detail = parts;
    return touch;
}

Sharing sharing(const std::vector<Touch>& touches) { return sharing_of({0, touches}, 4096); }

TEST(Sharing, is_false_where_nodes_write_bytes_of_their_own) {
    const Phase phase = phase_of(3, 1);
    EXPECT_TRUE(sharing({merged(0, phase, {0, 7, 1, 8}, 1), merged(1, phase, {8, 15, 1, 8}, 1)})
                    .is_false());
    EXPECT_TRUE(sharing({merged(0, phase, {0, 4095, 2, 16}, 1ull << 63 | 1),
                         merged(1, phase, {64, 71, 1, 8}, 2)})
                    .is_false());
}

TEST(Sharing, is_true_where_they_write_the_same_bytes) {
    const Phase phase = phase_of(3, 1);
    EXPECT_FALSE(sharing({merged(0, phase, {0, 7, 1, 8}, 1), merged(1, phase, {4, 11, 1, 8}, 1)})
                     .is_false());
}

TEST(Sharing, is_none_where_they_write_between_different_meetings) {
    EXPECT_FALSE(sharing({merged(0, phase_of(3, 1), {0, 7, 1, 8}, 1),
                          merged(1, phase_of(3, 2), {8, 15, 1, 8}, 1)})
                     .is_false());
}

TEST(Sharing, is_dealt_where_the_bytes_alternate) {
    const Phase phase = phase_of(1, 0);
    const Sharing found = sharing({merged(0, phase, {0, 4087, 256, 2048}, ~0ull),
                                   merged(1, phase, {8, 4095, 256, 2048}, ~0ull)});
    EXPECT_TRUE(found.is_false());
    EXPECT_EQ(found.dealt, 1u);
}

TEST(Sharing, is_true_where_few_bytes_are_changed_here_and_there) {
    const Phase phase = phase_of(1, 0);
    EXPECT_FALSE(sharing({merged(0, phase, {0, 3591, 8, 24}, 0x0101'0101'0101'0101),
                          merged(1, phase, {2, 3593, 8, 24}, 0x0101'0101'0101'0101)})
                     .is_false());
}

TEST(Removable, adds_up_the_thread_that_has_most_of_each_phase) {
    Removable removable;
    removable.add(1, 0, 10);
    removable.add(1, 1, 30);
    removable.add(1, 1, 5);
    removable.add(2, 0, 100);
    EXPECT_EQ(removable.total(), 135);
}

/// Two nodes that have begun region 1; what they do then is to be added.
Recording begun_region() {
    Recording recording;
    recording.job.nodes = 2;
    recording.job.threads = 1;
    recording.places.emplace_back();
    for (std::uint32_t node = 0; node < 2; ++node)
        recording.streams.push_back(
            {node, static_cast<std::int32_t>(node), {{0, 0, 1, 0, 0, 0, RecordKind::region}}});
    return recording;
}
void add_to(Recording& recording, std::uint32_t node, RecordKind kind, std::int64_t end_ms,
            std::uint64_t second = 0) {
    recording.streams[node].events.push_back(
        {end_ms * 1'000'000, end_ms * 1'000'000, 1, second, 0, 0, kind});
}
/// What a row says behind its numbers.
std::string row_of(const Recording& recording, const std::string& node, std::int64_t now_ms) {
    std::istringstream lines(top_text(recording, now_ms * 1'000'000));
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with("   " + node + " ")) return line;
    return "";
}

TEST(Top, names_for_whom_a_thread_waits) {
    Recording recording = begun_region();
    EXPECT_NE(row_of(recording, "0", 5).find("computes"), std::string::npos);
    add_to(recording, 0, RecordKind::barrier_at, 10);
    EXPECT_NE(row_of(recording, "0", 30).find("20 ms"), std::string::npos);
    EXPECT_NE(row_of(recording, "0", 30).find("waits for node 1 thread 0"), std::string::npos);
    add_to(recording, 1, RecordKind::barrier_at, 40);
    EXPECT_NE(row_of(recording, "0", 50).find("leaves a barrier"), std::string::npos);
    for (std::uint32_t node = 0; node < 2; ++node) add_to(recording, node, RecordKind::barrier, 60);
    EXPECT_NE(row_of(recording, "1", 70).find("computes"), std::string::npos);
    add_to(recording, 1, RecordKind::ends, 80);
    EXPECT_NE(row_of(recording, "1", 90).find("waits for node 0 thread 0"), std::string::npos);
    add_to(recording, 0, RecordKind::ends, 95);
    add_to(recording, 0, RecordKind::join, 96);
    EXPECT_NE(row_of(recording, "1", 97).find("waits for the next region"), std::string::npos);
    EXPECT_NE(row_of(recording, "0", 97).find("outside of regions"), std::string::npos);
}

TEST(Top, counts_what_came_in_the_last_second) {
    Recording recording = begun_region();
    for (const std::int64_t at : {100, 500, 1900}) {
        add_to(recording, 1, RecordKind::fault, at);
        add_to(recording, 1, RecordKind::fetched, at, std::uint64_t{1u << 20} << 32);
    }
    std::istringstream fields(row_of(recording, "1", 2000));
    std::string node, thread, since, unit;
    double faults = 0, mebibytes = 0;
    fields >> node >> thread >> since >> unit >> faults >> mebibytes;
    EXPECT_EQ(faults, 1);
    EXPECT_EQ(mebibytes, 1);
}

/// The first thread meets the others: a step of two places, the second twice in each.
Recording steps_of(unsigned steps, std::int64_t step_ms) {
    Recording recording = begun_region();
    recording.places = {{}, {0x101, SyncKind::barrier}, {0x201, SyncKind::barrier}};
    for (unsigned step = 0; step < steps; ++step) {
        for (const std::uint32_t place : {1u, 2u, 2u}) {
            add_to(recording, 0, RecordKind::barrier, (step + 1) * step_ms + place);
            recording.streams[0].events.back().place = place;
        }
    }
    return recording;
}

TEST(Progress, names_the_place_that_comes_round_least_often) {
    const std::string told = progress_text(steps_of(5, 700), 4'000'000'000);
    EXPECT_NE(told.find("after 4.0 s"), std::string::npos) << told;
    EXPECT_NE(told.find("comes round to barrier at 0x100 every 700.0 ms"), std::string::npos)
        << told;
    EXPECT_EQ(told.find("nothing for"), std::string::npos) << told;
}

TEST(Progress, says_where_a_program_stands_that_has_stopped_to_repeat) {
    EXPECT_NE(progress_text(steps_of(5, 700), 60'000'000'000)
                  .find("nothing for 56.5 s, since barrier at 0x200"),
              std::string::npos)
        << progress_text(steps_of(5, 700), 60'000'000'000);
    const std::string once = progress_text(steps_of(1, 700), 10'000'000'000);
    EXPECT_EQ(once.find("comes round to barrier at 0x100"), std::string::npos) << once;
}

TEST(Progress, counts_meetings_that_a_sample_leaves_out) {
    Recording recording = begun_region();
    recording.places = {{}, {0x101, SyncKind::barrier}};
    for (std::uint64_t barrier = 0; barrier < 160; barrier += 8) {
        add_to(recording, 0, RecordKind::barrier, static_cast<std::int64_t>(barrier) * 10, barrier);
        recording.streams[0].events.back().place = 1;
    }
    const std::string told = progress_text(recording, 1'600'000'000);
    EXPECT_NE(told.find("every 10.0 ms"), std::string::npos) << told;
}

TEST(Progress, needs_seconds) {
    EXPECT_EQ(*progress_interval_ns("0.5"), 500'000'000u);
    for (const char* const text : {"", "0", "x", "1s", "nan", "-1", "4000"})
        EXPECT_FALSE(bool(progress_interval_ns(text))) << text;
}

TEST(Races, are_told_with_both_lines_and_the_allocation) {
    Recording recording = begun_region();
    recording.allocations = {{0x10000, 8192, 0x701, 0}};
    const auto write_at = [&](std::uint32_t node, std::uint64_t address, std::uint64_t code,
                              std::int64_t at) {
        const std::uint64_t writes = static_cast<std::uint64_t>(FaultWay::write) << 56;
        recording.streams[node].events.push_back(
            {at, at, address | writes, code, 0, 0, RecordKind::fault});
    };
    write_at(0, 0x10040, 0x500, 10);
    write_at(0, 0x10200, 0x510, 20);
    write_at(1, 0x10300, 0x600, 30);
    const Names names = Names::from_text(
        "code 1280 1 a.c:3\ncode 1296 1 a.c:4\ncode 1536 1 a.c:5\ncode 1792 1 a.c:1\n");
    const net::RaceBody races[] = {{0x10041, 2, 1, 0, 0, {}}, {0x11041, 2, 1, 0, 0, {}}};
    const auto told = sites_of_races(recording, names, races);
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0],
              "the race at 0x10041 is of writes by node 0 at a.c:3 and node 1 on the same page, "
              "maybe beside it, at a.c:5; 8192 bytes allocated at a.c:1");
}

TEST(Names, of_functions_are_what_people_call_them) {
    for (const auto& [name, plain] : std::map<std::string, std::string>{
             {"main", "main"},
             {"main._omp_fn.0", "main"},
             {"work.constprop.0", "work"},
             {".omp_outlined.", ".omp_outlined"},
             {"cg_calc_p(int, double const*) [clone ._omp_fn.0]", "cg_calc_p"},
             {"void std::vector<int, std::allocator<int> >::_M_insert<int>(int&&)",
              "std::vector::_M_insert"},
             {"Omp<4ul>::fasten(Params const&) const [clone ._omp_fn.1]", "Omp::fasten"},
             {"a::(anonymous namespace)::run(int)", "a::run"},
             {"main::{lambda(int)#1}::operator()(int) const", "main::lambda::operator()"},
             {"A::operator<(A const&) const", "A::operator<"},
             {"operator_of(int)", "operator_of"}})
        EXPECT_EQ(plain_function(name), plain);
}

TEST(Names, are_read_as_they_were_written) {
    const std::string text = "code 64 1 a b.c:3 (f(int, char))\ndata 4096 80 - x y\n";
    EXPECT_EQ(Names::from_text(text).text(), text);
    EXPECT_EQ(Names::from_text("code\nnonsense\ndata x y\n").text(), "");
}

}  // namespace
}  // namespace hiroba::tools
