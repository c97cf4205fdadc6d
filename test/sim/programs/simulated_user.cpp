// SPDX-License-Identifier: BSD-3-Clause
// A program on hiroba/net.hpp as a user writes one, with what simulated nodes must have apart and
// their threads must be able to do. Usage: simulated_user WHAT [words]; prints one line a node.
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <numeric>
#include <semaphore>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "hiroba/net.hpp"

namespace {

namespace net = hiroba::net;
using hiroba::NodeId;
using namespace std::chrono_literals;

int plain = 5;
int large[1 << 18];           // 1 MiB of .bss
std::vector<int> made(3, 7);  // by a constructor, on the heap
std::string said = "made before main";
thread_local int local = 40;
thread_local std::vector<int> local_made(2, 9);

int& inside() {
    static int value = plain * 2;
    return value;
}

struct Told {
    ~Told() { std::printf("node of %d: destroyed\n", plain); }
} told;

void require(bool good, const char* what) {
    if (good) return;
    std::fprintf(stderr, "wrong: %s\n", what);
    std::exit(9);
}

struct Job {
    std::unique_ptr<net::Network> network;
    net::Handle memory;
    unsigned self = 0, nodes = 1;
};

Job join() {
    std::string why;
    Job job;
    job.network = net::Network::open(&why);
    const auto memory = job.network ? job.network->allocate(1 << 16, &why) : std::nullopt;
    if (!memory || !job.network->connect(&why)) {
        std::fprintf(stderr, "%s\n", why.c_str());
        std::exit(78);
    }
    job.memory = *memory;
    job.self = job.network->self().value;
    job.nodes = job.network->nodes();
    return job;
}

/// Writes this node's number into each kind of variable, lets others go on, and looks again.
void variables(int, char** words) {
    Job job = join();
    const int mine = static_cast<int>(job.self) + 100;
    plain = mine;
    large[1 << 17] = mine;
    made.push_back(mine);
    said += words[1];
    words[1][0] = static_cast<char>('0' + job.self);
    local = mine;
    local_made[0] = mine;
    require(inside() == 2 * mine, "a static variable is made when it is first reached, by each");
    for (int round = 0; round < 20; ++round) {
        job.network->barrier();
        require(plain == mine && large[1 << 17] == mine && large[1] == 0, "global variables");
        require(made.size() == 4 && made[3] == mine && made[0] == 7, "a container");
        require(words[1][0] == static_cast<char>('0' + job.self), "words of the command");
        require(local == mine && local_made.size() == 2 && local_made[0] == mine, "thread_local");
        errno = mine;
        job.network->barrier();
        require(errno == mine, "errno");
    }
    std::thread other([&] {
        require(local == 40 && local_made[0] == 9, "another thread begins with its own");
        local = -mine;
        std::this_thread::yield();
        require(local == -mine && plain == mine, "and keeps them");
    });
    other.join();
    require(local == mine, "as the first one does");
}

/// Requests whose local ends are global variables, while other nodes have their turns.
void requests(int, char**) {
    Job job = join();
    net::Network& network = *job.network;
    const auto mine = network.register_local(std::span(large));
    require(mine.has_value(), "register_local");
    constexpr int count = 4096;
    const int base = static_cast<int>(job.self) * 1'000'000;
    std::iota(large, large + count, base);
    net::Pending pending;
    const NodeId next{(job.self + 1) % job.nodes};
    network.insist([&] {
        return network.try_write_async({.target = next,
                                        .from = {*mine, 0},
                                        .to = {job.memory, 0},
                                        .bytes = count * sizeof(int),
                                        .on_complete = pending.callback()});
    });
    network.wait(pending);
    network.barrier();
    const auto here = network.local<int>(job.memory);
    const int theirs = static_cast<int>((job.self + job.nodes - 1) % job.nodes) * 1'000'000;
    for (int i = 0; i < count; ++i) require(here[i] == theirs + i, "what was written here");
    network.insist([&] {
        return network.try_read_async({.source = next,
                                       .from = {job.memory, 0},
                                       .to = {*mine, 8192 * sizeof(int)},
                                       .bytes = count * sizeof(int),
                                       .on_complete = pending.callback()});
    });
    network.wait(pending);
    for (int i = 0; i < count; ++i) require(large[8192 + i] == base + i, "what was read back");
    static std::uint64_t before = 1;
    const auto old = network.register_local(std::span(&before, 1));
    network.insist([&] {
        return network.try_atomic_async({.target = NodeId{0},
                                         .at = {job.memory, 65528},
                                         .op = net::AtomicOp::fetch_add,
                                         .bytes = 8,
                                         .operand = 1,
                                         .old = {*old, 0},
                                         .on_complete = pending.callback()});
    });
    network.wait(pending);
    require(before < job.nodes, "an atomic's old value in a global variable");
    const auto sum = network.all_reduce(before, std::plus<>{});
    require(sum == std::uint64_t{job.nodes} * (job.nodes - 1) / 2, "all old values");
    network.barrier();
}

/// Eight threads meet in everything that the C++ library waits with.
void threads(int, char**) {
    Job job = join();
    constexpr int count = 8;
    std::mutex latch;
    std::recursive_mutex twice;
    std::shared_mutex readers;
    std::condition_variable all_there;
    std::once_flag once;
    std::counting_semaphore<count> tickets{2};
    std::atomic<int> round{0}, inside_now{0};
    int there = 0, sum = 0, onces = 0, turns = 0, alone_turns = 0;
    std::vector<std::thread> all;
    std::vector<std::thread::id> ids(count);
    for (int self = 0; self < count; ++self) {
        all.emplace_back([&, self] {
            ids[self] = std::this_thread::get_id();
            std::call_once(once, [&] {
                std::this_thread::yield();
                ++onces;
            });
            require(onces == 1, "call_once returns when the call is done");
            {
                std::unique_lock guard{latch};
                if (++there == count) all_there.notify_all();
                all_there.wait(guard, [&] { return there == count; });
            }
            for (int i = 0; i < 10; ++i) {
                const std::scoped_lock outer{twice};
                const std::scoped_lock inner{twice};
                const int before = sum;
                std::this_thread::sleep_for(1ms);
                sum = before + 1;
            }
            tickets.acquire();
            require(++inside_now <= 2, "a semaphore");
            std::this_thread::sleep_for(1ms);
            --inside_now;
            tickets.release();
            {
                const std::shared_lock shared{readers};
                std::this_thread::yield();
            }
            while (round.load() != self) round.wait(round.load());
            ++turns;
            round = self + 1;
            round.notify_all();
            const std::unique_lock alone{readers};
            const int before = alone_turns;
            std::this_thread::yield();
            alone_turns = before + 1;
        });
    }
    for (std::thread& each : all) each.join();
    require(sum == 80, "a recursive mutex");
    require(turns == count, "atomic waits");
    require(alone_turns == count, "a read-write lock");
    for (int i = 1; i < count; ++i)
        require(ids[i] != ids[i - 1], "threads have names of their own");
    pthread_mutexattr_t checked;
    pthread_mutexattr_init(&checked);
    pthread_mutexattr_settype(&checked, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_t mutex;
    pthread_mutex_init(&mutex, &checked);
    require(pthread_mutex_lock(&mutex) == 0 && pthread_mutex_lock(&mutex) == EDEADLK &&
                pthread_mutex_unlock(&mutex) == 0 && pthread_mutex_unlock(&mutex) == EPERM,
            "a mutex that checks");
    job.network->barrier();
}

/// An hour passes in moments, and limits of waits are kept.
void waits(int, char**) {
    Job job = join();
    const auto start = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(300s);
    std::mutex latch;
    std::condition_variable never;
    std::unique_lock guard{latch};
    require(never.wait_for(guard, 100s) == std::cv_status::timeout, "wait_for ends");
    require(
        never.wait_until(guard, std::chrono::system_clock::now() + 50s) == std::cv_status::timeout,
        "wait_until ends");
    require(!job.network->wait_until([] { return false; }, 1'000'000), "wait_until of ours");
    const auto length = std::chrono::steady_clock::now() - start;
    require(length >= 450s && length < 451s, "as long as asked");
    job.network->barrier();
}

/// An exception that is handled while other nodes throw theirs.
void exceptions(int, char**) {
    Job job = join();
    for (int round = 0; round < 10; ++round) {
        try {
            throw std::runtime_error(std::to_string(job.self));
        } catch (const std::exception& one) {
            job.network->barrier();
            require(one.what() == std::to_string(job.self), "the exception being handled");
            try {
                throw;
            } catch (const std::runtime_error& again) {
                require(again.what() == std::to_string(job.self), "is the one thrown again");
            }
        }
    }
    require(std::uncaught_exceptions() == 0, "none is left");
    job.network->barrier();
}

void random_order(int, char**) {
    Job job = join();
    for (int round = 0; round < 3; ++round) {
        std::printf("%u in round %d\n", job.self, round);
        job.network->barrier();
    }
}

void status(int, char** words) {
    Job job = join();
    if (static_cast<int>(job.self) == std::atoi(words[0])) std::exit(std::atoi(words[1]));
    job.network->wait_until([] { return false; });
}

void locked(int, char**) {
    Job job = join();
    std::mutex one;
    one.lock();
    one.lock();
}

void busy(int, char**) {
    Job job = join();
    static std::atomic<bool> never{false};
    if (job.self == 1)
        while (!never.load()) continue;
    job.network->barrier();
}

void crash(int, char**) {
    Job job = join();
    job.network->barrier();
    if (job.self == 1) std::abort();
    job.network->barrier();
}

void local_end(int, char**) {
    Job job = join();
    const auto mine = job.network->register_local(std::span(&local, 1));
    net::Pending pending;
    job.network->insist([&] {
        return job.network->try_write_async({.target = NodeId{(job.self + 1) % job.nodes},
                                             .from = {*mine, 0},
                                             .to = {job.memory, 0},
                                             .bytes = sizeof local,
                                             .on_complete = pending.callback()});
    });
    job.network->wait(pending);
}

}  // namespace

int main(int argc, char** argv) {
    const struct {
        const char* name;
        void (*run)(int, char**);
    } all[] = {{"variables", variables}, {"requests", requests},     {"threads", threads},
               {"waits", waits},         {"exceptions", exceptions}, {"order", random_order},
               {"status", status},       {"locked", locked},         {"busy", busy},
               {"crash", crash},         {"local_end", local_end}};
    std::string options;
    for (int option; (option = getopt(argc, argv, "ab")) != -1;)
        options += static_cast<char>(option);
    for (const auto& each : all) {
        if (optind >= argc || std::strcmp(each.name, argv[optind]) != 0) continue;
        each.run(argc - optind - 1, argv + optind + 1);
        if (options == "ab") std::printf("both options\n");
        return 0;
    }
    return 64;
}
