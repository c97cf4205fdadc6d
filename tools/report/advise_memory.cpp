// SPDX-License-Identifier: BSD-3-Clause
// Role: what lies or is used in the wrong place: advice by variable.
// Invariant: each illness is looked for by what it does to blocks, not by names; the guide
// (docs/guide/report.md) has the table.
#include <fmt/format.h>

#include <algorithm>

#include "tools/report/blocks.hpp"

namespace hiroba::tools {

namespace {

using Kind = Touch::Kind;

bool is_fault(const Touch& touch) {
    return touch.kind == Kind::read_fault || touch.kind == Kind::write_fault;
}

std::string name_of(const VariableRow& row) {
    switch (row.where) {
        case VariableRow::Where::heap:
            return fmt::format("the heap block of {} bytes made at {}", row.bytes, row.line);
        case VariableRow::Where::named:
            return row.line.empty() ? row.name : fmt::format("{} ({})", row.name, row.line);
        default: return row.name;
    }
}

/// What is found of one illness, in one variable.
struct Finding {
    Removable ns;
    std::set<std::uint64_t> blocks;
    std::map<std::uint64_t, std::int64_t> by_code;
    std::map<std::uint32_t, std::int64_t> by_place;
    std::set<std::uint32_t> nodes;

    void add(const Touch& touch) {
        ns.add(touch.phase, touch.stream, touch.cost_ns);
        blocks.insert(touch.block);
        nodes.insert(touch.node);
        by_place[touch.place] += touch.cost_ns;
        if (is_fault(touch)) by_code[touch.detail] += touch.cost_ns;
    }
};
using Findings = std::map<std::uint32_t, Finding>;  // by variable

template <class Key>
Key most(const std::map<Key, std::int64_t>& of, Key none) {
    const auto found =
        std::ranges::max_element(of, {}, [](const auto& each) { return each.second; });
    return found == of.end() ? none : found->first;
}

/// The line whose accesses fault, or else that of the region.
std::string line_of(const Analysis& analysis, const Finding& finding) {
    if (const std::uint64_t code = most(finding.by_code, std::uint64_t{0}); code != 0)
        return analysis.names.code(code);
    const std::uint32_t place = most(finding.by_place, 0u);
    return analysis.names.place(analysis.recording->places[place]);
}

class MemoryAdvice {
public:
    explicit MemoryAdvice(Analysis& analysis)
        : analysis_(analysis), stories_(stories_of(analysis)) {}

    void give() {
        for (const BlockStory& story : stories_) {
            if (looks_shared(story)) continue;
            look_at_constants_beside(story);
            look_at_first_touch(story);
            look_at_serial_use(story);
            look_at_moves(story);
        }
        look_at_stacks();
        tell_shared();
        tell_beside();
        tell_first_touch();
        tell_serial();
        tell_moves();
    }

private:
    void tell(const Finding& finding, std::string illness, std::string what, std::string cure,
              Advice::Sure sure) {
        analysis_.advice.push_back({std::move(illness), std::move(what), std::move(cure),
                                    line_of(analysis_, finding), finding.ns.total(), sure});
    }
    const VariableRow& row(std::uint32_t variable) const { return analysis_.variables[variable]; }

    /// Nodes write bytes of their own, but the same blocks.
    bool looks_shared(const BlockStory& story) {
        const Sharing sharing = sharing_of(story, analysis_.recording->block_bytes);
        if (!sharing.is_false()) return false;
        for (const Touch& touch : story.touches) {
            if (is_serial(touch.phase)) continue;
            Shared& shared = shared_[touch.variable];
            shared.finding.add(touch);
            if (sharing.dealt * 2 >= sharing.apart) shared.dealt.insert(story.block);
        }
        return true;
    }
    struct Shared {
        Finding finding;
        std::set<std::uint64_t> dealt;
    };

    void tell_shared() {
        constexpr std::size_t many_blocks = 8;
        for (const auto& [variable, shared] : shared_) {
            const VariableRow& its = row(variable);
            const std::size_t blocks = shared.finding.blocks.size();
            const std::string whose = name_of(its);
            if (shared.dealt.size() * 2 >= blocks) {
                tell(shared.finding, "elements dealt singly",
                     fmt::format("{}: neighbouring elements are written by different nodes, in {} "
                                 "blocks",
                                 whose, blocks),
                     "give each thread a run of neighbours: schedule(static) without a chunk, or "
                     "chunks of a page (512 doubles) and more",
                     Advice::Sure::high);
            } else if (blocks >= many_blocks && blocks * 2 >= written_blocks(its)) {
                tell(
                    shared.finding, "column-wise loop",
                    fmt::format("{}: each node writes a piece of each of {} blocks, as a loop over "
                                "columns does",
                                whose, blocks),
                    "share out the loop over rows (the dimension that is not contiguous): swap the "
                    "two loops, or store the array the other way round",
                    Advice::Sure::medium);
            } else {
                tell(shared.finding, "false sharing",
                     fmt::format("{}: nodes write different bytes of the same {} block{}", whose,
                                 blocks, blocks == 1 ? "" : "s"),
                     fmt::format("give each thread's part blocks of its own: alignas({}) for each "
                                 "element, or a local variable that is stored once",
                                 analysis_.recording->block_bytes),
                     Advice::Sure::high);
            }
        }
    }
    static std::size_t written_blocks(const VariableRow& its) { return its.blocks.size(); }

