// SPDX-License-Identifier: BSD-3-Clause
// Role: the C library's calls of time, for simulated threads: clocks show the virtual time, and a
// thread that sleeps lets others run. Threads that are not simulated get libc's own.
#include <errno.h>
#include <sched.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "abi/net/sim/job.hpp"
#include "abi/net/sim/virtual_time.hpp"

#define HIROBA_PUBLIC extern "C" [[gnu::visibility("default")]]

namespace hiroba::abi::sim {
namespace {

/// Sleeps so long; wake-ups are not meant for it.
void sleep_until(net::Simulation& simulation, std::uint64_t deadline_ns) {
    while (simulation.now_ns() < deadline_ns) simulation.park(deadline_ns);
}

int sleep_for(Job& job, std::uint64_t ns) {
    net::Simulation& simulation = job.simulation();
    sleep_until(simulation, simulation.now_ns() + ns);
    return 0;
}

}  // namespace
}  // namespace hiroba::abi::sim

using namespace hiroba::abi::sim;

HIROBA_PUBLIC int clock_gettime(clockid_t clock, timespec* to) noexcept {
    Job* const job = job_here();
    if (job == nullptr) return real<decltype(clock_gettime)>("clock_gettime")(clock, to);
    *to = time_of(clock, job->simulation().now_ns());
    return 0;
}

HIROBA_PUBLIC int gettimeofday(timeval* to, void* zone) noexcept {
    Job* const job = job_here();
    if (job == nullptr) return real<int(timeval*, void*)>("gettimeofday")(to, zone);
    const timespec now = time_of(CLOCK_REALTIME, job->simulation().now_ns());
    *to = {now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

HIROBA_PUBLIC time_t time(time_t* to) noexcept {
    Job* const job = job_here();
    if (job == nullptr) return real<decltype(time)>("time")(to);
    const time_t now = time_of(CLOCK_REALTIME, job->simulation().now_ns()).tv_sec;
    if (to != nullptr) *to = now;
    return now;
}

HIROBA_PUBLIC int clock_nanosleep(clockid_t clock, int flags, const timespec* length,
                                  timespec* left) {
    Job* const job = job_here();
    if (job == nullptr)
        return real<decltype(clock_nanosleep)>("clock_nanosleep")(clock, flags, length, left);
    if ((flags & TIMER_ABSTIME) != 0) {
        sleep_until(job->simulation(), virtual_ns(clock, *length));
        return 0;
    }
    return sleep_for(*job, ns_of(*length));
}

HIROBA_PUBLIC int nanosleep(const timespec* length, timespec* left) {
    Job* const job = job_here();
    if (job == nullptr) return real<decltype(nanosleep)>("nanosleep")(length, left);
    return sleep_for(*job, ns_of(*length));
}

HIROBA_PUBLIC int usleep(useconds_t length) {
    Job* const job = job_here();
    if (job == nullptr) return real<decltype(usleep)>("usleep")(length);
    return sleep_for(*job, std::uint64_t{length} * 1000);
}

HIROBA_PUBLIC unsigned sleep(unsigned seconds) {
    Job* const job = job_here();
    if (job == nullptr) return real<decltype(sleep)>("sleep")(seconds);
    sleep_for(*job, std::uint64_t{seconds} * 1'000'000'000);
    return 0;
}

HIROBA_PUBLIC int sched_yield() noexcept {
    Job* const job = job_here();
    if (job == nullptr) return real<decltype(sched_yield)>("sched_yield")();
    job->simulation().pass();
    return 0;
}
