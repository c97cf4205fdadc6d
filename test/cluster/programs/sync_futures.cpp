// SPDX-License-Identifier: BSD-3-Clause
// Waits that libstdc++ makes within the library (futures), and every operation of futex(2), between
// threads of all nodes; also by an instruction of the program's own.
#include <linux/futex.h>
#include <omp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <ctime>
#include <future>
#include <thread>
#include <vector>

namespace {

constexpr int rounds = 20;
std::atomic<unsigned> words[8];
std::atomic<int> arrived{0}, sum{0}, wrong{0};

long futex(std::atomic<unsigned>* word, int operation, unsigned value, const void* third = nullptr,
           std::atomic<unsigned>* other = nullptr, unsigned last = 0) {
    return syscall(SYS_futex, word, operation, value, third, other, last);
}

long futex_by_instruction(std::atomic<unsigned>* word, int operation, unsigned value) {
    long result = SYS_futex;
    register long limit asm("r10") = 0;
    asm volatile("syscall"
                 : "+a"(result)
                 : "D"(word), "S"(static_cast<long>(operation)), "d"(static_cast<long>(value)),
                   "r"(limit)
                 : "rcx", "r11", "memory");
    return result;
}

void expect(bool holds, const char* what) {
    if (holds) return;
    std::printf("not so on thread %d: %s (errno %d)\n", omp_get_thread_num(), what, errno);
    ++wrong;
}

/// Until `count` threads wait for it: a wake that asks for none beyond says how many there were.
void wake_all_of(int count, std::atomic<unsigned>* word, int operation, unsigned bits) {
    for (int woken = 0; woken < count; std::this_thread::yield())
        woken += static_cast<int>(futex(word, operation, 1, nullptr, nullptr, bits));
}

void futures(int thread, int threads) {
    static std::vector<std::promise<int>>* promises;
    static std::vector<std::future<int>>* values;
    static std::shared_future<int>* everyone;
    static std::promise<int>* for_everyone;
#pragma omp single
    {
        promises = new std::vector<std::promise<int>>(static_cast<std::size_t>(rounds));
        values = new std::vector<std::future<int>>;
        for (auto& each : *promises) values->push_back(each.get_future());
        for_everyone = new std::promise<int>;
        everyone = new std::shared_future<int>{for_everyone->get_future()};
    }
    // Each waits for what the next one gives.
    for (int i = thread; i < rounds; i += threads) {
        if (i > 0) sum += (*values)[static_cast<std::size_t>(i - 1)].get();
        (*promises)[static_cast<std::size_t>(i)].set_value(i);
    }
#pragma omp barrier
    if (thread == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        for_everyone->set_value(1000);
    }
    sum += everyone->get();
}

void futures_alone() {
    std::promise<int> given;
    auto value = given.get_future();
    expect(value.wait_for(std::chrono::milliseconds(5)) == std::future_status::timeout, "late");
    std::thread giver([&] { given.set_value(7); });
    expect(value.get() == 7, "a future of a thread");
    giver.join();
    std::packaged_task<int(int)> task([](int x) { return x + 1; });
    auto result = task.get_future();
    std::thread worker(std::move(task), 41);
    expect(result.get() == 42, "a packaged task");
    worker.join();
    expect(std::async(std::launch::async, [] { return 5; }).get() == 5, "async");
}

void wait_for(std::atomic<unsigned>* word, int operation, unsigned bits) {
    ++arrived;
    while (word->load() == 0) futex(word, operation, 0, nullptr, nullptr, bits);
}

/// Thread 1 waits with one bit; thread 0 wakes with others in vain.
void bits(int thread) {
    if (thread == 1) {
        ++arrived;
        expect(futex(&words[0], FUTEX_WAIT_BITSET_PRIVATE, 0, nullptr, nullptr, 4) == 0, "woken");
    } else if (thread == 0) {
        while (arrived == 0) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        expect(futex(&words[0], FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, nullptr, nullptr, 3) == 0,
               "no bit of the waiter's");
        wake_all_of(1, &words[0], FUTEX_WAKE_BITSET_PRIVATE, 12);
        expect(futex(&words[0], FUTEX_WAKE_PRIVATE, INT_MAX) == 0, "nobody is left");
    }
}

void requeues(int thread, int threads) {
    if (thread != 0) return wait_for(&words[1], FUTEX_WAIT_PRIVATE, 0);
    while (arrived != threads - 1) std::this_thread::yield();
    expect(futex(&words[1], FUTEX_CMP_REQUEUE, 1, reinterpret_cast<void*>(long{INT_MAX}), &words[2],
                 5) == -1 &&
               errno == EAGAIN,
           "another value");
    words[1] = 1;
    futex(&words[1], FUTEX_CMP_REQUEUE_PRIVATE, 1, reinterpret_cast<void*>(long{INT_MAX}),
          &words[2], 1);
    futex(&words[2], FUTEX_WAKE_PRIVATE, INT_MAX);
}

void operations(int thread, int threads) {
    if (thread != 0) return wait_for(&words[3], FUTEX_WAIT_PRIVATE, 0);
    while (arrived != threads - 1) std::this_thread::yield();
    words[4] = 5;
    const unsigned add_2_if_5 = FUTEX_OP(FUTEX_OP_ADD, 2, FUTEX_OP_CMP_EQ, 5);
    words[3] = 1;
    futex(&words[5], FUTEX_WAKE_OP_PRIVATE, 1, nullptr, &words[4], add_2_if_5);
    expect(words[4] == 7, "added");
    const unsigned set_2_if_above_6 = FUTEX_OP(FUTEX_OP_SET, 2, FUTEX_OP_CMP_GT, 6);
    futex(&words[3], FUTEX_WAKE_OP_PRIVATE, INT_MAX, nullptr, &words[4], set_2_if_above_6);
    expect(words[4] == 2, "set");
}

void one_of_several(int thread) {
#ifdef SYS_futex_waitv
    if (thread == 1) {
        futex_waitv all[2] = {{0, reinterpret_cast<std::uintptr_t>(&words[5]), 2 | 128, 0},
                              {0, reinterpret_cast<std::uintptr_t>(&words[6]), 2 | 128, 0}};
        long one;
        do {
            one = syscall(SYS_futex_waitv, all, 2, 0, nullptr, CLOCK_MONOTONIC);
        } while (one >= 0 && words[6] == 0);
        const bool missing = one == -1 && errno == ENOSYS;
        const bool soon = one == -1 && errno == EAGAIN;  // changed before the call
        expect(missing || soon || one == 1 || one == 0, "one of two words");
    } else if (thread == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        words[6] = 1;
        futex(&words[6], FUTEX_WAKE_PRIVATE, 1);
    }
#endif
}

void limits() {
    timespec time{0, 5'000'000};
    expect(futex(&words[7], FUTEX_WAIT_PRIVATE, 0, &time) == -1 && errno == ETIMEDOUT, "in time");
    for (const int clock : {CLOCK_REALTIME, CLOCK_MONOTONIC}) {
        clock_gettime(clock, &time);
        time.tv_sec += (time.tv_nsec + 5'000'000) / 1'000'000'000;
        time.tv_nsec = (time.tv_nsec + 5'000'000) % 1'000'000'000;
        const int real = clock == CLOCK_REALTIME ? FUTEX_CLOCK_REALTIME : 0;
        expect(futex(&words[7], FUTEX_WAIT_BITSET_PRIVATE | real, 0, &time, nullptr, ~0u) == -1 &&
                   errno == ETIMEDOUT,
               "at a time");
    }
    time = {0, -1};
    expect(futex(&words[7], FUTEX_WAIT, 0, &time) == -1 && errno == EINVAL, "no time");
    expect(futex(&words[7], FUTEX_WAIT, 1) == -1 && errno == EAGAIN, "no such value");
    expect(futex(&words[7], FUTEX_WAIT_BITSET, 0, nullptr, nullptr, 0) == -1 && errno == EINVAL,
           "no bit");
    auto* const odd =
        reinterpret_cast<std::atomic<unsigned>*>(reinterpret_cast<char*>(&words[7]) + 1);
    expect(futex(odd, FUTEX_WAKE, 1) == -1 && errno == EINVAL, "no word");
    expect(futex(&words[7], FUTEX_WAKE, 1) == 0, "nobody waits");
    expect(futex_by_instruction(&words[7], FUTEX_WAIT_PRIVATE, 3) == -EAGAIN, "by instruction");
}

void by_instruction(int thread) {
    if (thread == 1) {
        while (words[7] == 0) futex_by_instruction(&words[7], FUTEX_WAIT_PRIVATE, 0);
    } else if (thread == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        words[7] = 1;
        futex_by_instruction(&words[7], FUTEX_WAKE_PRIVATE, 1);
    }
}

}  // namespace

int main() {
    const int threads = omp_get_max_threads();
#pragma omp parallel num_threads(threads)
    {
        const int thread = omp_get_thread_num();
        const auto next = [] {
#pragma omp barrier
#pragma omp single
            arrived = 0;
        };
        futures(thread, threads);
        next();
        if (threads > 1) bits(thread);
        next();
        requeues(thread, threads);
        next();
        operations(thread, threads);
        next();
        if (threads > 1) one_of_several(thread);
        next();
        if (thread == 0) limits();
        next();
        if (threads > 1) by_instruction(thread);
    }
    futures_alone();
    std::printf("sum %d, wrong %d\n", sum.load() - 1000 * threads, wrong.load());
    return wrong != 0;
}
