// SPDX-License-Identifier: BSD-3-Clause
// What cannot be had across nodes ends with a line that says so. On one node it works.
#include <linux/futex.h>
#include <omp.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace {

int word = 0;

int use_futex() {
    // No thread has the lock, so natively it returns at once.
    return syscall(SYS_futex, &word, FUTEX_LOCK_PI_PRIVATE, 0, nullptr, nullptr, 0) == -1;
}

pthread_mutex_t mutex;

int use_mutex(void (*choose)(pthread_mutexattr_t*)) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    choose(&attributes);
    if (pthread_mutex_init(&mutex, &attributes) != 0) return 1;
    pthread_mutex_lock(&mutex);
    return pthread_mutex_unlock(&mutex);
}

}  // namespace

int main(int, char** argv) {
    int threads = 0;
#pragma omp parallel reduction(+ : threads)
    ++threads;
    if (threads != omp_get_max_threads()) return 1;
    if (!std::strcmp(argv[1], "futex")) return use_futex();
    if (!std::strcmp(argv[1], "robust")) {
        return use_mutex(
            [](pthread_mutexattr_t* a) { pthread_mutexattr_setrobust(a, PTHREAD_MUTEX_ROBUST); });
    }
    return use_mutex(
        [](pthread_mutexattr_t* a) { pthread_mutexattr_setpshared(a, PTHREAD_PROCESS_SHARED); });
}
