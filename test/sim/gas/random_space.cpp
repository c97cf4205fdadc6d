// SPDX-License-Identifier: BSD-3-Clause
#include "sim/gas/random_space.hpp"

#include <cstdio>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "gas/relocatable/relocatable_space.hpp"
#include "sim/gas/history.hpp"
#include "sim/sim_job.hpp"

namespace hiroba::sim_test {
namespace {

using gas::Fault;
using gas::ptr;
using gas::Status;
using Word = std::uint64_t;

constexpr std::uint32_t pages = 3, words_of_page = 3;
constexpr std::uint32_t words_count = pages * words_of_page;
constexpr std::uint64_t words_per_page = page_bytes / sizeof(Word);

/// Which element of the allocation a word is: the first, one in the middle, and the last of a page,
/// so that the last and the next page's first can be got together.
std::uint64_t element_of(std::uint32_t word) {
    static constexpr std::uint64_t places[] = {0, 100, words_per_page - 1};
    return word / words_of_page * words_per_page + places[word % words_of_page];
}

template <class T>
T must(Result<T> result) {
    if (!result) fatal("%s", result.error().text.c_str());
    return std::move(*result);
}

net::sim::NetworkOptions wire_of(Random& random) {
    net::sim::NetworkOptions wire;
    wire.jitter_ns = 200 + random.below(6'000);
    if (random.happens(50)) {
        wire.loss = static_cast<std::uint32_t>(random.below(15));
        wire.duplicate = static_cast<std::uint32_t>(random.below(15));
        wire.reorder = static_cast<std::uint32_t>(random.below(40));
    }
    if (random.happens(30)) {
        wire.call_ns = 300;
        wire.slow_calls = 20;
    }
    return wire;
}

/// One job, its nodes and what they saw.
class Program {
public:
    Program(net::sim::FiberStacks& stacks, const RandomSpace& what)
        : what_(what),
          random_(what.seed * 0x9E37'79B9 + 1),
          nodes_(what.wide ? 65 + static_cast<std::uint32_t>(random_.below(64))
                           : 2 + static_cast<std::uint32_t>(random_.below(4))),
          one_sided_(random_.happens(50)),
          allocator_(static_cast<std::uint32_t>(random_.below(nodes_ + 1))),
          victim_(static_cast<std::uint32_t>(random_.below(nodes_))),
          crash_ns_(random_.below(150'000)),
          job_(stacks, nodes_, {.seed = what.seed, .limit_ns = 20'000'000'000}, wire_of(random_)),
          seen_(words_count),
          endpoints_(nodes_),
          spaces_(nodes_) {}

    RandomSpaceRun run();

private:
    void node(NodeId self);
    void worker(NodeId self, std::uint64_t seed);
    void step(gas::RelocatableSpace& space, Random& random);
    void access(gas::RelocatableSpace& space, std::uint32_t word, Access::Kind kind,
                Random& random);
    void two_gets(gas::RelocatableSpace& space, std::uint32_t word);
    void two_puts(gas::RelocatableSpace& space, Random& random);
    void guarded(gas::RelocatableSpace& space, std::uint32_t word);
    void crash();
    void end(NodeId self, gas::RelocatableSpace& space);
    std::string pages_now();

    std::size_t begin(gas::RelocatableSpace& space, std::uint32_t word, Access::Kind kind,
                      Word operand, Word expected = 0);
    void end(std::uint32_t word, std::size_t index, const Status& status, Word result);
    bool good(const Status& status);
    void fail(const std::string& text) {
        if (fault_.empty()) fault_ = text;
    }
    bool is_dead(std::uint32_t node) const { return crashed_ && node == victim_; }
    /// With many nodes those work whose ranks lie at the ends of words of sharers.
    bool works(std::uint32_t node) const {
        return !what_.wide || node <= 1 || node == 63 || node == 64 || node + 2 >= nodes_;
    }

    RandomSpace what_;
    Random random_;  ///< what the job's shape is drawn from
    std::uint32_t nodes_;
    bool one_sided_;
    std::uint32_t allocator_;  ///< nodes_: all together
    std::uint32_t victim_;
    std::uint64_t crash_ns_;
    SimJob job_;
    std::vector<std::vector<Access>> seen_;  ///< by word
    std::uint64_t clock_ = 0;
    std::uint64_t next_value_ = 1;
    ptr<Word> first_;
    std::vector<net::Endpoint*> endpoints_;
    std::vector<gas::RelocatableSpace*> spaces_;
    std::vector<std::uint32_t> working_;  ///< threads of each node that are not at their end
    std::uint32_t left_ = 0;
    std::uint32_t finished_ = 0;  ///< nodes, where one crashes
    bool crashed_ = false, told_ = false;
    std::string fault_;
    RandomSpaceRun outcome_;
};

// --- accesses ------------------------------------------------------------------------------------

std::size_t Program::begin(gas::RelocatableSpace& space, std::uint32_t word, Access::Kind kind,
                           Word operand, Word expected) {
    seen_[word].push_back({kind, space.rank(), ++clock_, ~std::uint64_t{0}, operand, expected, 0,
                           true});  // until it ends
    return seen_[word].size() - 1;
}

void Program::end(std::uint32_t word, std::size_t index, const Status& status, Word result) {
    Access& access = seen_[word][index];
    ++outcome_.accesses;
    if (!good(status)) return;  // whether it happened is unknown
    access.maybe = false;
    access.ended = ++clock_;
    access.result = result;
    if (what_.tell) std::fputs(lines_of({access}).c_str(), stdout);
}

/// False, too, for a fault that a crash explains.
bool Program::good(const Status& status) {
    if (status) return true;
    ++outcome_.lost;
    const bool is_explained =
        what_.crash && crashed_ && status.fault == Fault::peer_lost && status.rank == victim_;
    if (!is_explained) fail("an access failed: " + status.text());
    return false;
}

void Program::access(gas::RelocatableSpace& space, std::uint32_t word, Access::Kind kind,
                     Random& random) {
    const ptr<Word> at = first_ + static_cast<std::int64_t>(element_of(word));
    const Word value = kind == Access::Kind::get ? 0 : next_value_++;
    // A value that some put has brought, or will never be.
    const Word expected = kind == Access::Kind::compare_swap ? random.below(next_value_) : 0;
    const std::size_t index = begin(space, word, kind, value, expected);
    Word found = 0;
    Status status;
    switch (kind) {
        case Access::Kind::get: status = space.get(at, found); break;
        case Access::Kind::put: status = space.put(at, value); break;
        case Access::Kind::add: status = space.fetch_add(at, value, found); break;
        case Access::Kind::swap: status = space.swap(at, value, found); break;
        case Access::Kind::compare_swap:
            status = space.compare_swap(at, expected, value, found);
            break;
    }
    end(word, index, status, found);
}

/// The last word of a page and the first of the next, at once.
void Program::two_gets(gas::RelocatableSpace& space, std::uint32_t word) {
    const std::uint32_t last = word / words_of_page * words_of_page + words_of_page - 1;
    if (last + 1 == words_count) return;
    const std::size_t one = begin(space, last, Access::Kind::get, 0);
    const std::size_t two = begin(space, last + 1, Access::Kind::get, 0);
    Word found[2] = {};
    const Status status =
        space.get(first_ + static_cast<std::int64_t>(element_of(last)), std::span<Word>(found));
    end(last, one, status, found[0]);
    end(last + 1, two, status, found[1]);
}

/// Started together, waited for together.
void Program::two_puts(gas::RelocatableSpace& space, Random& random) {
    gas::Pending pending;
    const Word values[2] = {next_value_, next_value_ + 1};
    next_value_ += 2;
    std::uint32_t words[2];
    std::size_t indices[2];
    Status status;
    for (int i = 0; i < 2; ++i) {
        words[i] = static_cast<std::uint32_t>(random.below(words_count));
        indices[i] = begin(space, words[i], Access::Kind::put, values[i]);
        const Status started =
            space.start_put(first_ + static_cast<std::int64_t>(element_of(words[i])),
                            std::span<const Word>(&values[i], 1), pending);
        if (status) status = started;
    }
    const Status waited = space.wait(pending);
    if (status) status = waited;
    for (int i = 0; i < 2; ++i) end(words[i], indices[i], status, 0);
}

/// Loads and stores of a page that is here, some time apart.
void Program::guarded(gas::RelocatableSpace& space, std::uint32_t word) {
    const auto view = space.local(first_ + static_cast<std::int64_t>(element_of(word)), 1);
    if (!view) return;
    const Word value = next_value_++;
    const std::size_t index = begin(space, word, Access::Kind::swap, value);
    job_.scheduler().work(500);
    const Word found = view[0];
    view[0] = value;
    end(word, index, {}, found);
    job_.scheduler().work(2'000);
}

void Program::step(gas::RelocatableSpace& space, Random& random) {
    const auto word = static_cast<std::uint32_t>(random.below(words_count));
    const std::uint64_t dice = random.below(100);
    const std::uint64_t first_page = random.below(pages);
    const ptr<Word> page = first_ + static_cast<std::int64_t>(first_page * words_per_page);
    if (dice < 25) return access(space, word, Access::Kind::get, random);
    if (dice < 45) return access(space, word, Access::Kind::put, random);
    if (dice < 55) return access(space, word, Access::Kind::add, random);
    if (dice < 59) return access(space, word, Access::Kind::swap, random);
    if (dice < 64) return access(space, word, Access::Kind::compare_swap, random);
    if (dice < 69) return two_gets(space, word);
    if (dice < 74) return two_puts(space, random);
    if (dice < 79) return guarded(space, word);
    if (dice < 84) return space.forget(page.address(), page_bytes);
    if (dice < 87) {
        good(space.prefetch(page, words_per_page));
        return;
    }
    const std::uint64_t count = 1 + random.below(pages - first_page);
    good(space.own(page, count * words_per_page));
}

// --- nodes ---------------------------------------------------------------------------------------

void Program::worker(NodeId self, std::uint64_t seed) {
    Random random{seed};
    for (std::uint32_t i = 0; i < what_.steps && fault_.empty(); ++i) {
        if (random.happens(30)) job_.scheduler().work(1 + random.below(3'000));
        step(*spaces_[self.value], random);
    }
    --working_[self.value];
    if (--left_ != 0) return;
    for (std::uint32_t node = 0; node < nodes_; ++node) {
        if (!is_dead(node)) endpoints_[node]->wake_local();
    }
}

/// The node stops where it stands; the others hear of it one after the other.
void Program::crash() {
    job_.scheduler().work(crash_ns_ + 1);
    job_.network().crash(NodeId{victim_});
    crashed_ = true;
    left_ -= working_[victim_];
    auto remaining = std::make_shared<std::uint32_t>(nodes_ - 1);
    for (std::uint32_t node = 0; node < nodes_; ++node) {
        if (node == victim_) continue;
        const std::uint64_t delay_ns = 1 + random_.below(60'000);
        job_.scheduler().spawn(NodeId{node}, [this, node, delay_ns, remaining] {
            job_.scheduler().work(delay_ns);
            endpoints_[node]->provider().peer_lost(NodeId{victim_});
            spaces_[node]->lose(NodeId{victim_});
            told_ = --*remaining == 0;
            for (std::uint32_t each = 0; told_ && each < nodes_; ++each) {
                if (each != victim_) endpoints_[each]->wake_local();
            }
        });
    }
}

/// Each node reads all words when all is over; then the memory is freed, and no node may read it.
void Program::end(NodeId self, gas::RelocatableSpace& space) {
    for (std::uint32_t word = 0; word < words_count; ++word) {
        access(space, word, Access::Kind::get, random_);  // a get draws nothing
    }
    const gas::Counts counts = space.counts();
    outcome_.relocations += counts.relocations;
    outcome_.misses += counts.misses;
    if (what_.crash) return;
    job_.gather(self, {});
    if (allocator_ == nodes_ || allocator_ == self.value) {
        if (Status freed = space.free(first_); !freed) fail("free: " + freed.text());
    }
    job_.gather(self, {});
    Word word = 0;
    const Status status = space.get(first_, word);
    if (status.fault != Fault::not_allocated) fail("a get of freed memory: " + status.text());
}

void Program::node(NodeId self) {
    const auto endpoint = job_.open(self);
    const auto collectives = must(net::Collectives::make(*endpoint, 7));
    const auto async =
        std::make_unique<net::Async>(*endpoint, net::offload::Mode::automatic);  // large
    gas::SpaceOptions options;
    options.arena_bytes = (what_.wide ? 32u : 64u) * nodes_ * page_bytes;
    options.spare_bytes_max = page_bytes;
    options.one_sided = one_sided_;
    const auto space = must(gas::RelocatableSpace::make(*async, *collectives, options));
    if (!endpoint->connect()) fatal("node %u did not connect", self.value);
    async->attach();
    collectives->attach();
    net::sim::Fiber& service = job_.scheduler().spawn(self, [&] { endpoint->serve(); });
    space->attach();
    endpoints_[self.value] = endpoint.get();
    spaces_[self.value] = space.get();
    // Directory nodes differ: what comes before is as long as the seed says.
    const auto where = gas::Distribution::cyclic();
    const std::uint64_t before = what_.seed % (20 * nodes_) + 1;
    if (allocator_ == nodes_) {
        (void)space->allocate_together<Word>(before * words_per_page, where);
        first_ = space->allocate_together<Word>(pages * words_per_page, where);
    } else if (allocator_ == self.value) {
        (void)space->allocate<Word>(before * words_per_page, where);
        first_ = space->allocate<Word>(pages * words_per_page, where);
    }
    job_.gather(self, {});
    if (!first_) fail("no allocation");
    const auto threads = works(self.value) ? 1 + static_cast<std::uint32_t>(random_.below(2)) : 0;
    if (!works(self.value)) good(space->prefetch(first_, pages * words_per_page));
    working_.resize(nodes_);
    working_[self.value] = threads;
    left_ += threads;
    job_.gather(self, {});
    if (what_.crash && self.value == (victim_ + 1) % nodes_) {
        job_.scheduler().spawn(self, [this] { crash(); });
    }
    for (std::uint32_t thread = 0; thread < threads; ++thread) {
        const std::uint64_t seed = what_.seed * 1000 + self.value * 10 + thread;
        job_.scheduler().spawn(self, [this, self, seed] { worker(self, seed); });
    }
    endpoint->wait_until([&] { return left_ == 0 && (!what_.crash || told_); });
    end(self, *space);
    if (!what_.crash) {
        job_.gather(self, {});
    } else {
        ++finished_;
        while (!endpoint->wait_until([&] { return finished_ == nodes_ - 1; }, now_ns() + 50'000)) {
        }
    }
    endpoint->stop();
    job_.scheduler().join(service);
}

/// What each node knows of the pages, for a failure's report.
std::string Program::pages_now() {
    std::string text;
    for (std::uint32_t node = 0; node < nodes_; ++node) {
        if (is_dead(node) || spaces_[node] == nullptr) continue;
        for (std::uint64_t page = 0; page < pages; ++page) {
            const gas::CacheWord word =
                spaces_[node]->cache().word(first_.address() / page_bytes + page);
            text += "\n  node " + std::to_string(node) + ", page " + std::to_string(page) +
                    ": state " + std::to_string(static_cast<unsigned>(word.state)) + ", owner " +
                    std::to_string(word.owner) + ", former " + std::to_string(word.former) +
                    ", mover " + std::to_string(word.mover) + ", version " +
                    std::to_string(word.version);
        }
    }
    return text;
}

RandomSpaceRun Program::run() {
    const auto outcome = job_.run([this](NodeId self) { node(self); });
    outcome_.events = job_.scheduler().events();
    if (outcome != net::sim::Scheduler::Outcome::ended) {
        fail(std::string(outcome_name(outcome)) + ": " + std::to_string(left_) +
             " threads are at work, " + std::to_string(finished_) + " nodes of " +
             std::to_string(nodes_) + " have finished" + (crashed_ ? ", one crashed" : "") +
             (told_ ? ", all know" : "") + (one_sided_ ? ", one-sided" : "") + pages_now());
    }
    for (std::uint32_t word = 0; word < words_count && fault_.empty(); ++word) {
        if (is_linearizable(seen_[word], 0)) continue;
        fail("word " + std::to_string(word) + " is not linearizable:\n" + lines_of(seen_[word]));
    }
    outcome_.fault = fault_;
    return outcome_;
}

}  // namespace

RandomSpaceRun run_random_space(net::sim::FiberStacks& stacks, const RandomSpace& what) {
    return Program{stacks, what}.run();
}

}  // namespace hiroba::sim_test
