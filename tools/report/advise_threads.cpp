// SPDX-License-Identifier: BSD-3-Clause
// Role: who waits for whom, and for nothing: advice by synchronization.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "base/sync_place.hpp"
#include "tools/report/analysis.hpp"

namespace hiroba::tools {

namespace {

/// What all threads did between two meetings.
struct Interval {
    std::uint32_t place = 0;                           ///< of the meeting at its end
    bool is_end = false;                               ///< of a region
    std::map<std::uint32_t, std::int64_t> computing;   ///< by stream
    std::int64_t arrivals_ns = 0;                      ///< added up, of those in `computing`
    std::int64_t meeting_ns = 0, waiting_ns = 0;       ///< of all threads, at its end
    std::int64_t last_arrival_ns = 0, longest_ns = 0;  ///< longest: that a thread was at work
    unsigned slow_atomics = 0, locks = 0, brought = 0;
    std::uint64_t atomics = 0;  ///< of all nodes
};

class ThreadAdvice {
public:
    explicit ThreadAdvice(Analysis& analysis) : analysis_(analysis) {}

    void give() {
        for (const Moment& moment : analysis_.moments) take(moment);
        look_at_cores();
        look_at_processors();
        look_at_balance();
        look_at_regions();
        look_at_barriers();
        look_at_locks();
        look_at_atomics();
        look_at_many_atomics();
    }

private:
    void tell(std::string illness, std::string what, std::string cure, std::string line,
              std::int64_t saves_ns, Advice::Sure sure) {
        analysis_.advice.push_back({std::move(illness), std::move(what), std::move(cure),
                                    std::move(line), saves_ns, sure});
    }
    std::string at(std::uint32_t place) const {
        return analysis_.names.place(analysis_.recording->places[place]);
    }
    std::size_t threads() const { return std::max<std::size_t>(analysis_.threads.size(), 1); }

    /// What a thread has done since its last meeting.
    struct Since {
        std::int64_t begin = 0, busy_elsewhere = 0, cpu = 0;
        bool inside = false;
    };

    void take(const Moment& moment) {
        const Event& event = *moment.event;
        Since& since = since_[moment.stream];
        switch (event.kind) {
            case RecordKind::region:
                since = {event.end_ns, 0, static_cast<std::int64_t>(event.extra), true};
                break;
            case RecordKind::barrier_at:
            case RecordKind::ends: arrive(moment, since); break;
            case RecordKind::barrier:
            case RecordKind::join:
            case RecordKind::idle:
                intervals_[moment.phase].meeting_ns += moment.self_ns;
                since = {event.end_ns, 0, since.cpu, event.kind == RecordKind::barrier};
                break;
            case RecordKind::lock:
                ++intervals_[moment.phase].locks;
                times_locked_[event.place] = std::max(times_locked_[event.place], event.second);
                locks_[event.place].add(moment.phase, moment.stream, moment.self_ns);
                since.busy_elsewhere += moment.self_ns;
                break;
            case RecordKind::atomic:
                ++intervals_[moment.phase].slow_atomics;
                since.busy_elsewhere += moment.self_ns;
                break;
            case RecordKind::fetched: ++intervals_[moment.phase].brought; break;
            case RecordKind::task: break;
            case RecordKind::atomics: {
                std::uint64_t& before = atomics_[analysis_.recording->streams[moment.stream].node];
                if (event.first > before) intervals_[moment.phase].atomics += event.first - before;
                before = std::max(before, event.first);
                break;
            }
            default: since.busy_elsewhere += moment.self_ns;
        }
    }
    void arrive(const Moment& moment, Since& since) {
        const Event& event = *moment.event;
        Interval& interval = intervals_[moment.phase];
        interval.place = event.place;
        interval.is_end = event.kind == RecordKind::ends;
        interval.last_arrival_ns = std::max(interval.last_arrival_ns, event.end_ns);
        if (since.inside) {
            const std::int64_t wall = event.end_ns - since.begin - since.busy_elsewhere;
            const std::int64_t cpu = static_cast<std::int64_t>(event.extra) - since.cpu;
            interval.computing[moment.stream] =
                std::clamp<std::int64_t>(std::min(wall, cpu), 0, wall < 0 ? 0 : wall);
            interval.arrivals_ns += event.end_ns;
            interval.longest_ns = std::max(interval.longest_ns, wall);
            wall_ns_ += std::max<std::int64_t>(wall, 0);
            cpu_ns_ += interval.computing[moment.stream];
        }
        since.cpu = static_cast<std::int64_t>(event.extra);
    }