    /// What is read lies in a block of which something else is written again and again.
    void look_at_constants_beside(const BlockStory& story) {
        constexpr unsigned rounds_least = 4;
        constexpr std::uint32_t word_bytes = 8;
        unsigned rounds = 0, brought = 0, beside = 0, within = 0;
        std::uint32_t first = ~0u, last = 0, writer = 0, variable = 0;
        for (const Touch& touch : story.touches) {
            if (touch.kind == Kind::merged && touch.shape.bytes > 0 && !is_serial(touch.phase)) {
                first = std::min(first, touch.shape.first);
                last = std::max(last, touch.shape.last);
                writer = touch.node;
                ++rounds;
            }
            if (rounds == 0 || touch.node == writer) continue;
            brought += touch.kind == Kind::fetched;
            if (touch.kind != Kind::read_fault) continue;
            const auto at = static_cast<std::uint32_t>(touch.address - story.block);
            ++(at + word_bytes > first && at <= last ? within : beside);
            variable = touch.variable;
        }
        const bool small = first <= last && (last - first) * 2 <= analysis_.recording->block_bytes;
        if (rounds < rounds_least || brought < rounds_least || !small || beside <= within * 3)
            return;
        for (const Touch& touch : story.touches)
            if (!is_serial(touch.phase)) beside_[variable].add(touch);
    }
    void tell_beside() {
        for (const auto& [variable, finding] : beside_)
            tell(
                finding, "constants beside what changes",
                fmt::format("{}: is read by all and does not change, but lies in a block with what "
                            "one node writes again and again",
                            name_of(row(variable))),
                fmt::format("put what changes into blocks of its own: alignas({}), or an "
                            "allocation of its own",
                            analysis_.recording->block_bytes),
                // What a region is given lies on the stack as well, where nobody can move it.
                row(variable).where == VariableRow::Where::stack ? Advice::Sure::low
                                                                 : Advice::Sure::high);
    }

    /// Written by the first thread before any region, then used by one other node.
    void look_at_first_touch(const BlockStory& story) {
        bool by_first = false, in_region = false;
        std::set<std::uint32_t> seen;
        for (const Touch& touch : story.touches) {
            const bool serial = is_serial(touch.phase);
            const bool given_up = touch.kind == Kind::given_up;
            const bool writes = touch.kind == Kind::write_fault || touch.kind == Kind::merged ||
                                touch.kind == Kind::exclusive || given_up;
            if (writes && touch.node == 0 && !in_region &&
                (given_up ? is_written_serially(touch.variable) : serial))
                by_first = true;
            in_region |= !serial && !given_up;
            if (!serial && by_first && is_fault(touch) && touch.node != 0 &&
                seen.insert(touch.node).second) {
                first_touch_[touch.variable].add(touch);
            }
        }
        if (!by_first) return;
        const bool is_written = std::ranges::any_of(story.touches, [](const Touch& touch) {
            return touch.node != 0 && !is_serial(touch.phase) &&
                   (touch.kind == Kind::write_fault || touch.kind == Kind::merged ||
                    touch.kind == Kind::exclusive || touch.kind == Kind::given_up);
        });
        if (is_written) written_elsewhere_[story.touches.front().variable].insert(story.block);
        // A block that node 0 gives up is merged then.
        for (const Touch& touch : story.touches)
            if (touch.kind == Kind::fetched && !is_serial(touch.phase) && touch.node != 0 &&
                touch.detail == 0 && seen.insert(touch.node).second)
                first_touch_[touch.variable].add(touch);
    }
    /// Whether the first thread's write faults on it are those of serial parts. Of a block that was
    /// taken along with another the recording does not say when it was written first.
    bool is_written_serially(std::uint32_t variable) {
        if (serial_writes_.empty())
            for (const Touch& touch : analysis_.touches)
                if (touch.kind == Kind::write_fault && touch.node == 0)
                    serial_writes_[touch.variable] += is_serial(touch.phase) ? 1 : -1;
        return serial_writes_[variable] > 0;
    }
    void tell_first_touch() {
        constexpr std::size_t blocks_least = 16;
        for (const auto& [variable, finding] : first_touch_) {
            if (finding.blocks.size() < blocks_least) continue;
            // What all nodes read has to come to each of them once, whoever has written it.
            const bool written = written_elsewhere_[variable].size() * 2 >= finding.blocks.size();
            tell(finding, "serial first touch",
                 fmt::format("{}: {} blocks are first written by the first thread alone, then {} "
                             "by other nodes",
                             name_of(row(variable)), finding.blocks.size(),
                             written ? "used" : "read"),
                 fmt::format("initialize it in a parallel loop that is shared out as the one that "
                             "uses it{}",
                             written ? "" : ", unless each node reads all of it"),
                 written ? Advice::Sure::high : Advice::Sure::medium);
        }
    }

