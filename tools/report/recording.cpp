// SPDX-License-Identifier: BSD-3-Clause
#include "tools/report/recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

namespace hiroba::tools {

bool is_span(RecordKind kind) {
    switch (kind) {
        case RecordKind::barrier:
        case RecordKind::fork:
        case RecordKind::join:
        case RecordKind::idle:
        case RecordKind::wait:
        case RecordKind::lock:
        case RecordKind::unlock:
        case RecordKind::fault:
        case RecordKind::release:
        case RecordKind::acquire:
        case RecordKind::atomic:
        case RecordKind::task: return true;
        default: return false;
    }
}

namespace {

/// Ticks of one host as nanoseconds of its monotonic clock, by two moments that are far apart.
class TickClock {
public:
    void note(std::uint64_t ticks, std::uint64_t ns) {
        if (ticks < first_.ticks) first_ = {ticks, ns};
        if (ticks > last_.ticks) last_ = {ticks, ns};
    }
    double ns_of(std::uint64_t ticks) const {
        const auto from_first =
            static_cast<double>(static_cast<std::int64_t>(ticks - first_.ticks));
        return static_cast<double>(first_.ns) + from_first * ns_each();
    }
    double ns_each() const {
        if (last_.ticks <= first_.ticks || last_.ns <= first_.ns) return 1. / 3;
        return static_cast<double>(last_.ns - first_.ns) /
               static_cast<double>(last_.ticks - first_.ticks);
    }

private:
    RecordedJob::Clocks first_{~std::uint64_t{0}, 0}, last_{0, 0};
};

/// Places by number.
class PlaceNumbers {
public:
    explicit PlaceNumbers(std::vector<SyncPlace>& places) : places_(places) { of({}); }
    std::uint32_t of(const SyncPlace& place) {
        const auto [at, added] = numbers_.try_emplace(
            {place.address, static_cast<std::uint32_t>(place.kind)}, places_.size());
        if (added) places_.push_back(place);
        return at->second;
    }

private:
    std::vector<SyncPlace>& places_;
    std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t> numbers_;
};

RecordFileHead head_of(std::span<const std::byte> bytes) {
    RecordFileHead head;
    std::memcpy(&head, bytes.data(), sizeof head);
    head.host_name[sizeof head.host_name - 1] = 0;
    return head;
}

/// What one node has recorded.
class NodeReader {
public:
    NodeReader(std::uint32_t node, std::span<const std::byte> bytes, Recording& recording,
               PlaceNumbers& places)
        : node_(node),
          bytes_(bytes),
          head_(head_of(bytes)),
          recording_(recording),
          places_(places) {}

    const RecordFileHead& head() const { return head_; }

    void learn_clock(TickClock& clock) const {
        clock.note(head_.ticks, head_.monotonic_ns);
        each_chunk([&](const RecordChunkHead& chunk, std::span<const std::byte>) {
            clock.note(chunk.ticks, chunk.monotonic_ns);
        });
    }
    /// Leaves out all but the first and the last chunks of each thread.
    void keep_newest() {
        constexpr std::uint32_t kept = 2;
        std::map<std::uint32_t, std::uint32_t> counts;
        each_chunk([&](const RecordChunkHead& chunk, std::span<const std::byte>) {
            ++counts[chunk.stream];
        });
        for (auto& [stream, count] : counts) count -= std::min(count, kept);
        left_out_ = std::move(counts);
    }
    /// @param zero_ns  of the host's clock
    void read(const TickClock& clock, double zero_ns) {
        each_chunk([&](const RecordChunkHead& chunk, std::span<const std::byte> records) {
            Reading& reading = streams_[chunk.stream];
            reading.stream.node = node_;
            const std::uint32_t number = reading.chunks++;
            const auto left_out = left_out_.find(chunk.stream);
            if (number > 0 && left_out != left_out_.end() && number < left_out->second) return;
            for (std::size_t at = 0; at + sizeof(Record) <= records.size(); at += sizeof(Record)) {
                Record record;
                std::memcpy(&record, records.data() + at, sizeof record);
                if (record.kind() == RecordKind::none) break;
                take(record, reading, clock, zero_ns);
            }
        });
        for (auto& [number, reading] : streams_)
            recording_.streams.push_back(std::move(reading.stream));
    }

private:
    /// Half a year: what is longer makes no sense.
    static constexpr double ns_most = 1.5e16;

    struct Reading {
        Stream stream;
        std::uint32_t place = 0, chunks = 0;
    };

    template <class Visit>
    void each_chunk(Visit&& visit) const {
        for (std::size_t at = record_head_bytes; at + record_chunk_bytes <= bytes_.size();
             at += record_chunk_bytes) {
            RecordChunkHead chunk;
            std::memcpy(&chunk, bytes_.data() + at, sizeof chunk);
            if (chunk.magic != record_chunk_magic) continue;
            visit(chunk, bytes_.subspan(at + sizeof chunk, record_chunk_bytes - sizeof chunk));
        }
    }

