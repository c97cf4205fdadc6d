// SPDX-License-Identifier: BSD-3-Clause
#include "tools/predict/work.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "tools/report/blocks.hpp"

namespace hiroba::tools {

namespace {

/// Blocks that a release locks at their homes together, and a fault brings together.
constexpr double together = 16;

/// The value that so many of `values` are below, of `of`.
double part_way(std::vector<double>& values, std::size_t part, std::size_t of) {
    if (values.empty()) return 0;
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() * part / of);
    std::ranges::nth_element(values, at);
    return *at;
}
double middle_of(std::vector<double>& values) { return part_way(values, 1, 2); }

/// What hiroba's own work on memory takes, without what disturbed it here and there.
struct OwnCosts {
    double fault = 0, fault_ahead = 0, release = 0, merged = 0, acquire = 0, stale = 0;
};

std::uint64_t low_half(std::uint64_t word) { return word & 0xffff'ffff; }

OwnCosts costs_of(const Analysis& analysis) {
    std::vector<double> fault, ahead, release, merged, acquire, stale;
    for (const Moment& moment : analysis.moments) {
        const Event& event = *moment.event;
        const auto self = static_cast<double>(moment.self_ns);
        const auto several = static_cast<double>(low_half(event.first));
        if (event.kind == RecordKind::fault) {
            const auto along = static_cast<double>(event.second >> 48);
            (along > 0 ? ahead : fault).push_back(self / (along + 1));
        } else if (event.kind == RecordKind::release) {
            (several > 0 ? merged : release).push_back(self / std::max(several, 1.));
        } else if (event.kind == RecordKind::acquire) {
            (several > 0 ? stale : acquire).push_back(self / std::max(several, 1.));
        }
    }
    return {middle_of(fault),  middle_of(ahead),   middle_of(release),
            middle_of(merged), middle_of(acquire), middle_of(stale)};
}

/// Which node changed a block last: it is its home then.
class LastWriters {
public:
    explicit LastWriters(const Analysis& analysis) {
        for (const Moment& moment : analysis.moments) {
            const Event& event = *moment.event;
            if (event.kind != RecordKind::merged && event.kind != RecordKind::given_up) continue;
            const std::uint64_t block = event.first / analysis.recording->block_bytes;
            changes_[block].push_back(
                {event.end_ns, analysis.recording->streams[moment.stream].node});
        }
        for (auto& [block, changes] : changes_) std::ranges::sort(changes);
    }
    std::optional<std::uint32_t> before(std::uint64_t block, std::int64_t ns) const {
        const auto found = changes_.find(block);
        if (found == changes_.end()) return std::nullopt;
        const auto at = std::ranges::lower_bound(found->second, ns, {}, &Change::first);
        if (at == found->second.begin()) return std::nullopt;
        return std::prev(at)->second;
    }

private:
    using Change = std::pair<std::int64_t, std::uint32_t>;
    std::map<std::uint64_t, std::vector<Change>> changes_;
};

class Reader {
public:
    Reader(const Analysis& analysis, const WorkWishes& wishes, WorkTable& table)
        : analysis_(analysis),
          recording_(*analysis.recording),
          table_(table),
          own_(costs_of(analysis)),
          writers_(analysis),
          crowded_(table.nodes * table.threads > table.cores * table.hosts) {
        if (wishes.without_false_sharing)
            for (const BlockStory& story : stories_of(analysis))
                if (sharing_of(story, recording_.block_bytes).is_false())
                    cured_.insert(story.block);
    }

    void read() {
        note_arrivals();
        const auto& moments = analysis_.moments;
        for (std::size_t at = 0; at < moments.size();) {
            std::size_t end = at;
            while (end < moments.size() && moments[end].stream == moments[at].stream) ++end;
            read_stream(at, end);
            at = end;
        }
        for (auto& [phase, stretch] : stretches_) {
            if (!stretch.closed) continue;
            table_.stretches.push_back(std::move(stretch.work));
        }
        for (std::size_t at = 0; at < meetings_.size(); ++at)
            table_.meeting_ns[at] = part_way(meetings_[at], 1, 4);
        double present = 0;
        for (const auto& [phase, ns] : present_ns_) present += ns;
        if (recording_.phases_left_out > 0 && present > 0)
            table_.scale = std::max(1., table_.measured_ns / present);
    }

private:
    struct Open {
        Stretch work;
        bool closed = false;
    };
    /// One thread between two meetings.
    struct Piece {
        std::optional<double> begin;  ///< unknown: what was before it is not in the recording
        std::vector<const Moment*> spans;
        double own_ns = 0;
        std::optional<double> cpu_begin, cpu_end;
        std::map<std::uint32_t, double> merges_at;
        double cured_merges = 0;                               ///< of the release that goes on
        std::optional<std::pair<std::uint64_t, double>> lock;  ///< that it holds: key, since
        std::uint32_t from = 0;                                ///< of the block that came last
    };

    ThreadWork* work_of(Phase phase) {
        const std::uint32_t number = node_ * table_.threads + thread_;
        if (number >= table_.nodes * table_.threads) return nullptr;
        Open& open = stretches_[phase];
        open.work.phase = phase;
        open.work.threads.resize(std::size_t{table_.nodes} * table_.threads);
        return &open.work.threads[number];
    }

    void read_stream(std::size_t begin, std::size_t end) {
        const Stream& stream = recording_.streams[analysis_.moments[begin].stream];
        node_ = stream.node;
        thread_ = static_cast<std::uint32_t>(stream.thread) % recording_.threads_per_node_most();
        piece_ = {};
        piece_.from = (node_ + 1) % table_.nodes;
        if (stream.thread == 0) piece_.begin = 0;
        for (std::size_t at = begin; at < end; ++at) step(analysis_.moments[at]);
        if (stream.thread == 0 && piece_.begin)
            close(Meeting::fork, analysis_.moments[end - 1].phase,
                  static_cast<double>(recording_.end_ns), static_cast<double>(recording_.end_ns));
    }

    void step(const Moment& moment) {
        const Event& event = *moment.event;
        const auto began = static_cast<double>(event.begin_ns);
        const auto ended = static_cast<double>(event.end_ns);
        switch (event.kind) {
            case RecordKind::sample: piece_.begin = ended; break;
            case RecordKind::region:
                note_cpu(event);
                if (event.first != 0) begin_at(ended);
                break;
            case RecordKind::ends:
            case RecordKind::barrier_at: note_cpu(event); break;
            case RecordKind::barrier:
                if (event.first == 0) break;  // of a team on one node
                close(Meeting::barrier, moment.phase, began, ended);
                note_meeting(moment, Meeting::barrier, low_half(event.second));
                break;
            case RecordKind::fork:
                close(Meeting::fork, moment.phase, began, ended);
                note_meeting(moment, Meeting::fork, at_begin);
                break;
            case RecordKind::join:
            case RecordKind::idle:
                if (is_serial(moment.phase) && event.kind == RecordKind::idle)
                    begin_at(ended);  // it waits for its first region
                else
                    close(Meeting::join, moment.phase, began, ended);
                if (event.kind == RecordKind::join) note_meeting(moment, Meeting::join, at_end);
                break;
            default: take(moment, began, ended);
        }
    }

    using Arrivals = std::map<std::pair<std::uint64_t, std::uint64_t>, std::int64_t>;
    static constexpr std::uint64_t at_begin = ~std::uint64_t{0}, at_end = at_begin - 1;

    void note_arrivals() {
        for (const Moment& moment : analysis_.moments) {
            const Event& event = *moment.event;
            std::uint64_t where = low_half(event.second);
            if (event.kind == RecordKind::region) where = at_begin;
            if (event.kind == RecordKind::ends) where = at_end;
            if (where < at_end && event.kind != RecordKind::barrier_at) continue;
            auto& last = arrivals_[{event.first, where}];
            last = std::max(last, event.end_ns);
        }
    }
    /// Notes what is left of a meeting when all have come; of a fork, until all have begun.
    void note_meeting(const Moment& moment, Meeting meeting, std::uint64_t where) {
        const Event& event = *moment.event;
        const auto found = arrivals_.find({event.first, where});
        if (found == arrivals_.end()) return;
        const auto itself = static_cast<double>(moment.self_ns);
        const auto apart = static_cast<double>(event.end_ns - found->second);
        meetings_[static_cast<unsigned>(meeting)].push_back(
            meeting == Meeting::fork ? itself + std::max(0., -apart)
                                     : std::max(0., std::min(itself, apart)));
    }

    void begin_at(double ns) {
        const auto cpu = piece_.cpu_end ? piece_.cpu_end : piece_.cpu_begin;
        const std::uint32_t from = piece_.from;
        piece_ = {};
        piece_.begin = ns;
        piece_.cpu_begin = cpu;
        piece_.from = from;
    }

    void note_cpu(const Event& event) {
        const auto cpu = static_cast<double>(event.extra);
        (piece_.cpu_begin ? piece_.cpu_end : piece_.cpu_begin) = cpu;
    }

    /// The thread has come to a meeting at `began`, and leaves it at `ended`.
    void close(Meeting end, Phase phase, double began, double ended) {
        ThreadWork* const work = piece_.begin ? work_of(phase) : nullptr;
        if (work != nullptr) {
            let_go(*work, began);
            double inside = 0;
            for (const Moment* const each : piece_.spans)
                if (static_cast<double>(each->event->begin_ns) < began)
                    inside += static_cast<double>(each->self_ns);
            work->computing_ns += computing_in(began - *piece_.begin, inside);
            work->memory_ns += piece_.own_ns;
            for (const auto& [node, merges] : piece_.merges_at)
                work->of_node[node].exchanges += std::ceil(merges / together);
            Open& open = stretches_[phase];
            open.closed = true;
            if (!is_serial(phase)) open.work.end = end;
            if (node_ == 0 && thread_ == 0) present_ns_[phase] += ended - *piece_.begin;
        }
        begin_at(ended);
    }

    /// @param all     how long the piece was
    /// @param inside  of that, spans
    double computing_in(double all, double inside) const {
        const double computing = std::max(0., all - inside);
        if (!piece_.cpu_begin || !piece_.cpu_end) return computing;
        const double cpu = *piece_.cpu_end - *piece_.cpu_begin;
        if (!crowded_) return std::min(computing, cpu);
        // Where cores are short, the thread has had less of one than time has passed.
        const double evenly = all > 0 ? cpu * computing / all : cpu;
        return std::min(computing, std::max(cpu - piece_.own_ns, evenly));
    }

    /// What hiroba's own work took; where cores are short others' turns are in it, but not in what
    /// such work usually takes.
    double own_part_of(const Moment& moment, double usual) const {
        const auto self = static_cast<double>(moment.self_ns);
        return crowded_ ? std::min(self, usual) : self;
    }

    void let_go(ThreadWork& work, double ns) {
        if (piece_.lock) work.locks[piece_.lock->first].held_ns += ns - piece_.lock->second;
        piece_.lock.reset();
    }

    void take(const Moment& moment, double began, double ended) {
        const Event& event = *moment.event;
        ThreadWork* const work = work_of(moment.phase);
        if (work == nullptr) return;
        if (is_span(event.kind) && event.kind != RecordKind::task) piece_.spans.push_back(&moment);
        const std::uint64_t block = event.first / recording_.block_bytes;
        const auto several = static_cast<double>(low_half(event.first));
        switch (event.kind) {
            case RecordKind::fault: take_fault(moment, *work); break;
            case RecordKind::release: take_release(moment, several); break;
            case RecordKind::acquire:
                piece_.own_ns +=
                    own_part_of(moment, several > 0 ? own_.stale * several : own_.acquire);
                break;
            case RecordKind::fetched:
                if (low_half(event.second) >= table_.nodes || is_cured(event.first)) break;
                piece_.from = static_cast<std::uint32_t>(low_half(event.second));
                if (piece_.from == node_) break;
                work->of_node[piece_.from].bytes += static_cast<double>(event.second >> 32);
                break;
            case RecordKind::merged: {
                const auto home = writers_.before(block, event.end_ns);
                if (is_cured(event.first))
                    piece_.cured_merges += 1;
                else if (home && *home != node_)
                    piece_.merges_at[*home] += 1;
                break;
            }
            case RecordKind::atomic: work->of_node[someone_else()].exchanges += 2; break;
            case RecordKind::lock:
                let_go(*work, began);
                work->locks[event.first].takes += 1;
                piece_.lock = {event.first, ended};
                break;
            case RecordKind::unlock: let_go(*work, began); break;
            default: break;
        }
    }

    void take_release(const Moment& moment, double merges) {
        const double own = own_part_of(moment, merges > 0 ? own_.merged * merges : own_.release);
        const double cured = std::min(piece_.cured_merges, merges);
        piece_.own_ns += merges > 0 ? own * (1 - cured / merges) : own;
        piece_.cured_merges = 0;
    }

    void take_fault(const Moment& moment, ThreadWork& work) {
        const Event& event = *moment.event;
        const std::uint64_t address = event.first & low_48;
        if (is_cured(address)) return;
        const auto along = static_cast<double>(event.second >> 48);
        piece_.own_ns +=
            own_part_of(moment, along > 0 ? own_.fault_ahead * (along + 1) : own_.fault);
        const auto ways = static_cast<unsigned>(event.first >> 56);
        const auto went = [ways](FaultWay way) { return (ways & static_cast<unsigned>(way)) != 0; };
        const bool fetched = went(FaultWay::by_notice) || went(FaultWay::by_home);
        if (!fetched && !went(FaultWay::renewed) && along == 0) return;
        // What it reads first, and the lease; by a remembered notice both are one.
        double exchanges = went(FaultWay::by_notice) || !fetched ? 1 : 2;
        if (along > 0) exchanges = 2 * std::ceil((along + 1) / together);
        if (went(FaultWay::pulled)) exchanges += 1;
        work.of_node[someone_else()].exchanges += exchanges;
    }

    std::uint32_t someone_else() const {
        return piece_.from != node_ ? piece_.from : (node_ + 1) % table_.nodes;
    }
    bool is_cured(std::uint64_t address) const {
        return cured_.contains(address / recording_.block_bytes * recording_.block_bytes);
    }

    const Analysis& analysis_;
    const Recording& recording_;
    WorkTable& table_;
    OwnCosts own_;
    LastWriters writers_;
    std::set<std::uint64_t> cured_;
    std::map<Phase, Open> stretches_;
    std::map<Phase, double> present_ns_;
    std::array<std::vector<double>, 3> meetings_;
    Arrivals arrivals_;
    bool crowded_;  ///< there were fewer cores than threads
    std::uint32_t node_ = 0, thread_ = 0;
    Piece piece_;
};

Error nothing_in_it(const char* why) {
    return {ErrorKind::environment,
            std::string("this recording cannot be replayed: ") + why +
                ". Record a whole run of two nodes or more: hiroba run -n 2 --record FILE ..."};
}

void note_what_lacks(const Recording& recording, WorkTable& table) {
    std::set<std::uint64_t> hosts;
    for (const RecordedNode& node : recording.nodes) {
        if (!node.is_there) continue;
        hosts.insert(node.host_number);
        table.cores = std::max<std::uint32_t>(1, node.cores);
    }
    table.hosts = static_cast<std::uint32_t>(hosts.size());
    table.notes = recording.notes;
    if (table.hosts > 1)
        table.notes.emplace_back(
            "it was recorded on several hosts: their network is part of what hiroba itself takes. "
            "Record on one host, where nodes share memory");
    else if (table.nodes * table.threads > table.cores)
        table.notes.emplace_back(
            "it was recorded with more threads than cores: what threads compute is taken from "
            "their processor time, which is coarse");
}

}  // namespace

Result<WorkTable> work_of(const Analysis& analysis, const WorkWishes& wishes) {
    const Recording& recording = *analysis.recording;
    WorkTable table;
    table.nodes = recording.job.nodes;
    if (table.nodes < 2)
        return nothing_in_it("it is of one node, which brings nothing from another");
    for (const RecordedNode& node : recording.nodes)
        if (!node.is_there) return nothing_in_it("what some of its nodes did is missing");
    constexpr std::uint32_t threads_most = 4096;
    for (const ThreadTime& thread : analysis.threads)
        table.threads = std::max(table.threads, std::min(thread.thread + 1, threads_most));
    table.measured_ns = static_cast<double>(analysis.wall_ns);
    note_what_lacks(recording, table);
    Reader(analysis, wishes, table).read();
    if (table.stretches.empty()) return nothing_in_it("it has no region");
    return table;
}

}  // namespace hiroba::tools