    /// More threads than cores: they wait for their turn, at each meeting.
    void look_at_cores() {
        struct Host {
            std::uint32_t threads = 0, cores = 0;
            std::array<std::uint64_t, 4> processors{};
        };
        std::map<std::string, Host> hosts;
        for (const RecordedNode& node : analysis_.recording->nodes) {
            if (!node.is_there || node.cores == 0) continue;
            Host& host = hosts[node.host];
            host.threads += analysis_.recording->job.threads;
            std::uint32_t together = 0;  // nodes may be bound to a processor each
            for (std::size_t i = 0; i < host.processors.size(); ++i) {
                host.processors[i] |= node.processors[i];
                together += static_cast<std::uint32_t>(std::popcount(host.processors[i]));
            }
            host.cores = std::max({host.cores, node.cores, together});
        }
        for (const auto& [host, counts] : hosts) {
            const std::uint32_t wanted = counts.threads, cores = counts.cores;
            if (wanted <= cores) continue;
            const std::int64_t computing = analysis_.all[0];
            const auto vain = static_cast<std::int64_t>(static_cast<double>(analysis_.wall_ns) *
                                                        (1. - static_cast<double>(cores) / wanted));
            const std::int64_t waiting = analysis_.all[static_cast<unsigned>(Share::slower)] +
                                         analysis_.all[static_cast<unsigned>(Share::meetings)];
            const auto saves =
                std::min(vain, (waiting + computing / 10) / static_cast<std::int64_t>(threads()));
            tell("more threads than cores",
                 fmt::format("{} threads on the {} cores of {}", wanted, cores, host),
                 "start fewer: nodes times threads as many as cores (hiroba run -n, -t)",
                 fmt::format("hiroba run -n {} -t {}", analysis_.recording->job.nodes,
                             analysis_.recording->job.threads),
                 saves, Advice::Sure::high);
        }
    }

    /// Threads that compute, but not by the clock of their processor.
    void look_at_processors() {
        constexpr std::int64_t percent_least = 85;
        const std::int64_t all = analysis_.wall_ns * static_cast<std::int64_t>(threads());
        if (wall_ns_ * 20 < all || cpu_ns_ * 100 >= wall_ns_ * percent_least) return;
        analysis_.busy = fmt::format(
            "threads had a processor for {} % of what counts as computing in regions: they shared "
            "the cores, with each other or with other programs, or waited for files",
            cpu_ns_ * 100 / wall_ns_);
    }

    /// At one place the same threads, or changing ones, have more to do, and others wait for them:
    /// a dynamic loop gives more to whom other programs leave a processor, and nobody waits.
    void look_at_balance() {
        struct Sum {
            std::int64_t most = 0, mean = 0, saves = 0;
            unsigned times = 0;
        };
        std::map<std::uint32_t, Sum> sums;
        for (const auto& [phase, interval] : intervals_) {
            if (interval.computing.size() < 2) continue;
            std::int64_t most = 0, all = 0;
            for (const auto& [stream, ns] : interval.computing)
                most = std::max(most, ns), all += ns;
            const auto count = static_cast<std::int64_t>(interval.computing.size());
            const std::int64_t waited = interval.last_arrival_ns - interval.arrivals_ns / count;
            Sum& sum = sums[interval.place];
            sum.most += most;
            sum.mean += all / count;
            sum.saves += std::min(most - all / count, waited);
            ++sum.times;
        }
        for (const auto& [place, sum] : sums) {
            if (sum.saves * 4 < sum.mean) continue;  // the last comes a quarter later
            tell("unbalanced loop",
                 fmt::format("the thread that has most computes {:.1f} times as long as the mean, "
                             "{} time{}",
                             static_cast<double>(sum.most) /
                                 static_cast<double>(std::max<std::int64_t>(sum.mean, 1)),
                             sum.times, sum.times == 1 ? "" : "s"),
                 "schedule(static, chunk) with chunks of some pages, or schedule(dynamic, chunk) "
                 "where the data are small",
                 at(place), sum.saves, Advice::Sure::high);
        }
    }

    static std::int64_t median(std::vector<std::int64_t>& values) {
        const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
        std::ranges::nth_element(values, middle);
        return *middle;
    }

