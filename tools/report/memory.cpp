// SPDX-License-Identifier: BSD-3-Clause
// Role: what happened to each block, and to the variables that lie in them.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "tools/report/blocks.hpp"

namespace hiroba::tools {

namespace {

/// Which variable an address belongs to, as a row of the analysis.
class VariableRows {
public:
    explicit VariableRows(Analysis& analysis)
        : analysis_(analysis), recording_(*analysis.recording) {}

    /// @param exact  false: some variable of the block is meant, the first there is
    std::uint32_t of(std::uint64_t address, std::uint64_t block, std::int64_t at_ns, bool exact) {
        const StackArea& stacks = recording_.stacks;
        if (stacks.bytes_each > 0 && address - stacks.address < stacks.bytes_each * stacks.count)
            return stack((address - stacks.address) / stacks.bytes_each);
        if (const RecordedBlock* const allocation = allocation_at(address, at_ns))
            return heap(*allocation);
        if (const Variable* const variable = analysis_.names.variable(address))
            return named(*variable);
        const std::uint64_t end = block + recording_.block_bytes;
        if (!exact) {
            const Variable* const variable = analysis_.names.first_in(block, end);
            if (variable != nullptr) return named(*variable);
            if (const RecordedBlock* const next = allocation_in(block, end)) return heap(*next);
        }
        return row("unknown", [](VariableRow& made) {
            made.name = "small blocks of the heap, and what else has no name";
        });
    }

private:
    template <class Make>
    std::uint32_t row(const std::string& key, Make&& make) {
        const auto [at, added] =
            rows_.try_emplace(key, static_cast<std::uint32_t>(analysis_.variables.size()));
        if (added) {
            analysis_.variables.emplace_back();
            make(analysis_.variables.back());
        }
        return at->second;
    }
    std::uint32_t stack(std::uint64_t thread) {
        return row(fmt::format("stack {}", thread), [&](VariableRow& made) {
            const std::uint32_t most = recording_.threads_per_node_most();
            made.name = fmt::format("stack of thread {} of node {}", thread % most, thread / most);
            made.where = VariableRow::Where::stack;
            made.bytes = recording_.stacks.bytes_each;
        });
    }
    std::uint32_t heap(const RecordedBlock& allocation) {
        const std::uint32_t at =
            row(fmt::format("heap {}", allocation.site), [&](VariableRow& made) {
                made.name = "heap block";
                made.line = analysis_.names.code(allocation.site - 1);
                made.where = VariableRow::Where::heap;
            });
        std::uint64_t& bytes = analysis_.variables[at].bytes;
        bytes = std::max(bytes, allocation.bytes);
        return at;
    }
    std::uint32_t named(const Variable& variable) {
        return row(fmt::format("named {}", variable.address), [&](VariableRow& made) {
            made.name = variable.name;
            made.line = variable.line;
            made.where = VariableRow::Where::named;
            made.bytes = variable.bytes;
        });
    }

    /// The latest that was made by then and holds `address`.
    const RecordedBlock* allocation_at(std::uint64_t address, std::int64_t at_ns) const {
        const auto& all = recording_.allocations;
        auto at = std::ranges::upper_bound(all, address, {}, &RecordedBlock::address);
        const RecordedBlock* best = nullptr;
        for (unsigned looks = 0; at != all.begin() && looks < 64; ++looks) {
            --at;
            if (address - at->address >= at->bytes) {
                if (best != nullptr) break;
                continue;
            }
            if (best == nullptr || at->at_ns <= at_ns) best = &*at;
            if (at->at_ns <= at_ns) break;
        }
        return best;
    }
    const RecordedBlock* allocation_in(std::uint64_t address, std::uint64_t end) const {
        const auto& all = recording_.allocations;
        const auto at = std::ranges::lower_bound(all, address, {}, &RecordedBlock::address);
        return at != all.end() && at->address < end ? &*at : nullptr;
    }

    Analysis& analysis_;
    const Recording& recording_;
    std::map<std::string, std::uint32_t> rows_;
};

/// Makes touches of the events of one thread.
class TouchMaker {
public:
    TouchMaker(Analysis& analysis, VariableRows& rows) : analysis_(analysis), rows_(rows) {}

