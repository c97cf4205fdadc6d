// SPDX-License-Identifier: BSD-3-Clause
// The limit of a job: it ends what computes too long and what does nothing, and nothing else.
#include "conformance/allowance.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>

#include "base/clock.hpp"

namespace hiroba::conformance {
namespace {

/// Long enough for a machine whose other work leaves a tenth of a core.
constexpr std::uint64_t allowed_ns = 300'000'000;

/// A process that does only `body`.
class Process {
public:
    template <class Body>
    explicit Process(Body body) : pid_(fork()) {
        if (pid_ != 0) return;
        for (;;) body();
    }
    ~Process() {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
    pid_t pid() const { return pid_; }

private:
    pid_t pid_;
};

TEST(Allowance, EndsWhatComputesTooLong) {
    const Process busy{[] {}};
    Allowance allowance{allowed_ns, 1};
    const std::uint64_t start_ns = now_ns();
    while (!allowance.used_up({busy.pid()})) usleep(10'000);
    EXPECT_GE(now_ns() - start_ns, 2 * allowed_ns) << "of one core, of two cores";
}

TEST(Allowance, EndsWhatDoesNothing) {
    const Process idle{[] { pause(); }};
    Allowance allowance{allowed_ns, 1};
    const std::uint64_t start_ns = now_ns();
    while (!allowance.used_up({idle.pid()})) usleep(10'000);
    EXPECT_GE(now_ns() - start_ns, 2 * allowed_ns);
}

TEST(Allowance, IsNotUsedUpByWaitingForTheMachine) {
    // A tenth of a core, as much as a busy machine may leave it.
    const Process hindered{[] {
        const std::clock_t until = std::clock() + CLOCKS_PER_SEC / 100;
        while (std::clock() < until) {
        }
        usleep(90'000);
    }};
    Allowance allowance{allowed_ns, 1};
    const std::uint64_t start_ns = now_ns();
    while (now_ns() - start_ns < 5 * allowed_ns) {
        ASSERT_FALSE(allowance.used_up({hindered.pid()}));
        usleep(10'000);
    }
}

TEST(Allowance, CountsThoseThatAreGone) {
    Allowance allowance{allowed_ns, 2};
    const Process busy{[] {}};
    std::vector<pid_t> both;
    {
        const Process first{[] {}};
        both = {first.pid(), busy.pid()};
        for (int i = 0; i < 25; ++i) {
            ASSERT_FALSE(allowance.used_up(both));
            usleep(1'000);
        }
    }
    while (!allowance.used_up(both)) usleep(10'000);
}

}  // namespace
}  // namespace hiroba::conformance