    /// Regions whose beginning and end take longer than what is done in them.
    void look_at_regions() {
        struct Sum {
            std::int64_t computing = 0, own = 0;
            unsigned times = 0;
        };
        std::map<std::uint32_t, std::vector<std::int64_t>> computing_at, own_at;
        std::map<std::uint64_t, std::uint32_t> place_of_region;
        std::map<std::uint64_t, std::int64_t> computing;
        for (const auto& [phase, interval] : intervals_) {
            std::int64_t most = 0;
            for (const auto& [stream, ns] : interval.computing) most = std::max(most, ns);
            computing[region_of(phase)] += most;
            if (interval.is_end) place_of_region[region_of(phase)] = interval.place;
        }
        std::map<std::uint64_t, std::int64_t> own;  // what the first thread spends on it
        for (const Moment& moment : analysis_.moments) {
            if (analysis_.recording->streams[moment.stream].thread != 0) continue;
            const Event& event = *moment.event;
            if (event.kind == RecordKind::fork) own[event.first] += moment.self_ns;
            if (event.kind != RecordKind::join) continue;
            // What follows the last arrival, without what the data take.
            const auto interval = intervals_.find(moment.phase);
            const std::int64_t last =
                interval == intervals_.end() ? 0 : interval->second.last_arrival_ns;
            own[event.first] += std::min(
                moment.self_ns, event.end_ns - std::clamp(last, event.begin_ns, event.end_ns));
        }
        for (const auto& [region, place] : place_of_region) {
            computing_at[place].push_back(computing[region]);
            own_at[place].push_back(own[region]);
        }
        constexpr unsigned times_least = 20;
        Sum all;
        std::vector<std::pair<std::int64_t, std::uint32_t>> small;  // the dearest first
        for (auto& [place, owns] : own_at) {
            std::vector<std::int64_t>& works = computing_at[place];
            // Not by what is lost while another program has a thread's processor.
            if (owns.size() < times_least || median(owns) < median(works)) continue;
            const Sum sum{std::accumulate(works.begin(), works.end(), std::int64_t{0}),
                          std::accumulate(owns.begin(), owns.end(), std::int64_t{0}),
                          static_cast<unsigned>(owns.size())};
            all.computing += sum.computing;
            all.own += sum.own;
            all.times += sum.times;
            small.emplace_back(-sum.own, place);
        }
        if (small.empty()) return;
        std::ranges::sort(small);
        tell("regions too small",
             fmt::format(
                 "{} regions of {:.1f} us of work each, whose beginning and end take {:.1f} "
                 "us{}",
                 all.times, static_cast<double>(all.computing) / all.times / 1e3,
                 static_cast<double>(all.own) / all.times / 1e3,
                 small.size() == 1 ? ""
                                   : fmt::format(", at {} places: this one, {}{}", small.size(),
                                                 analysis_.names.code(code_of_place(
                                                     analysis_.recording->places[small[1].second])),
                                                 small.size() == 2 ? "" : " ...")),
             "one region around the loop that has them, with barriers where they are needed",
             at(small.front().second), all.own * 3 / 4, Advice::Sure::medium);
    }

    /// Barriers behind which no node uses what another one wrote.
    void look_at_barriers() {
        struct Sum {
            std::int64_t ns = 0;
            unsigned times = 0, needed = 0;
        };
        std::map<std::uint32_t, Sum> sums;
        for (auto at = intervals_.begin(); at != intervals_.end(); ++at) {
            const auto& [phase, interval] = *at;
            if (interval.is_end || interval.place == 0 || is_serial(phase)) continue;
            Sum& sum = sums[interval.place];
            ++sum.times;
            sum.ns += interval.meeting_ns;
            const auto next = intervals_.find(phase + 1);
            const bool needed = interval.brought > 0 ||
                                (next != intervals_.end() &&
                                 (next->second.brought > 0 || next->second.slow_atomics > 0));
            sum.needed += needed;
        }
        constexpr unsigned times_least = 8;
        for (const auto& [place, sum] : sums) {
            if (sum.times < times_least || sum.needed * 20 > sum.times) continue;
            tell("barrier that nobody needs",
                 fmt::format("{} times, behind {} of which a node used what another had written",
                             sum.times, sum.needed),
                 "leave it out (nowait, or no barrier) if each thread goes on with what it wrote "
                 "itself",
                 this->at(place), sum.ns / static_cast<std::int64_t>(threads()), Advice::Sure::low);
        }
    }

