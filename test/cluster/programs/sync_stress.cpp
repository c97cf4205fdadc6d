// SPDX-License-Identifier: BSD-3-Clause
// Producers and consumers on every node and in threads of the program's own, which open regions
// too, with delays of random length: sync_stress SEED ITEMS. A lost wake-up is a hang, a lost
// release a wrong sum.
#include <omp.h>
#include <pthread.h>
#include <time.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int slots = 5, own_threads = 4;

struct Item {
    std::uint64_t number, square;
    std::uint64_t copies[60];
};

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER, not_full = PTHREAD_COND_INITIALIZER;
pthread_rwlock_t totals_lock = PTHREAD_RWLOCK_INITIALIZER;
Item* queue[slots];
int filled;
std::uint64_t items, made, taken, seed;
std::uint64_t sum, torn, regions_wrong;

/// SplitMix64.
class Random {
public:
    explicit Random(std::uint64_t from) : state_(from) {}
    std::uint64_t below(std::uint64_t bound) {
        std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return (z ^ (z >> 31)) % bound;
    }

private:
    std::uint64_t state_;
};

void delay(Random& random) {
    const std::uint64_t kind = random.below(20);
    if (kind == 0) {
        const timespec time{0, static_cast<long>(random.below(300'000))};
        nanosleep(&time, nullptr);
    } else if (kind < 5) {
        for (std::uint64_t i = random.below(20'000); i > 0; --i) asm volatile("" ::: "memory");
    }
}

void lock(Random& random) {
    if (random.below(4) == 0 && pthread_mutex_trylock(&mutex) == 0) return;
    pthread_mutex_lock(&mutex);
}

void wait(pthread_cond_t& condition, Random& random) {
    if (random.below(4) != 0) {
        pthread_cond_wait(&condition, &mutex);
        return;
    }
    timespec until{};
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += static_cast<long>(random.below(2'000'000));
    until.tv_sec += until.tv_nsec / 1'000'000'000;
    until.tv_nsec %= 1'000'000'000;
    pthread_cond_timedwait(&condition, &mutex, &until);
}

void produce(Random random) {
    for (;;) {
        delay(random);
        lock(random);
        while (filled == slots && made < items) wait(not_full, random);
        if (made == items) break;
        Item* const item = new Item;
        item->number = ++made;
        item->square = made * made;
        for (std::uint64_t& copy : item->copies) copy = made;
        queue[filled++] = item;
        if (made == items) pthread_cond_broadcast(&not_full);
        pthread_cond_signal(&not_empty);
        pthread_mutex_unlock(&mutex);
    }
    pthread_mutex_unlock(&mutex);
}

void consume(Random random) {
    for (;;) {
        delay(random);
        lock(random);
        while (filled == 0 && taken < items) wait(not_empty, random);
        if (taken == items) break;
        Item* const item = queue[--filled];
        if (++taken == items) pthread_cond_broadcast(&not_empty);
        pthread_cond_signal(&not_full);
        pthread_mutex_unlock(&mutex);

        std::uint64_t wrong = item->square != item->number * item->number;
        for (const std::uint64_t copy : item->copies) wrong += copy != item->number;
        pthread_rwlock_wrlock(&totals_lock);
        sum += item->number;
        torn += wrong;
        pthread_rwlock_unlock(&totals_lock);
        delete item;
    }
    pthread_mutex_unlock(&mutex);
}

void* own_thread(void* number) {
    const auto thread = reinterpret_cast<std::uintptr_t>(number);
    const Random random{seed * 1000 + 500 + thread};
    if (thread % 2 == 0)
        produce(random);
    else
        consume(random);
    long in_region = 0;
#pragma omp parallel for reduction(+ : in_region)
    for (long i = 0; i < 1000; ++i) in_region += i;
    pthread_rwlock_wrlock(&totals_lock);
    regions_wrong += in_region != 499500;
    pthread_rwlock_unlock(&totals_lock);
    return number;
}

}  // namespace

int main(int argc, char** argv) {
    seed = argc > 1 ? std::strtoull(argv[1], nullptr, 0) : 1;
    items = argc > 2 ? std::strtoull(argv[2], nullptr, 0) : 1000;
    std::vector<pthread_t> threads(own_threads);
    for (std::uintptr_t t = 0; t < own_threads; ++t)
        pthread_create(&threads[t], nullptr, &own_thread, reinterpret_cast<void*>(t));
#pragma omp parallel
    {
        const int thread = omp_get_thread_num();
        const Random random{seed * 1000 + static_cast<std::uint64_t>(thread)};
        if (thread % 2 == 0)
            produce(random);
        else
            consume(random);
    }
    std::uint64_t joined = 0;
    for (const pthread_t thread : threads) {
        void* number = nullptr;
        pthread_join(thread, &number);
        joined += reinterpret_cast<std::uintptr_t>(number);
    }
    std::printf("taken %lu, sum %s, torn %lu, regions wrong %lu, joined %lu\n",
                static_cast<unsigned long>(taken),
                sum == items * (items + 1) / 2 ? "right" : "WRONG",
                static_cast<unsigned long>(torn), static_cast<unsigned long>(regions_wrong),
                static_cast<unsigned long>(joined));
    return sum != items * (items + 1) / 2 || torn != 0 || regions_wrong != 0;
}
