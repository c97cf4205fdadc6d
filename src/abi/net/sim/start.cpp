// SPDX-License-Identifier: BSD-3-Clause
// Role: takes over the process of a program on simulated nodes: libhiroba_net_sim.so, which
// `hiroba sim` preloads. It stands in for __libc_start_main, as the runtime of OpenMP programs
// does: libraries are initialized by then and the program is not, so each node can run the
// program's own constructors, main, and destructors.
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string_view>

#include "abi/net/network.hpp"
#include "abi/net/sim/job.hpp"
#include "base/fatal.hpp"
#include "base/settings.hpp"
#include "net/bootstrap/job.hpp"

extern char** environ;

namespace hiroba::abi::sim {
namespace {

constexpr const char* words_name = "HIROBA_JOB_SIMULATION";

Job* watched = nullptr;
unsigned busy_seconds = 0;

/// Libraries whose programs do not run here, and why.
struct Unfit {
    std::string_view name;
    const char* why;
};
constexpr std::array unfit = {Unfit{"libhiroba_gas.so", "the relocatable space"},
                              Unfit{"libhiroba_dsm.so", "shared memory"}, Unfit{"libacp.so", "ACP"},
                              Unfit{"libgomp.so", "OpenMP"}, Unfit{"libomp.so", "OpenMP"}};

struct Libraries {
    bool net = false;
    const char* refused = nullptr;
};

int look_at(dl_phdr_info* info, std::size_t, void* to) {
    auto& found = *static_cast<Libraries*>(to);
    const std::string_view path = info->dlpi_name;
    const std::string_view name = path.substr(path.rfind('/') + 1);
    found.net = found.net || name.starts_with("libhiroba_net.so");
    for (const Unfit& each : unfit)
        if (name.starts_with(each.name)) found.refused = each.why;
    return 0;
}

void refuse_other_programs() {
    Libraries found;
    dl_iterate_phdr(&look_at, &found);
    if (found.refused != nullptr)
        die(exit_usage, "the simulator has no %s: it runs programs on hiroba/net.hpp and kick.hpp",
            found.refused);
    if (!found.net)
        die(exit_usage,
            "the program is not linked with libhiroba_net.so: the simulator runs programs on "
            "hiroba/net.hpp and kick.hpp");
}

/// Each second of processor time: a thread that never gives its turn away would stop all others.
void look_at_progress(int) {
    static std::uint64_t events_before = ~std::uint64_t{0};
    static unsigned seconds = 0;
    net::Simulation& simulation = watched->simulation();
    if (net::Simulation::current() == nullptr) return;
    seconds = simulation.events() == events_before ? seconds + 1 : 0;
    events_before = simulation.events();
    if (seconds < busy_seconds) return;
    die(exit_environment,
        "node %u, thread %u has computed for %u s without waiting, and simulated threads take "
        "turns: wait in hiroba (wait_until), in pthreads, or call sched_yield() in the loop; or "
        "raise --busy",
        simulation.self().value, simulation.thread(), seconds);
}

/// Says which node crashes; the program's own handlers take this one's place.
void tell_of_crash(int number) {
    if (net::Simulation::current() != nullptr) {
        say("node %u, thread %u: signal %d, after %lu ns of virtual time",
            watched->simulation().self().value, watched->simulation().thread(), number,
            watched->simulation().time_ns());
    }
    signal(number, SIG_DFL);
    raise(number);
}

void watch(Job& job, unsigned seconds) {
    watched = &job;
    busy_seconds = seconds;
    static char stack[std::size_t{64} << 10];
    const stack_t crash_stack{stack, 0, sizeof stack};
    sigaltstack(&crash_stack, nullptr);
    struct sigaction on_crash {};
    on_crash.sa_handler = &tell_of_crash;
    on_crash.sa_flags = SA_ONSTACK | SA_NODEFER;
    for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
        sigaction(number, &on_crash, nullptr);
    struct sigaction on_second {};
    on_second.sa_handler = &look_at_progress;
    on_second.sa_flags = SA_ONSTACK | SA_RESTART;
    sigaction(SIGVTALRM, &on_second, nullptr);
    const itimerval each_second{{1, 0}, {1, 0}};
    setitimer(ITIMER_VIRTUAL, &each_second, nullptr);
}

}  // namespace

JobWords read_words(const char* text) {
    JobWords words;
    auto& options = words.simulation;
    unsigned long limit_seconds = 0;
    if (text == nullptr ||
        std::sscanf(text, "%u %lu %u %u %u %lu %u", &options.nodes, &options.seed, &options.loss,
                    &options.duplicate, &options.reorder, &limit_seconds,
                    &words.busy_seconds) != 7 ||
        options.nodes == 0) {
        die(exit_usage, "%s=\"%s\": start the program with `hiroba sim`", words_name,
            text == nullptr ? "" : text);
    }
    options.limit_ns = limit_seconds * 1'000'000'000;
    return words;
}

int run_simulated(const ProgramStart& start) {
    const JobWords words = read_words(getenv(words_name));
    net::restore_user_environment(environ);
    if (auto valid = check_settings(); !valid) die(exit_usage, "%s", valid.error().text.c_str());
    refuse_other_programs();
    Job job{words, start};
    watch(job, words.busy_seconds);
    const int status = job.run();
    const itimerval none{};
    setitimer(ITIMER_VIRTUAL, &none, nullptr);
    fflush(nullptr);
    real<void(int)>("_exit")(status);
    return status;
}

}  // namespace hiroba::abi::sim

namespace hiroba::net {

std::unique_ptr<Network> Network::open(std::string* why, const Options& options) {
    const auto service = std::make_shared<std::uint32_t>(0);
    Simulation& simulation = *Simulation::current();
    auto made = NetworkOver::make(
        simulation.open(), options,
        {.start = [&simulation, service](
                      std::function<void()> body) { *service = simulation.spawn(std::move(body)); },
         .join = [&simulation, service] { simulation.join(*service); },
         .job_key = simulation.job_key()});
    if (made) return std::move(*made);
    if (why != nullptr) *why = made.error().text;
    return nullptr;
}

}  // namespace hiroba::net

extern "C" [[gnu::visibility("default")]] int __libc_start_main(int (*main)(int, char**, char**),
                                                                int argc, char** argv,
                                                                void (*initialize)(), void (*)(),
                                                                void (*)(), void*) {
    return hiroba::abi::sim::run_simulated({main, argc, argv, initialize});
}
