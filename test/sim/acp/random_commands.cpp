// SPDX-License-Identifier: BSD-3-Clause
// What commands do to memory is made so that each effect can be seen and told apart: a copy brings
// a pattern of its own to a place of its own, an atomic sets a bit of its own in its word and
// brings the bits found there. A command that is ordered behind another may read what that one
// brings; so one that reads too early brings wrong bytes.
#include "sim/acp/random_commands.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/random.hpp"
#include "sim/acp/acp_rank.hpp"

namespace hiroba::sim_test {
namespace {

constexpr std::uint32_t ranks = 4, commands_of_rank = 10;
constexpr std::uint64_t large_bytes = 40'000;  // two messages
constexpr std::uint64_t cell_bytes = 40'960;
constexpr std::uint64_t atomic_base = std::uint64_t{1} << 63;

struct Command {
    std::uint32_t origin = 0, dst_rank = 0, src_rank = 0;
    std::uint64_t dst = 0, src = 0, bytes = 8;  ///< offsets in starter memory
    bool is_atomic = false;
    std::uint64_t bit = 0;      ///< of an atomic
    std::uint64_t pattern = 0;  ///< of a copy; an atomic's old value
    acp::Order::Kind order{};
    std::size_t named = 0;            ///< command whose handle is the order
    std::vector<std::size_t> behind;  ///< commands that must have had their effects
    bool is_seen = false, is_whole = false;
};

std::uint64_t pattern_word(std::uint64_t pattern, std::uint64_t at) { return pattern + at; }

class Run {
public:
    explicit Run(std::uint64_t seed) : random_(seed) {
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
            for (std::uint32_t i = 0; i < commands_of_rank; ++i) add(rank);
        }
    }

    void prepare(std::vector<std::unique_ptr<AcpRank>>& all) {
        all_ = &all;
        for (const Command& command : commands_) {
            if (command.is_atomic) {
                word(command.src_rank, command.src) |= atomic_base;
            } else if (command.src % (2 * cell_bytes) == 0) {  // not what another brings
                for (std::uint64_t at = 0; at < command.bytes; at += 8) {
                    word(command.src_rank, command.src + at) = pattern_word(command.pattern, at);
                }
            }
        }
    }
    void issue(std::uint32_t rank, AcpRank& mine) {
        Random random{0x5eed + rank};
        std::vector<std::uint64_t> handles;
        for (std::size_t i = rank * commands_of_rank; i < (rank + 1) * commands_of_rank; ++i) {
            handles.push_back(submit(mine, commands_[i], handles));
            if (random.below(8) != 0) continue;
            const std::size_t up_to = random.below(handles.size());
            mine.complete(handles[up_to]);
            look();
            for (std::size_t k = 0; k <= up_to; ++k) must_be_whole(rank * commands_of_rank + k);
        }
        mine.complete(mine.last_handle());
        look();
        for (std::size_t i = 0; i < commands_of_rank; ++i)
            must_be_whole(rank * commands_of_rank + i);
    }
    /// Looks at everything whose effect was not seen whole yet.
    void look() {
        if (all_ == nullptr || !fault.empty()) return;
        for (Command& command : commands_) {
            if (command.is_whole) continue;
            const std::uint64_t before = command.is_seen;
            see(command);
            if (!before && command.is_seen) seen_.push_back(&command);
        }
        for (const Command* command : seen_) {
            for (const std::size_t behind : command->behind) {
                if (commands_[behind].is_whole) continue;
                fail("command " + std::to_string(command - commands_.data()) +
                     " has an effect before command " + std::to_string(behind) + " has all of its");
            }
        }
        seen_.clear();
    }
    std::string check_end() {
        for (const Command& command : commands_) {
            for (std::uint64_t at = 0; at < command.bytes; at += 8) {
                const std::uint64_t found = word(command.dst_rank, command.dst + at);
                if (found == expected_at(command, at)) continue;
                fail("command " + std::to_string(&command - commands_.data()) + " brought " +
                     std::to_string(found) + " at byte " + std::to_string(at) + ", not " +
                     std::to_string(expected_at(command, at)));
            }
        }
        return fault;
    }

    std::string fault;

private:
    void fail(const std::string& what) {
        if (fault.empty()) fault = what;
    }
    std::uint64_t& word(std::uint32_t rank, std::uint64_t offset) {
        return (*all_)[rank]->word(offset);
    }
    std::uint64_t expected_at(const Command& command, std::uint64_t at) const {
        return command.is_atomic ? command.pattern : pattern_word(command.pattern, at);
    }
    void must_be_whole(std::size_t index) {
        if (!commands_[index].is_whole) {
            fail("command " + std::to_string(index) + " is complete without all of its effect");
        }
    }

