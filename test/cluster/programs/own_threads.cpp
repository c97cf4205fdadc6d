// SPDX-License-Identifier: BSD-3-Clause
// Threads the program makes itself see the same memory; main may leave by pthread_exit().
#include <omp.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

namespace {

std::vector<long> values(1 << 14);
thread_local int mine = 3;

void* add(void* amount) {
    for (long& value : values) value += *static_cast<long*>(amount);
    return amount;
}

void* last_words(void*) {
    std::printf("the last thread ends the process\n");
    return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
    long amount = 5;
    for (int round = 0; round < 5; ++round) {
#pragma omp parallel for schedule(static, 100)
        for (std::size_t i = 0; i < values.size(); ++i) values[i] += static_cast<long>(i);
        pthread_t thread;
        void* result = nullptr;
        pthread_create(&thread, nullptr, &add, &amount);
        pthread_join(thread, &result);
        if (result != &amount) std::printf("wrong result\n");
    }
    long sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (std::size_t i = 0; i < values.size(); ++i) sum += values[i];
    std::printf("sum %ld\n", sum);
    int in_thread = 0;
    std::thread([&] { in_thread = ++mine; }).join();
    std::printf("thread-local %d and %d\n", in_thread, mine);
    if (argc > 1 && !std::strcmp(argv[1], "pthread_exit")) {
        pthread_t thread;
        pthread_create(&thread, nullptr, &last_words, nullptr);
        pthread_exit(nullptr);
    }
    return 0;
}
