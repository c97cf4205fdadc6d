// SPDX-License-Identifier: BSD-3-Clause
// Role: real ranks and threads get, put, count, own and forget a few pages all the time; what each
// saw is checked to be linearizable, word by word. Usage: gas_stress [steps of a thread] [threads]
// [seed] All ranks are on one host, so that their clocks are one.
#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "gas/check.hpp"
#include "sim/gas/history.hpp"

namespace {

using namespace hiroba::gas;
using gas_test::insist;
using hiroba::sim_test::Access;
using Word = std::uint64_t;

constexpr std::uint32_t pages = 4, words_of_page = 3, words_count = pages * words_of_page;

/// An access, as it is put into global memory for rank 0 to judge.
struct Seen {
    std::uint64_t word = 0;
    Access access;
};
static_assert(std::is_trivially_copyable_v<Seen>);

class Player {
public:
    Player(space& space, ptr<Word> memory, std::uint64_t seed, std::uint32_t number)
        : space_(space), memory_(memory), random_(seed * 977 + number), number_(number) {}

    void play(std::uint32_t steps) {
        for (std::uint32_t i = 0; i < steps; ++i) step(i);
    }
    const std::vector<Seen>& seen() const { return seen_; }

private:
    void step(std::uint32_t i) {
        const auto word = static_cast<std::uint32_t>(random_.below(words_count));
        const std::uint64_t dice = random_.below(100);
        const Word value = std::uint64_t{number_ + 1} << 32 | i;
        if (dice < 40) return access(word, Access::Kind::get, 0);
        if (dice < 65) return access(word, Access::Kind::put, value);
        if (dice < 85) return access(word, Access::Kind::add, value);
        if (dice < 90) return access(word, Access::Kind::compare_swap, value);
        if (dice < 93) return guarded(word, value);
        if (dice < 96) return space_.forget(place(word).address(), sizeof(Word));
        const std::uint64_t first = random_.below(pages);
        const std::uint64_t count = 1 + random_.below(pages - first);
        const std::uint64_t page_words = space_.page_bytes() / sizeof(Word);
        insist(
            space_.own(memory_ + static_cast<std::int64_t>(first * page_words), count * page_words),
            "own");
    }
    ptr<Word> place(std::uint32_t word) const {
        const std::uint64_t page_words = space_.page_bytes() / sizeof(Word);
        const std::uint64_t index =
            word / words_of_page * page_words + word % words_of_page * (page_words / 2 - 1);
        return memory_ + static_cast<std::int64_t>(index);
    }
    void access(std::uint32_t word, Access::Kind kind, Word value) {
        Access access{kind, space_.rank(), hiroba::now_ns(), 0, value, last_, 0, false};
        Status status;
        switch (kind) {
            case Access::Kind::get: status = space_.get(place(word), access.result); break;
            case Access::Kind::put: status = space_.put(place(word), value); break;
            case Access::Kind::add:
                status = space_.fetch_add(place(word), value, access.result);
                break;
            default: status = space_.compare_swap(place(word), last_, value, access.result); break;
        }
        space::fence();  // a put is visible now, so the clock may say so
        access.ended = hiroba::now_ns();
        insist(status, "access");
        if (kind == Access::Kind::get) last_ = access.result;
        seen_.push_back({word, access});
    }
    void guarded(std::uint32_t word, Word value) {
        const std::uint64_t begun = hiroba::now_ns();
        const auto view = space_.local(place(word), 1);
        if (!view) return;
        // Others may access the word meanwhile, so the program's access is an atomic one too.
        const Word found = __atomic_exchange_n(&view[0], value, __ATOMIC_SEQ_CST);
        seen_.push_back(
            {word,
             {Access::Kind::swap, space_.rank(), begun, hiroba::now_ns(), value, 0, found, false}});
    }

    space& space_;
    ptr<Word> memory_;
    hiroba::Random random_;
    std::uint32_t number_;
    Word last_ = 0;
    std::vector<Seen> seen_;
};

/// Brings the accesses of all ranks to rank 0.
std::vector<Seen> gather(space& space, const std::vector<Seen>& mine, std::uint64_t each) {
    const auto all = space.allocate_together<Seen>(each * space.ranks(), Distribution::block());
    insist(static_cast<bool>(all), "allocation of the histories");
    const auto own = all + static_cast<std::int64_t>(each * space.rank());
    insist(space.put(own, std::span<const Seen>(mine)), "put of the history");
    space.barrier();
    std::vector<Seen> theirs(space.rank() == 0 ? each * space.ranks() : 0);
    if (space.rank() == 0) insist(space.get(all, std::span<Seen>(theirs)), "get of the histories");
    std::erase_if(theirs, [](const Seen& it) { return it.access.ended == 0; });
    return theirs;
}

std::uint64_t argument(int argc, char** argv, int index, std::uint64_t otherwise) {
    return argc > index ? std::strtoull(argv[index], nullptr, 10) : otherwise;
}

}  // namespace

int main(int argc, char** argv) {
    const auto steps = static_cast<std::uint32_t>(argument(argc, argv, 1, 2000));
    const auto threads = static_cast<std::uint32_t>(argument(argc, argv, 2, 2));
    const std::uint64_t seed = argument(argc, argv, 3, 1);
    const auto space = gas_test::join();
    const auto memory = space->allocate_together<Word>(pages * space->page_bytes() / sizeof(Word),
                                                       Distribution::cyclic());
    insist(static_cast<bool>(memory), "allocation");
    std::vector<Player> players;
    for (std::uint32_t i = 0; i < threads; ++i) {
        players.emplace_back(*space, memory, seed, space->rank() * threads + i);
    }
    space->barrier();
    std::vector<std::thread> running;
    for (Player& player : players) running.emplace_back([&] { player.play(steps); });
    for (std::thread& thread : running) thread.join();
    space->barrier();
    const Counts counts = space->counts();
    std::vector<Seen> mine;
    for (const Player& player : players) {
        mine.insert(mine.end(), player.seen().begin(), player.seen().end());
    }
    std::vector<std::vector<Access>> by_word(words_count);
    for (const Seen& it : gather(*space, mine, std::uint64_t{steps} * threads)) {
        by_word[it.word].push_back(it.access);
    }
    std::size_t accesses = 0;
    for (std::uint32_t word = 0; word < words_count; ++word) {
        accesses += by_word[word].size();
        if (hiroba::sim_test::is_linearizable(by_word[word], 0)) continue;
        insist(false, "a word is not linearizable:\n", hiroba::sim_test::lines_of(by_word[word]));
    }
    if (space->rank() == 0) {
        std::printf(
            "stress on %u ranks, seed %lu: %zu accesses linearizable, %lu pages moved to "
            "rank 0\n",
            space->ranks(), seed, accesses, counts.relocations);
    }
    return 0;
}
