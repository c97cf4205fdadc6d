// SPDX-License-Identifier: BSD-3-Clause
// Role: wrong use of the relocatable space that no Status can tell: each ends the job with a line,
// where it would wait for ever or write to memory that is gone. Usage: gas_misuse CASE
#include <chrono>
#include <thread>
#include <vector>

#include "gas/check.hpp"

using namespace hiroba::gas;
using gas_test::insist;

int main(int, char** argv) {
    const std::string what = argv[1];
    if (what == "null") {  // HIROBA_GAS_PAGE is wrong
        std::printf(space::open(nullptr) == nullptr ? "no space\n" : "WRONG: a space\n");
        return 0;
    }
    auto space = gas_test::join();
    const bool first = space->rank() == 0;
    const auto memory = space->allocate_together<std::uint64_t>(100'000, Distribution::block());
    insist(static_cast<bool>(memory), "allocation");
    if (what == "kinds") first ? space->barrier() : (void)space->broadcast(1, 1);
    if (what == "roots") (void)space->broadcast(1, space->rank());
    if (what == "root") (void)space->broadcast(1, 9);
    if (what == "allocation") {
        if (!first) space->barrier();
        (void)space->allocate_together<std::uint64_t>(10, Distribution::block());
    }
    if (what == "leave") {
        if (first) space->barrier();
        space.reset();
    }
    if (what == "pending") {
        std::vector<std::uint64_t> words(50'000);
        Pending pending;
        insist(space->start_get(memory + (first ? 50'000 : 0), words, pending), "start");
    }
    // The other waits for longer than HIROBA_WAIT_TIMEOUT.
    if (what == "busy" && !first) std::this_thread::sleep_for(std::chrono::seconds(25));
    if (space != nullptr) space->barrier();
    std::printf("WRONG: %s was not told\n", argv[1]);
    return 0;
}