    void take(const Event& event, std::int64_t self_ns, std::uint32_t stream, Phase phase) {
        now_ = {&event, self_ns, stream, phase};
        switch (event.kind) {
            case RecordKind::fault: fault(event); break;
            case RecordKind::merged:
            case RecordKind::given_up:
                add(event.first, event.first,
                    event.kind == RecordKind::merged ? Touch::Kind::merged : Touch::Kind::given_up,
                    event.second, 0);
                last().shape = ChangeShape::of(event.extra);
                last().address = event.first + last().shape.first;
                last().variable = rows_.of(last().address, last().block, event.end_ns, true);
                merged_.push_back(analysis_.touches.size() - 1);
                break;
            case RecordKind::fetched:
                add(event.first, event.first, Touch::Kind::fetched, event.second & 0xffff'ffff, 0);
                last().bytes = event.second >> 32;
                last().variable = none;
                fetched_.push_back(analysis_.touches.size() - 1);
                break;
            case RecordKind::exclusive:
                add(event.first, event.first, Touch::Kind::exclusive, 0, 0);
                last().variable = none;
                break;
            case RecordKind::atomic:
                add(event.first, event.first, Touch::Kind::atomic, event.second, self_ns);
                last().variable = rows_.of(event.first, last().block, event.end_ns, true);
                break;
            case RecordKind::release:
                share_out(merged_, event, self_ns);
                fetched_.clear();
                break;
            case RecordKind::acquire: share_out(fetched_, event, self_ns); break;
            default: break;
        }
    }
    static constexpr std::uint32_t none = ~std::uint32_t{0};

private:
    Touch& last() { return analysis_.touches.back(); }

    void add(std::uint64_t address, std::uint64_t, Touch::Kind kind, std::uint64_t detail,
             std::int64_t cost_ns) {
        const std::uint64_t bytes = analysis_.recording->block_bytes;
        Touch touch;
        touch.block = address / bytes * bytes;
        touch.address = address;
        touch.at_ns = now_.event->end_ns;
        touch.cost_ns = cost_ns;
        touch.phase = now_.phase;
        touch.stream = now_.stream;
        touch.node = analysis_.recording->streams[now_.stream].node;
        touch.kind = kind;
        touch.place = now_.event->place;
        touch.detail = detail;
        analysis_.touches.push_back(touch);
    }

    void fault(const Event& event) {
        const bool write = (event.first >> 56 & static_cast<unsigned>(FaultWay::write)) != 0;
        const std::uint64_t address = event.first & low_48;
        add(address, address, write ? Touch::Kind::write_fault : Touch::Kind::read_fault,
            event.second & low_48, now_.self_ns);
        last().variable = rows_.of(address, last().block, event.end_ns, true);
        // What it brought of other blocks came for the same variable, most likely.
        const std::uint32_t variable = last().variable;
        for (const std::size_t at : fetched_)
            if (analysis_.touches[at].at_ns >= event.begin_ns)
                analysis_.touches[at].variable = variable;
        fetched_.clear();
    }

    /// A release's time is that of what it merged, an acquire's of what it brought.
    void share_out(std::vector<std::size_t>& pending, const Event& event, std::int64_t self_ns) {
        std::erase_if(pending,
                      [&](std::size_t at) { return analysis_.touches[at].at_ns < event.begin_ns; });
        for (const std::size_t at : pending)
            analysis_.touches[at].cost_ns += self_ns / static_cast<std::int64_t>(pending.size());
        pending.clear();
    }

    Analysis& analysis_;
    VariableRows& rows_;
    Moment now_;
    std::vector<std::size_t> merged_, fetched_;
};

/// In which phase a node's first thread is when.
class PhasesOfNode {
public:
    void note(std::int64_t at, Phase phase) {
        if (changes_.empty() || changes_.back().second != phase) changes_.emplace_back(at, phase);
    }
    Phase at(std::int64_t ns) const {
        auto found =
            std::ranges::upper_bound(changes_, ns, {}, &std::pair<std::int64_t, Phase>::first);
        return found == changes_.begin() ? serial_part : (found - 1)->second;
    }

private:
    std::vector<std::pair<std::int64_t, Phase>> changes_;
};

/// Blocks that came in bulk are of the variable that was last seen to be used there.
void name_the_rest(Analysis& analysis, VariableRows& rows) {
    auto& touches = analysis.touches;
    for (std::size_t begin = 0; begin < touches.size();) {
        std::size_t end = begin;
        std::uint32_t known = TouchMaker::none;
        for (; end < touches.size() && touches[end].block == touches[begin].block; ++end)
            if (known == TouchMaker::none) known = touches[end].variable;
        if (known == TouchMaker::none)
            known =
                rows.of(touches[begin].block, touches[begin].block, touches[begin].at_ns, false);
        for (; begin < end; ++begin) {
            if (touches[begin].variable == TouchMaker::none)
                touches[begin].variable = known;
            else
                known = touches[begin].variable;
        }
    }
}

void add_up(Analysis& analysis) {
    for (const Touch& touch : analysis.touches) {
        VariableRow& row = analysis.variables[touch.variable];
        row.blocks.insert(touch.block);
        switch (touch.kind) {
            case Touch::Kind::read_fault:
            case Touch::Kind::write_fault: {
                const bool write = touch.kind == Touch::Kind::write_fault;
                ++(write ? row.write_faults : row.read_faults);
                (write ? row.writers : row.readers).insert(touch.node);
                row.fault_ns += touch.cost_ns;
                row.by_code[touch.detail] += touch.cost_ns;
                break;
            }
            case Touch::Kind::merged:
            case Touch::Kind::given_up:
                ++row.merged;
                row.writers.insert(touch.node);
                row.release_ns += touch.cost_ns;
                break;
            case Touch::Kind::fetched:
                row.fetched_bytes += touch.bytes;
                row.readers.insert(touch.node);
                row.acquire_ns += touch.cost_ns;
                break;
            case Touch::Kind::exclusive: row.writers.insert(touch.node); break;
            case Touch::Kind::atomic:
                row.writers.insert(touch.node);
                row.atomic_ns += touch.cost_ns;
                break;
        }
    }
    for (const BlockStory& story : stories_of(analysis)) {
        if (!sharing_of(story, analysis.recording->block_bytes).is_false()) continue;
        std::set<std::uint32_t> named;
        for (const Touch& touch : story.touches) named.insert(touch.variable);
        for (const std::uint32_t variable : named) ++analysis.variables[variable].falsely_shared;
    }
    for (std::uint32_t at = 0; at < analysis.variables.size(); ++at)
        if (analysis.variables[at].sum_ns() > 0) analysis.dearest.push_back(at);
    std::ranges::stable_sort(analysis.dearest, [&](std::uint32_t a, std::uint32_t b) {
        return analysis.variables[a].sum_ns() > analysis.variables[b].sum_ns();
    });
}

}  // namespace

void look_at_memory(Analysis& analysis) {
    const Recording& recording = *analysis.recording;
    VariableRows rows(analysis);
    std::vector<PhasesOfNode> phases(recording.nodes.size());
    std::map<std::uint32_t, TouchMaker> makers;
    for (const Moment& moment : analysis.moments) {
        const Stream& stream = recording.streams[moment.stream];
        auto& maker = makers.try_emplace(moment.stream, analysis, rows).first->second;
        maker.take(*moment.event, moment.self_ns, moment.stream, moment.phase);
        if (static_cast<std::uint32_t>(stream.thread) % recording.threads_per_node_most() == 0)
            phases[stream.node].note(moment.event->end_ns, moment.phase);
    }
    // Threads of hiroba's own release and fetch for the program's.
    for (std::uint32_t at = 0; at < recording.streams.size(); ++at) {
        const Stream& stream = recording.streams[at];
        if (stream.thread >= 0) continue;
        TouchMaker maker(analysis, rows);
        for (const Event& event : stream.events)
            maker.take(event, 0, at, phases[stream.node].at(event.end_ns));
    }
    std::ranges::stable_sort(analysis.touches, [](const Touch& a, const Touch& b) {
        return std::pair(a.block, a.at_ns) < std::pair(b.block, b.at_ns);
    });
    name_the_rest(analysis, rows);
    add_up(analysis);
}

std::vector<BlockStory> stories_of(const Analysis& analysis) {
    std::vector<BlockStory> stories;
    const std::span<const Touch> all = analysis.touches;
    for (std::size_t begin = 0; begin < all.size();) {
        std::size_t end = begin + 1;
        while (end < all.size() && all[end].block == all[begin].block) ++end;
        stories.push_back({all[begin].block, all.subspan(begin, end - begin)});
        begin = end;
    }
    return stories;
}

std::int64_t BlockStory::cost_in_regions() const {
    std::int64_t sum = 0;
    for (const Touch& touch : touches)
        if (!is_serial(touch.phase)) sum += touch.cost_ns;
    return sum;
}

namespace {

/// All that one node changed of a block in one phase.
struct NodeChanges {
    std::uint64_t parts = 0;
    std::uint32_t first = ~0u, last = 0, runs = 0, bytes = 0;
    void add(const Touch& touch) {
        parts |= touch.detail;
        first = std::min(first, touch.shape.first);
        last = std::max(last, touch.shape.last);
        runs = std::max(runs, touch.shape.runs);
        bytes = std::max(bytes, touch.shape.bytes);
    }
    bool lies_apart(const NodeChanges& other) const {
        return last < other.first || other.last < first || (parts & other.parts) == 0;
    }
    /// Most of the block is changed, by one or the other, in pieces.
    bool alternates(const NodeChanges& other, std::uint64_t block_bytes) const {
        constexpr std::uint32_t runs_least = 4;
        const std::uint64_t both = std::uint64_t{bytes} + other.bytes;
        return std::min(runs, other.runs) >= runs_least && both <= block_bytes &&
               both * 2 > block_bytes && !(last < other.first || other.last < first);
    }
};

}  // namespace

Sharing sharing_of(const BlockStory& story, std::uint64_t block_bytes) {
    std::map<Phase, std::map<std::uint32_t, NodeChanges>> phases;
    for (const Touch& touch : story.touches)
        if (touch.kind == Touch::Kind::merged && touch.shape.bytes > 0)
            phases[touch.phase][touch.node].add(touch);
    Sharing sharing;
    for (const auto& [phase, nodes] : phases) {
        if (nodes.size() < 2) continue;
        ++sharing.phases;
        bool apart = true, dealt = false;
        for (auto a = nodes.begin(); a != nodes.end(); ++a) {
            sharing.writers.insert(a->first);
            for (auto b = std::next(a); b != nodes.end(); ++b) {
                const bool alternate = a->second.alternates(b->second, block_bytes);
                dealt |= alternate;
                apart &= alternate || a->second.lies_apart(b->second);
            }
        }
        sharing.apart += apart;
        sharing.dealt += apart && dealt;
    }
    return sharing;
}

}  // namespace hiroba::tools