    /// Reductions of several variables end in one, once a thread: the private sum is there already.
    void look_at_locks() {
        constexpr std::uint64_t times_least = 8;  // of a thread
        for (const auto& [place, removable] : locks_) {
            const std::uint64_t times = times_locked_[place];
            if (times < times_least * threads()) continue;
            const bool reduces =
                times * 4 <= removable.phases() * 5 * analysis_.recording->threads_per_node_most();
            const std::string cure =
                reduces ? "each thread takes it once between two barriers, as a reduction does: "
                          "reduce less often"
                        : "do more between two locks; collect in a private variable and take the "
                          "lock once; or a reduction";
            tell("hot lock",
                 fmt::format("threads wait for each other at a lock; a node took locks {} times",
                             times),
                 cure, at(place), removable.total(),
                 reduces ? Advice::Sure::low : Advice::Sure::high);
        }
    }
    /// Many atomics on one word, or a few of each thread between many barriers.
    void look_at_atomics() {
        struct Found {
            Removable ns;
            std::uint64_t times = 0;
            std::set<Phase> phases;
            std::map<std::uint32_t, std::int64_t> places;
        };
        std::map<std::uint32_t, Found> found;
        for (const Touch& touch : analysis_.touches) {
            if (touch.kind != Touch::Kind::atomic) continue;
            Found& each = found[touch.variable];
            each.ns.add(touch.phase, touch.stream, touch.cost_ns);
            ++each.times;
            each.phases.insert(touch.phase);
            each.places[touch.place] += touch.cost_ns;
        }
        for (const auto& [variable, each] : found) {
            const VariableRow& row = analysis_.variables[variable];
            const auto place = std::ranges::max_element(each.places, {}, [](const auto& p) {
                                   return p.second;
                               })->first;
            constexpr std::size_t phases_least = 16;
            const bool inner = each.phases.size() >= phases_least &&
                               each.times <= each.phases.size() * threads() * 2;
            const bool is_plain = row.where == VariableRow::Where::named || row.line.empty();
            const std::string whose = is_plain ? row.name : row.name + " " + row.line;
            if (inner)
                tell("reduction in an inner loop",
                     fmt::format("{}: each thread adds to it between each two of {} barriers",
                                 whose, each.phases.size()),
                     "let each thread sum up over the outer loop and reduce once behind it",
                     at(place), each.ns.total() + meetings_in(each.phases), Advice::Sure::medium);
            else
                tell("shared counter",
                     fmt::format("{}: {} atomics had to fetch it from another node", whose,
                                 each.times),
                     "count in a private variable and add once: reduction(+: ...), for an array "
                     "reduction(+: array[:count])",
                     at(place), each.ns.total(), Advice::Sure::high);
        }
    }
    /// Such as went elsewhere are told of by their variable. The others take their time as well.
    void look_at_many_atomics() {
        constexpr std::int64_t atomic_ns = 300;
        constexpr std::uint64_t times_least = 10'000;
        struct Sum {
            std::uint64_t times = 0;
            std::int64_t longest_ns = 0;  // which they are part of
        };
        std::map<std::uint32_t, Sum> by_place;
        for (const auto& [phase, interval] : intervals_) {
            Sum& sum = by_place[interval.place];
            sum.times += interval.atomics;
            sum.longest_ns += interval.longest_ns;
        }
        for (const auto& [place, sum] : by_place) {
            if (sum.times < times_least) continue;
            const std::int64_t each_ns = static_cast<std::int64_t>(std::min(
                static_cast<double>(sum.times) * atomic_ns / static_cast<double>(threads()),
                static_cast<double>(sum.longest_ns)));
            tell("shared counter",
                 fmt::format("{} atomics, of which one takes up to {} ns", sum.times, atomic_ns),
                 "count in a private variable and add once: reduction(+: ...), for an array "
                 "reduction(+: array[:count])",
                 at(place), each_ns, Advice::Sure::medium);
        }
    }
    std::int64_t meetings_in(const std::set<Phase>& phases) const {
        std::int64_t sum = 0;
        for (const Phase phase : phases) {
            const auto found = intervals_.find(phase);
            if (found != intervals_.end()) sum += found->second.meeting_ns;
        }
        return sum / static_cast<std::int64_t>(threads());
    }

    Analysis& analysis_;
    std::int64_t wall_ns_ = 0, cpu_ns_ = 0;  ///< of computing in regions
    std::map<std::uint32_t, Since> since_;
    std::map<Phase, Interval> intervals_;
    std::map<std::uint32_t, Removable> locks_;
    std::map<std::uint32_t, std::uint64_t> times_locked_;  ///< any, on one node
    std::map<std::uint32_t, std::uint64_t> atomics_;       ///< by node, so far
};

}  // namespace

void advise_on_threads(Analysis& analysis) { ThreadAdvice(analysis).give(); }

}  // namespace hiroba::tools