    void see(Command& command) {
        bool some = false, all = true;
        if (command.is_atomic) {
            some = (word(command.src_rank, command.src) & command.bit) != 0;
            all = some;
        }
        // A message's worth at a time, and the last word: pieces are stored whole.
        for (std::uint64_t at = 0; at < command.bytes; at += 8192) {
            const bool there = word(command.dst_rank, command.dst + at) != 0;
            some = some || there;
            all = all && there;
        }
        all = all && word(command.dst_rank, command.dst + command.bytes - 8) != 0;
        command.is_seen = some;
        command.is_whole = all;
    }

    // --- making ----------------------------------------------------------------------------------

    void add(std::uint32_t origin) {
        const std::size_t index = commands_.size();
        Command made;
        made.origin = origin;
        made.dst_rank = static_cast<std::uint32_t>(random_.below(ranks));
        made.src_rank = static_cast<std::uint32_t>(random_.below(ranks));
        made.src = 2 * index * cell_bytes;
        made.dst = made.src + cell_bytes;
        made.is_atomic = random_.below(4) == 0;
        made.bytes = made.is_atomic || random_.below(3) != 0 ? 8 : large_bytes;
        made.bit = std::uint64_t{1} << index;
        made.pattern = made.is_atomic ? atomic_base : (index + 1) << 32;
        choose_order(made, index);
        if (!made.behind.empty() && random_.below(2) == 0) read_what_is_brought(made);
        commands_.push_back(made);
    }
    void choose_order(Command& made, std::size_t index) {
        using enum acp::Order::Kind;
        const std::size_t first = std::size_t{made.origin} * commands_of_rank;
        if (index == first) return;
        made.order = acp::Order::Kind(random_.below(4));
        made.named = first + random_.below(index - first);
        if (made.order == none) return;
        const std::size_t from = made.order == previous ? index - 1 : first;
        const std::size_t to = made.order == up_to ? made.named + 1 : index;
        for (std::size_t i = from; i < to; ++i) made.behind.push_back(i);
    }
    /// The source is what a command brings that this one is ordered behind, if nothing else tells.
    void read_what_is_brought(Command& made) {
        const Command& before = commands_[made.behind[random_.below(made.behind.size())]];
        if (before.is_atomic && made.is_atomic) {
            if (chained_.at(&before - commands_.data())) return;
            chained_[static_cast<std::size_t>(&before - commands_.data())] = true;
            made.src_rank = before.src_rank;
            made.src = before.src;
            made.pattern = before.pattern | before.bit;
        } else if (!before.is_atomic && !made.is_atomic) {
            made.src_rank = before.dst_rank;
            made.src = before.dst;
            made.bytes = before.bytes;
            made.pattern = before.pattern;
        }
    }
    std::uint64_t submit(AcpRank& mine, const Command& command,
                         const std::vector<std::uint64_t>& handles) {
        acp::Access access;
        access.dst = mine.address(command.dst_rank, command.dst);
        access.src = mine.address(command.src_rank, command.src);
        access.bytes = command.bytes;
        access.is_atomic = command.is_atomic;
        access.op = net::AtomicOp::fetch_or;
        access.width = 8;
        access.operand = command.bit;
        acp::Order order{command.order, 0};
        if (command.order == acp::Order::Kind::up_to) {
            order.handle = handles[command.named % commands_of_rank];
        }
        return mine.submit(access, order);
    }

    Random random_;
    std::vector<Command> commands_;
    std::vector<bool> chained_ = std::vector<bool>(ranks * commands_of_rank);
    std::vector<const Command*> seen_;
    std::vector<std::unique_ptr<AcpRank>>* all_ = nullptr;
};

}  // namespace

std::string run_random_commands(net::sim::FiberStacks& stacks, std::uint64_t seed) {
    Random random{~seed};
    Run run{seed};
    SlowWays ways{std::uint64_t{1'000} << random.below(9)};
    for (std::uint32_t from = 0; from < ranks; ++from) {
        for (std::uint32_t to = 0; to < ranks; ++to) {
            if (from != to && random.below(2) == 0) ways.slow(from, to);
        }
    }
    ways.before_each_step = [&run] { run.look(); };
    AcpJob job;
    job.ranks = ranks;
    job.starter_bytes = 2 * cell_bytes * ranks * commands_of_rank;
    job.scheduling.seed = seed;
    job.scheduling.limit_ns = 10'000'000'000;
    job.scheduling.delays = &ways;
    if (seed % 2 == 0) {
        job.wire.loss = 5;
        job.wire.duplicate = 5;
        job.wire.reorder = 30;
    }
    std::string fault;
    job.prepare = [&run](auto& all) { run.prepare(all); };
    std::uint32_t left = ranks;
    job.program = [&](std::uint32_t rank, AcpRank& mine) {
        run.issue(rank, mine);
        if (--left == 0) fault = run.check_end();
    };
    const std::string ended = run_acp_job(stacks, job);
    if (!run.fault.empty()) return run.fault;
    return ended.empty() ? fault : ended;
}

}  // namespace hiroba::sim_test
