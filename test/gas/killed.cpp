// SPDX-License-Identifier: BSD-3-Clause
// Role: a rank dies while it owns pages, while it moves them, or as their directory node: the
// others get faults that name it and the page, or right values; none waits for ever, and no value
// is stale. Usage: HIROBA_LOSS_GRACE=3000 hiroba run -n 3 gas_killed owner|mover|directory [ms]
// Each rank writes to its own words and remembers what it wrote last.
#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "gas/check.hpp"

namespace {

using namespace hiroba::gas;
using gas_test::insist;
using Word = std::uint64_t;

constexpr std::uint32_t victim = 1;
constexpr std::uint64_t pages = 24;

/// One rank's words: the one of its number on every page.
class Witness {
public:
    Witness(space& space, ptr<Word> memory) : space_(space), memory_(memory), written_(pages) {}

    /// A put or a get of the own word of a page; what may be wrong is a fault that names the dead.
    void look(std::uint64_t page, bool writes) {
        const ptr<Word> at =
            memory_ +
            static_cast<std::int64_t>(page * (space_.page_bytes() / sizeof(Word)) + space_.rank());
        Word found = 0;
        const Word next = written_[page].last + 1;
        const Status status = writes ? space_.put(at, next) : space_.get(at, found);
        if (!status) return note(status, page, writes ? next : 0);
        if (writes) {
            written_[page] = {next, next};
        } else {
            insist(found == written_[page].last || found == written_[page].maybe, "a stale value");
            written_[page].last = found;
        }
    }
    void own(std::uint64_t page) {
        const Status status = space_.own(
            memory_ + static_cast<std::int64_t>(page * (space_.page_bytes() / sizeof(Word))), 1);
        if (!status) note(status, page, 0);
    }
    std::uint64_t faults() const { return faults_; }

private:
    struct Written {
        Word last = 0, maybe = 0;  ///< maybe: put when its owner died
    };
    void note(const Status& status, std::uint64_t page, Word put) {
        insist(status.fault == Fault::peer_lost && status.rank == victim,
               "another fault:", status.text());
        insist(status.page == memory_.address() / space_.page_bytes() + page,
               "another page:", status.text());
        if (put != 0) written_[page].maybe = put;
        ++faults_;
        if (faults_ == 1) std::fprintf(stderr, "%s\n", status.text().c_str());
    }

    space& space_;
    ptr<Word> memory_;
    std::vector<Written> written_;
    std::uint64_t faults_ = 0;
};

/// What the victim does until it dies in the middle of it.
[[noreturn]] void die(space& space, ptr<Word> memory, const std::string& role,
                      std::uint64_t until_ns) {
    const std::uint64_t count = pages * space.page_bytes() / sizeof(Word);
    std::thread{[until_ns] {
        while (hiroba::now_ns() < until_ns) usleep(50);
        kill(getpid(), SIGKILL);
    }}.detach();
    hiroba::Random random{until_ns};
    while (true) {
        if (role == "mover") {
            (void)space.own(memory, count);
        } else {
            Word word = 0;
            (void)space.get(memory + static_cast<std::int64_t>(random.below(count)), word);
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::string role = argc > 1 ? argv[1] : "owner";
    const std::uint64_t life_ns = 1'000'000 * (argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 50);
    const auto space = gas_test::join();
    // As directory node the victim owns nothing; pages are at the others.
    const auto where = role == "owner" ? Distribution::on(victim) : Distribution::on(2);
    const auto memory =
        space->allocate_together<Word>(pages * space->page_bytes() / sizeof(Word), where);
    insist(static_cast<bool>(memory), "allocation");
    const std::uint64_t begun_ns = space->broadcast(hiroba::now_ns(), 0);
    if (space->rank() == victim) die(*space, memory, role, begun_ns + life_ns);
    Witness witness{*space, memory};
    hiroba::Random random{space->rank() + begun_ns};
    // Long enough to see the death, short of the grace after it.
    const std::uint64_t end_ns = begun_ns + life_ns + 1'000'000'000;
    while (hiroba::now_ns() < end_ns) {
        const std::uint64_t page = random.below(pages);
        const std::uint64_t dice = random.below(100);
        if (dice < 10 && role != "owner") {
            witness.own(page);
        } else {
            witness.look(page, dice < 50);
        }
        if (dice == 99) space->forget(memory.address() + page * space->page_bytes(), 1);
    }
    std::printf("rank %u saw %s: %lu faults, every value right\n", space->rank(), role.c_str(),
                witness.faults());
    std::fflush(stdout);
    // The others may still be waiting for what died; the launcher ends the job.
    while (true) pause();
}
