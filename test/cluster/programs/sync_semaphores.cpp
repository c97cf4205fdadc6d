// SPDX-License-Identifier: BSD-3-Clause
// C++20's semaphores as locks and as counts, whose last holder wakes nobody: libstdc++ 12 sleeps at
// the count that it read first (GCC PR 104928). And what is built on them and their like: requests
// to stop with their callbacks, between threads of regions and std::jthread.
#include <omp.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <latch>
#include <semaphore>
#include <stop_token>
#include <thread>

namespace {

constexpr int each = 100;
std::atomic<long> wrong{0};

long locked_by_one(int threads) {
    std::binary_semaphore open{1};
    long sum = 0;
#pragma omp parallel num_threads(threads)
    for (int i = 0; i < each; ++i) {
        open.acquire();
        sum += i;
        open.release();
    }
    return sum - long{each} * (each - 1) / 2 * threads;
}

/// At most two are inside, and all come in.
long counted(int threads) {
    std::counting_semaphore<8> room{2};
    std::atomic<int> inside{0}, most{0}, entered{0};
#pragma omp parallel num_threads(threads)
    for (int i = 0; i < each / 4; ++i) {
        if (i % 5 == 0) {
            while (!room.try_acquire_for(std::chrono::seconds(20))) ++wrong;
        } else {
            room.acquire();
        }
        const int now = ++inside;
        for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
        }
        ++entered;
        --inside;
        room.release();
    }
    return (most > 2) + (entered != each / 4 * threads);
}

/// Two hand over to each other, at the end of a region nobody comes behind.
long ping_pong() {
    std::binary_semaphore ping{0}, pong{0};
    long value = 0;
#pragma omp parallel num_threads(2)
    for (int i = 0; i < each / 4; ++i) {
        const bool first = omp_get_thread_num() == 0;
        if (!first) ping.acquire();
        ++value;
        first ? ping.release() : pong.release();
        if (first) pong.acquire();
    }
    return value - each / 4 * 2;
}

long stopped(int threads) {
    std::stop_source source;
    std::atomic<int> called{0}, saw{0};
    std::latch ready{threads + 1};
    std::barrier together{threads};
    {
        const std::jthread stopper{[&] {
            ready.arrive_and_wait();
            source.request_stop();
        }};
#pragma omp parallel num_threads(threads)
        {
            const std::stop_callback callback{source.get_token(), [&] {
                                                  called.fetch_add(1);
                                                  called.notify_all();
                                              }};
            ready.arrive_and_wait();
            for (int now; (now = called.load()) < threads;) called.wait(now);
            together.arrive_and_wait();
            saw += source.stop_requested();
        }
    }
    return (called != threads) + (saw != threads);
}

}  // namespace

int main(int count, char** arguments) {
    const int turns = count > 1 ? std::atoi(arguments[1]) : 100;
    const int threads = omp_get_max_threads();
    for (int turn = 0; turn < turns; ++turn) {
        wrong += locked_by_one(threads) != 0;
        if (turn % 5 == 0) wrong += counted(threads) + ping_pong() + stopped(threads);
    }
    std::printf("wrong %ld\n", wrong.load());
    return wrong != 0;
}