    /// The first thread goes alone through what other nodes have written.
    void look_at_serial_use(const BlockStory& story) {
        std::uint32_t writer = 0;
        for (const Touch& touch : story.touches) {
            const bool comes = is_fault(touch) || touch.kind == Kind::fetched;
            if (touch.kind == Kind::merged || touch.kind == Kind::exclusive ||
                touch.kind == Kind::given_up) {
                writer = touch.node;
            } else if (comes && is_serial(touch.phase) && region_of(touch.phase) > 0 &&
                       touch.node == 0 && writer != 0) {
                serial_[touch.variable].add(touch);
            }
        }
    }
    void tell_serial() {
        constexpr std::size_t blocks_least = 8;
        for (const auto& [variable, finding] : serial_) {
            if (finding.blocks.size() < blocks_least) continue;
            tell(finding, "serial loop over what all wrote",
                 fmt::format("{}: {} blocks that other nodes have written are used by the first "
                             "thread between regions",
                             name_of(row(variable)), finding.blocks.size()),
                 "do that in a parallel loop too, shared out as the one that writes: a reduction, "
                 "if it sums up",
                 Advice::Sure::high);
        }
    }

    /// Blocks that are used by another node from phase to phase, in loops that deal out anew.
    void look_at_moves(const BlockStory& story) {
        std::uint32_t user = ~0u;
        for (const Touch& touch : story.touches) {
            if (is_serial(touch.phase)) continue;
            const bool uses = is_fault(touch) || touch.kind == Kind::merged;
            if (!uses) continue;
            const bool moves = user != ~0u && user != touch.node && is_fault(touch);
            user = touch.node;
            if (moves && dynamic_regions().contains(region_of(touch.phase)))
                moves_[touch.variable].add(touch);
        }
    }
    /// Regions with a loop whose schedule is dynamic or guided.
    const std::set<std::uint64_t>& dynamic_regions() {
        if (dynamic_known_) return dynamic_;
        dynamic_known_ = true;
        for (const Moment& moment : analysis_.moments)
            if (moment.event->kind == RecordKind::loop &&
                (moment.event->first == 2 || moment.event->first == 3))
                dynamic_.insert(region_of(moment.phase));
        return dynamic_;
    }
    void tell_moves() {
        constexpr std::size_t blocks_least = 8;
        for (const auto& [variable, finding] : moves_) {
            if (finding.blocks.size() < blocks_least) continue;
            tell(finding, "dynamic schedule over data that is used again",
                 fmt::format("{}: {} blocks go from node to node, since each loop deals out its "
                             "iterations anew",
                             name_of(row(variable)), finding.blocks.size()),
                 "schedule(static): the same thread gets the same elements each time",
                 Advice::Sure::medium);
        }
    }

    /// Large arrays on threads' stacks, which are compared at each release.
    void look_at_stacks() {
        constexpr std::size_t blocks_least = 32;
        Finding finding;
        std::map<std::pair<Phase, std::uint32_t>, std::set<std::uint64_t>> together;
        std::size_t most = 0;
        for (const Touch& touch : analysis_.touches) {
            if (row(touch.variable).where != VariableRow::Where::stack || is_serial(touch.phase))
                continue;
            finding.add(touch);
            auto& blocks = together[{touch.phase, touch.stream}];
            blocks.insert(touch.block);
            most = std::max(most, blocks.size());
        }
        if (most < blocks_least) return;
        tell(finding, "large arrays on the stack",
             fmt::format("threads' stacks: {} blocks of them are compared, published or brought",
                         finding.blocks.size()),
             "allocate the array once, before the loop that calls the function: each call writes "
             "its part of the stack anew, and each release looks at it",
             Advice::Sure::medium);
    }

    Analysis& analysis_;
    std::vector<BlockStory> stories_;
    std::map<std::uint32_t, Shared> shared_;
    std::map<std::uint32_t, std::int64_t> serial_writes_;  ///< more than in regions
    Findings beside_, first_touch_, serial_, moves_;
    std::map<std::uint32_t, std::set<std::uint64_t>> written_elsewhere_;  ///< blocks, by variable
    bool dynamic_known_ = false;
    std::set<std::uint64_t> dynamic_;
};

}  // namespace

void advise_on_memory(Analysis& analysis) { MemoryAdvice(analysis).give(); }

}  // namespace hiroba::tools
