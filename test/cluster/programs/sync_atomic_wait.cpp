// SPDX-License-Identifier: BSD-3-Clause
// C++20's waiting: std::atomic::wait, latches, barriers and semaphores between threads of all
// nodes, with data handed over behind them; and futexes by hand.
#include <linux/futex.h>
#include <omp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <latch>
#include <semaphore>

namespace {

constexpr int turns = 40, words = 3000;
std::atomic<int> turn{0};
std::atomic<long> wide{0};  // not a futex's size: waits on a stand-in
int handed[words];
std::latch* all_here;
std::barrier<>* together;
std::counting_semaphore<64> items{0};
int deposited[256];
std::atomic<int> next_item{0};
unsigned by_hand = 0;
bool ordered =
    false;  // an acquire that does not wait is an atomic, which orders nothing by default

long wrong = 0;

void pass_turns(int thread, int threads) {
    for (int mine = thread; mine < turns; mine += threads) {
        for (int now; (now = turn.load(std::memory_order_acquire)) != mine;) turn.wait(now);
        for (int& word : handed) {
            if (ordered && word != mine) {
#pragma omp atomic
                ++wrong;
            }
            word = mine + 1;
        }
        turn.store(mine + 1, std::memory_order_release);
        turn.notify_all();
    }
}

void deposit_and_take(int thread, int threads) {
    constexpr int each = 12;
    if (thread == 0) {
        for (int i = 0; i < each * (threads - 1); ++i) {
            deposited[i] = i + 7;
            items.release();
        }
        return;
    }
    for (int i = 0; i < each; ++i) {
        items.acquire();
        const int at = next_item.fetch_add(1);
        if (ordered && deposited[at] != at + 7) {
#pragma omp atomic
            ++wrong;
        }
    }
}

long futex(int operation, unsigned value, const timespec* limit) {
    return syscall(SYS_futex, &by_hand, operation, value, limit, nullptr, ~0u);
}

}  // namespace

int main(int count, char**) {
    ordered = count > 1;
    const int threads = omp_get_max_threads();
    all_here = new std::latch{threads};
    together = new std::barrier<>{threads};
    int after_latch = 0;
#pragma omp parallel num_threads(threads) reduction(+ : after_latch)
    {
        const int thread = omp_get_thread_num();
        pass_turns(thread, threads);
        all_here->arrive_and_wait();
        after_latch += !ordered || handed[thread] == turns;
        for (int round = 0; round < 5; ++round) {
            if (thread == round % threads) handed[round] = -round;
            together->arrive_and_wait();
            if (ordered && handed[round] != -round) {
#pragma omp atomic
                ++wrong;
            }
        }
        deposit_and_take(thread, threads);
        if (thread == 0) {
            wide.store(5);
            wide.notify_all();
        } else {
            wide.wait(0);
        }
        if (wide.load() != 5) {
#pragma omp atomic
            ++wrong;
        }
    }
    std::printf("turns %d, after the latch %d, wrong %ld\n", turn.load(), after_latch, wrong);

    const timespec short_time{0, 20'000'000};
    const bool late = futex(FUTEX_WAIT_PRIVATE, 0, &short_time) == -1 && errno == ETIMEDOUT;
    const bool other = futex(FUTEX_WAIT_PRIVATE, 1, nullptr) == -1 && errno == EAGAIN;
    std::binary_semaphore never{0};
    const bool in_vain = !never.try_acquire_for(std::chrono::milliseconds(20));
    std::printf("late %d, other value %d, wake %ld, in vain %d\n", late, other,
                futex(FUTEX_WAKE_PRIVATE, 1, nullptr), in_vain);
    return wrong != 0;
}