    void take(const Record& record, Reading& reading, const TickClock& clock, double zero_ns) {
        const RecordKind kind = record.kind();
        if (static_cast<unsigned>(kind) >= record_kinds) return;
        const double at_ns = clock.ns_of(record.time) - zero_ns;
        if (!(std::abs(at_ns) < ns_most)) return;
        Event event;
        event.end_ns = event.begin_ns = static_cast<std::int64_t>(at_ns);
        event.kind = kind;
        event.first = record.first;
        event.second = record.second;
        event.extra = record.extra();
        event.place = reading.place;
        if (is_span(kind)) {
            const auto extra = static_cast<double>(event.extra);
            const double took = kind == RecordKind::atomic ? extra : extra * clock.ns_each();
            if (!(took < ns_most)) return;
            event.begin_ns -= static_cast<std::int64_t>(took);
        }
        if (!keep(event, reading)) reading.stream.events.push_back(event);
    }

    /// True: what it tells is kept elsewhere.
    bool keep(const Event& event, Reading& reading) {
        switch (event.kind) {
            case RecordKind::place:
                if (event.second < sync_kinds)
                    reading.place = places_.of({event.first, static_cast<SyncKind>(event.second)});
                return true;
            case RecordKind::member:
                reading.stream.thread = static_cast<std::int32_t>(event.first & 0x7fff'ffff);
                return true;
            case RecordKind::allocated:
                recording_.allocations.push_back(
                    {event.first, event.second, event.extra, event.end_ns});
                return true;
            case RecordKind::shape:
                recording_.stacks = {event.first, event.second, event.extra};
                return true;
            case RecordKind::sample: recording_.phases_left_out += event.second; return true;
            default: return false;
        }
    }

    std::uint32_t node_;
    std::span<const std::byte> bytes_;
    RecordFileHead head_;
    Recording& recording_;
    PlaceNumbers& places_;
    std::map<std::uint32_t, Reading> streams_;
    std::map<std::uint32_t, std::uint32_t> left_out_;  ///< chunks, up to that number
};

/// The program's beginning is zero; its end is the run's, or the last event there is.
void find_extent(Recording& recording) {
    std::optional<std::int64_t> begin, end;
    std::int64_t last = 0, earliest = std::int64_t{1} << 62;
    for (const Stream& stream : recording.streams) {
        for (const Event& event : stream.events) {
            last = std::max(last, event.end_ns);
            earliest = std::min(earliest, event.begin_ns);
            if (event.kind != RecordKind::program || stream.node != 0) continue;
            if (event.first == 1 && !begin) begin = event.end_ns;
            if (event.first == 0) end = event.end_ns;
        }
    }
    const std::int64_t zero = begin.value_or(earliest);
    for (Stream& stream : recording.streams)
        for (Event& event : stream.events) event.begin_ns -= zero, event.end_ns -= zero;
    for (RecordedBlock& each : recording.allocations) each.at_ns -= zero;
    recording.zero_ns = zero;
    recording.end_ns = std::max<std::int64_t>(end.value_or(last) - zero, 1);
}

/// A meeting of the nodes: nobody leaves it before all have arrived.
struct Meeting {
    std::int64_t first_arrival = 0, last_arrival = 0, first_leave = 0;
    bool arrived = false, left = false;
};
using Meetings = std::map<std::pair<std::uint64_t, std::uint64_t>, Meeting>;

Meetings meetings_of(const Recording& recording, const std::vector<std::uint32_t>& hosts,
                     std::uint32_t host) {
    Meetings found;
    for (const Stream& stream : recording.streams) {
        if (hosts[stream.node] != host) continue;
        for (const Event& event : stream.events) {
            const bool barrier = event.kind == RecordKind::barrier;
            if (!barrier && event.kind != RecordKind::barrier_at) continue;
            Meeting& meeting = found[{event.first, event.second & 0xffff'ffff}];
            if (barrier) {
                meeting.first_leave =
                    meeting.left ? std::min(meeting.first_leave, event.end_ns) : event.end_ns;
                meeting.left = true;
            } else {
                meeting.last_arrival =
                    meeting.arrived ? std::max(meeting.last_arrival, event.end_ns) : event.end_ns;
                meeting.arrived = true;
            }
        }
    }
    return found;
}

/// How far the clock of a host must be moved so that nobody leaves a barrier before another host's
/// threads have come; in the middle of what that allows.
std::int64_t shift_between(const Meetings& here, const Meetings& there) {
    std::optional<std::int64_t> least, most;
    for (const auto& [name, meeting] : there) {
        const auto other = here.find(name);
        if (other == here.end() || !meeting.arrived || !meeting.left || !other->second.arrived ||
            !other->second.left)
            continue;
        const std::int64_t at_least = other->second.last_arrival - meeting.first_leave;
        const std::int64_t at_most = other->second.first_leave - meeting.last_arrival;
        least = least ? std::max(*least, at_least) : at_least;
        most = most ? std::min(*most, at_most) : at_most;
    }
    if (!least) return 0;
    return *least + (*most - *least) / 2;
}

void align_hosts(Recording& recording, const std::vector<std::uint32_t>& hosts,
                 std::uint32_t count) {
    if (count < 2) return;
    const Meetings here = meetings_of(recording, hosts, 0);
    for (std::uint32_t host = 1; host < count; ++host) {
        const std::int64_t shift = shift_between(here, meetings_of(recording, hosts, host));
        for (Stream& stream : recording.streams) {
            if (hosts[stream.node] != host) continue;
            for (Event& event : stream.events) event.begin_ns += shift, event.end_ns += shift;
        }
    }
}

void tell_what_lacks(Recording& recording) {
    std::uint64_t lost = 0;
    for (const RecordedNode& node : recording.nodes) lost += node.lost;
    if (lost > 0)
        recording.notes.push_back(
            "the recording was full before the end: what came then is not in it. Raise "
            "HIROBA_RECORD_SIZE, or give the program less to do");
    else if (recording.phases_left_out > 0)
        recording.notes.emplace_back(
            "the recording became long: from some point on it has one phase of many, each whole. "
            "Raise HIROBA_RECORD_SIZE for all");
}

}  // namespace

std::uint32_t Recording::threads_per_node_most() const {
    const std::uint64_t most = stacks.count / std::max<std::size_t>(nodes.size(), 1);
    return static_cast<std::uint32_t>(std::max<std::uint64_t>({most, job.threads, 1}));
}

Recording decode(const Archive& archive, Extent extent) {
    Recording recording;
    recording.job = archive.job;
    recording.notes = archive.notes;
    recording.names = archive.names;
    recording.nodes.resize(archive.nodes.size());
    PlaceNumbers places(recording.places);
    std::vector<NodeReader> readers;
    std::map<std::uint64_t, std::uint32_t> host_numbers;
    std::vector<std::uint32_t> hosts(archive.nodes.size(), 0);
    std::vector<TickClock> clocks;
    for (std::uint32_t rank = 0; rank < archive.nodes.size(); ++rank) {
        const auto bytes = archive.nodes[rank].bytes;
        if (bytes.empty()) continue;
        readers.emplace_back(rank, bytes, recording, places);
        const RecordFileHead& head = readers.back().head();
        recording.nodes[rank] = {true,       head.host_name, head.host,
                                 head.cores, head.lost,      std::to_array(head.processors)};
        if (head.block_bytes >= 64 && head.block_bytes <= (1u << 20))
            recording.block_bytes = head.block_bytes;
        hosts[rank] = host_numbers.try_emplace(head.host, host_numbers.size()).first->second;
        clocks.resize(host_numbers.size());
        readers.back().learn_clock(clocks[hosts[rank]]);
    }
    if (!clocks.empty()) {
        clocks[0].note(archive.job.begin.ticks, archive.job.begin.ns);
        if (archive.job.end.ticks != 0) clocks[0].note(archive.job.end.ticks, archive.job.end.ns);
    }
    std::size_t at = 0;
    for (std::uint32_t rank = 0; rank < archive.nodes.size(); ++rank) {
        if (archive.nodes[rank].bytes.empty()) continue;
        NodeReader& reader = readers[at++];
        const RecordFileHead& head = reader.head();
        // The hosts' clocks of the day say how far apart these are, until the barriers say better.
        const double zero = hosts[rank] == 0 ? 0
                                             : static_cast<double>(head.monotonic_ns) -
                                                   static_cast<double>(head.realtime_ns);
        const double first = static_cast<double>(readers[0].head().monotonic_ns) -
                             static_cast<double>(readers[0].head().realtime_ns);
        if (extent == Extent::newest) reader.keep_newest();
        reader.read(clocks[hosts[rank]], hosts[rank] == 0 ? 0 : zero - first);
    }
    align_hosts(recording, hosts, static_cast<std::uint32_t>(host_numbers.size()));
    find_extent(recording);
    std::ranges::sort(recording.allocations, [](const RecordedBlock& a, const RecordedBlock& b) {
        return std::pair(a.address, a.at_ns) < std::pair(b.address, b.at_ns);
    });
    tell_what_lacks(recording);
    return recording;
}

}  // namespace hiroba::tools
