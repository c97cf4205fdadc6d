// SPDX-License-Identifier: BSD-3-Clause
// Role: where each thread's time went, and each synchronization's.
#include <algorithm>
#include <optional>

#include "base/sync_place.hpp"
#include "tools/report/analysis.hpp"

namespace hiroba::tools {

const char* text_of(Share share) {
    constexpr const char* texts[shares_count] = {
        "computing",
        "faults: memory of other nodes is brought",
        "releases: changes are made known",
        "acquires: changes of others are taken over",
        "atomics on what another node has",
        "waiting for locks",
        "waiting for slower threads",
        "waiting for the serial part",
        "regions and barriers themselves",
    };
    return texts[static_cast<unsigned>(share)];
}

std::int64_t SyncRow::sum_ns() const {
    std::int64_t sum = 0;
    for (unsigned at = 1; at < shares_count; ++at) sum += ns[at];
    return sum;
}

std::int64_t Removable::total() const {
    std::map<Phase, std::int64_t> most;
    for (const auto& [key, ns] : ns_) {
        std::int64_t& phase = most[key.first];
        phase = std::max(phase, ns);
    }
    std::int64_t sum = 0;
    for (const auto& [phase, ns] : most) sum += ns;
    return sum;
}

std::size_t Removable::phases() const {
    std::set<Phase> phases;
    for (const auto& [key, ns] : ns_) phases.insert(key.first);
    return phases.size();
}

namespace {

using Meeting = std::pair<std::uint64_t, std::uint64_t>;  // region, barriers passed; or its end
constexpr std::uint64_t end_of_region = ~std::uint64_t{0};

/// When the last thread came to each meeting.
class LastArrivals {
public:
    explicit LastArrivals(const Recording& recording) {
        for (const Stream& stream : recording.streams) {
            for (const Event& event : stream.events) {
                if (event.kind == RecordKind::barrier_at)
                    note({event.first, event.second & 0xffff'ffff}, event.end_ns);
                if (event.kind == RecordKind::ends)
                    note({event.first, end_of_region}, event.end_ns);
            }
        }
    }
    std::optional<std::int64_t> of(const Meeting& meeting) const {
        const auto found = last_.find(meeting);
        if (found == last_.end()) return std::nullopt;
        return found->second;
    }

private:
    void note(const Meeting& meeting, std::int64_t at) {
        const auto [found, added] = last_.try_emplace(meeting, at);
        if (!added) found->second = std::max(found->second, at);
    }
    std::map<Meeting, std::int64_t> last_;
};

/// When the first thread was outside of regions: (begin, end), in order.
using Intervals = std::vector<std::pair<std::int64_t, std::int64_t>>;

Intervals serial_parts(const Recording& recording) {
    Intervals found;
    for (const Stream& stream : recording.streams) {
        if (stream.thread != 0) continue;
        std::int64_t since = 0;
        for (const Event& event : stream.events) {
            if (event.kind == RecordKind::fork) found.emplace_back(since, event.begin_ns);
            if (event.kind == RecordKind::join) since = event.end_ns;
        }
        found.emplace_back(since, recording.end_ns);
    }
    std::ranges::sort(found);
    return found;
}

std::int64_t overlap(const Intervals& intervals, std::int64_t begin, std::int64_t end) {
    std::int64_t sum = 0;
    auto at = std::ranges::upper_bound(intervals, begin, {}, &Intervals::value_type::second);
    for (; at != intervals.end() && at->first < end; ++at)
        sum += std::max<std::int64_t>(0, std::min(end, at->second) - std::max(begin, at->first));
    return sum;
}

std::optional<Share> share_of(RecordKind kind) {
    switch (kind) {
        case RecordKind::fault: return Share::faults;
        case RecordKind::release: return Share::releases;
        case RecordKind::acquire: return Share::acquires;
        case RecordKind::atomic: return Share::atomics;
        case RecordKind::lock:
        case RecordKind::unlock: return Share::locks;
        case RecordKind::barrier:
        case RecordKind::fork:
        case RecordKind::join:
        case RecordKind::idle:
        case RecordKind::wait: return Share::meetings;
        case RecordKind::task: return Share::computing;
        default: return std::nullopt;
    }
}

class StreamWalk {
public:
    StreamWalk(Analysis& analysis, std::uint32_t stream, const LastArrivals& arrivals,
               const Intervals& serial, std::vector<SyncRow>& rows)
        : analysis_(analysis),
          stream_(analysis.recording->streams[stream]),
          number_(stream),
          arrivals_(arrivals),
          serial_(serial),
          rows_(rows),
          phase_(phase_of(0, serial_part)) {
        phase_ |= serial_part;
        time_.node = stream_.node;
        time_.thread = static_cast<std::uint32_t>(stream_.thread) %
                       analysis.recording->threads_per_node_most();
        time_.stream = stream;
    }

    ThreadTime walk() {
        const std::int64_t end = analysis_.recording->end_ns;
        std::int64_t first_cpu = -1;
        for (const Event& event : stream_.events) {
            step(event);
            const bool has_cpu = event.kind == RecordKind::region ||
                                 event.kind == RecordKind::barrier_at ||
                                 event.kind == RecordKind::ends;
            if (!has_cpu) continue;
            if (first_cpu < 0) first_cpu = static_cast<std::int64_t>(event.extra);
            time_.cpu_ns = static_cast<std::int64_t>(event.extra) - first_cpu;
        }
        std::int64_t others = 0;
        for (unsigned at = 1; at < shares_count; ++at) others += time_.ns[at];
        time_.ns[0] = std::max<std::int64_t>(0, end - others);
        return time_;
    }

private:
    struct Span {
        std::int64_t begin, end;
    };

    /// What of `event` no span inside of it has.
    std::int64_t self_of(const Event& event) {
        const std::int64_t begin =
            std::clamp<std::int64_t>(event.begin_ns, 0, analysis_.recording->end_ns);
        const std::int64_t end =
            std::clamp<std::int64_t>(event.end_ns, 0, analysis_.recording->end_ns);
        std::int64_t inside = 0;
        while (!open_.empty() && open_.back().begin >= begin) {
            inside += open_.back().end - open_.back().begin;
            open_.pop_back();
        }
        // What overlaps, by the clock's grain, is the earlier one's.
        if (!open_.empty() && open_.back().end > begin) inside += open_.back().end - begin;
        open_.push_back({begin, std::max(begin, end)});
        return std::max<std::int64_t>(0, end - begin - inside);
    }

    void step(const Event& event) {
        if (event.kind == RecordKind::region && event.first != 0) {
            if (is_serial(phase_)) serial_place_ = event.place;
            phase_ = phase_of(event.first, 0);
        }
        const std::int64_t self = is_span(event.kind) ? self_of(event) : 0;
        analysis_.moments.push_back({&event, self, number_, phase_});
        if (const auto share = share_of(event.kind)) count(event, *share, self);
        if (event.kind == RecordKind::barrier && event.first != 0)
            phase_ = phase_of(event.first, (event.second & 0xffff'ffff) + 1);
        if (event.kind == RecordKind::join || event.kind == RecordKind::idle)
            phase_ = event.first << 20 | serial_part;
    }

    void count(const Event& event, Share share, std::int64_t self) {
        SyncRow& row = rows_[event.place];
        const auto add = [&](Share to, std::int64_t ns) {
            time_.ns[static_cast<unsigned>(to)] += ns;
            row.ns[static_cast<unsigned>(to)] += ns;
        };
        switch (event.kind) {
            case RecordKind::fault: ++row.faults; break;
            case RecordKind::release: row.merged += event.first & 0xffff'ffff; break;
            case RecordKind::acquire: row.stale += event.first & 0xffff'ffff; break;
            case RecordKind::barrier:
            case RecordKind::join:
            case RecordKind::idle:
            case RecordKind::lock: ++row.times; break;
            default: break;
        }
        if (share == Share::computing) return;  // a task inside of a wait
        if (share != Share::meetings) return add(share, self);
        const std::int64_t serial = std::min(
            self, stream_.thread == 0 ? 0 : overlap(serial_, event.begin_ns, event.end_ns));
        add(Share::serial, serial);
        const std::int64_t slower = std::min(self - serial, waits_for_slower(event));
        add(Share::slower, slower);
        add(Share::meetings, self - serial - slower);
    }

    std::int64_t waits_for_slower(const Event& event) const {
        std::optional<std::int64_t> last;
        if (event.kind == RecordKind::barrier)
            last = arrivals_.of({event.first, event.second & 0xffff'ffff});
        else if (event.kind == RecordKind::join || event.kind == RecordKind::idle)
            last = arrivals_.of({event.first, end_of_region});
        if (!last) return 0;
        return std::max<std::int64_t>(0, std::min(*last, event.end_ns) - event.begin_ns);
    }

    Analysis& analysis_;
    const Stream& stream_;
    std::uint32_t number_, serial_place_ = 0;
    const LastArrivals& arrivals_;
    const Intervals& serial_;
    std::vector<SyncRow>& rows_;
    Phase phase_;
    ThreadTime time_;
    std::vector<Span> open_;
};

}  // namespace

void look_at_threads(Analysis& analysis) {
    const Recording& recording = *analysis.recording;
    const LastArrivals arrivals(recording);
    const Intervals serial = serial_parts(recording);
    std::vector<SyncRow> rows(recording.places.size());
    for (std::size_t at = 0; at < rows.size(); ++at) rows[at].place = recording.places[at];
    std::set<std::uint64_t> regions;
    for (std::uint32_t at = 0; at < recording.streams.size(); ++at) {
        const Stream& stream = recording.streams[at];
        for (const Event& event : stream.events)
            if (event.kind == RecordKind::region && event.first != 0) regions.insert(event.first);
        if (stream.thread < 0) continue;
        analysis.threads.push_back(StreamWalk(analysis, at, arrivals, serial, rows).walk());
    }
    analysis.regions = regions.size();
    std::ranges::sort(analysis.threads, [](const ThreadTime& a, const ThreadTime& b) {
        return std::pair(a.node, a.thread) < std::pair(b.node, b.thread);
    });
    for (const ThreadTime& thread : analysis.threads)
        for (unsigned at = 0; at < shares_count; ++at) analysis.all[at] += thread.ns[at];
    std::erase_if(rows, [](const SyncRow& row) { return row.sum_ns() == 0; });
    std::ranges::stable_sort(rows,
                             [](const auto& a, const auto& b) { return a.sum_ns() > b.sum_ns(); });
    analysis.syncs = std::move(rows);
}

Analysis analyse(const Recording& recording) {
    Analysis analysis;
    analysis.recording = &recording;
    analysis.names =
        recording.names.empty() ? Names::of(recording) : Names::from_text(recording.names);
    analysis.wall_ns = recording.end_ns;
    look_at_threads(analysis);
    look_at_memory(analysis);
    advise_on_memory(analysis);
    advise_on_threads(analysis);
    const std::int64_t least = analysis.wall_ns / 50;
    std::erase_if(analysis.advice, [&](const Advice& each) { return each.saves_ns < least; });
    for (Advice& each : analysis.advice) each.saves_ns = std::min(each.saves_ns, analysis.wall_ns);
    // A guess stands behind what is sure and saves half as much.
    const auto weight = [](const Advice& each) {
        constexpr std::int64_t of_sure[] = {2, 4, 5};
        return each.saves_ns * of_sure[static_cast<unsigned>(each.sure)];
    };
    std::ranges::stable_sort(
        analysis.advice, [&](const Advice& a, const Advice& b) { return weight(a) > weight(b); });
    return analysis;
}

}  // namespace hiroba::tools
