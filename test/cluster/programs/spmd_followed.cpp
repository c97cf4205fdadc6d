// SPDX-License-Identifier: BSD-3-Clause
// Role: pages that one node writes and another reads in each round come with the barrier where the
// reader's only thread waits in it, and by faults where it has another one. Either way the reader
// finds what was written.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <hiroba/dsm.hpp>
#include <string>
#include <thread>

namespace {

constexpr std::uint64_t pages = 32, rounds = 100, page_words = 4096 / 8;

struct Reader {
    hiroba::SharedMemory& shared;
    std::uint64_t* words;
    std::uint64_t wrong = 0, round = 0;

    /// Returns how many faults this node has taken in `rounds` rounds.
    std::uint64_t faults() {
        const std::uint64_t before = shared.counts().faults;
        for (std::uint64_t last = round + rounds; round < last; ++round) {
            if (shared.node() == 0)
                for (std::uint64_t i = 0; i < pages; ++i) words[i * page_words] = round * pages + i;
            shared.barrier();
            if (shared.node() == 1)
                for (std::uint64_t i = 0; i < pages; ++i)
                    wrong += words[i * page_words] != round * pages + i;
            shared.barrier();
        }
        return shared.counts().faults - before;
    }
};

}  // namespace

int main() {
    std::string why;
    const auto shared = hiroba::SharedMemory::open(&why);
    if (!shared) return std::fprintf(stderr, "%s\n", why.c_str()), 1;
    void* made = nullptr;
    if (shared->node() == 0) made = shared->allocate(pages * 4096, 4096);
    Reader reader{*shared, reinterpret_cast<std::uint64_t*>(
                               shared->broadcast(reinterpret_cast<std::uint64_t>(made), 0))};
    reader.faults();  // learns
    const std::uint64_t alone = reader.faults();
    std::atomic<bool> may_end{false};
    std::thread other{[&] { may_end.wait(false); }};
    const std::uint64_t beside = reader.faults();
    may_end = true;
    may_end.notify_all();
    other.join();
    const std::uint64_t again = reader.faults();
    if (shared->node() != 1) return 0;
    std::printf("of %lu reads of new pages %lu, %lu and %lu were faults, %lu wrong\n",
                pages * rounds, alone, beside, again, reader.wrong);
    // The fault at a round's first page reads the others ahead. Of what comes with the barrier a
    // page is left to a fault now and then, to see whether it is still read.
    const bool held =
        alone < rounds / 2 && beside >= rounds && again < rounds / 2 && reader.wrong == 0;
    std::printf("%s\n", held ? "held" : "failed");
    return held ? 0 : 1;
}
