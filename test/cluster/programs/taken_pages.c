// SPDX-License-Identifier: BSD-3-Clause
// The kernel takes away the mappings of pages whose memory is short, at any time: of a thread's TLS
// too, and of its stack. Here each thread has its own taken away, and then comes upon pages of
// other nodes; a thread that the program made does so, too. Prints "right".
#include <omp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { rounds = 200, count = 1 << 15, of_page = 512 };

static __thread long own;
static long shared[count];

/// As the kernel does: of shared memory only the mapping goes. Not by the C library, which hiroba's
/// stands in for.
static long take_away(uintptr_t page) {
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(SYS_madvise), "D"(page), "S"(4096L), "d"((long)MADV_DONTNEED)
                     : "rcx", "r11", "memory");
    return result;
}

/// Global memory lies between 16 and 32 TiB; what is private has no second mapping, and would be
/// lost.
static int is_global(uintptr_t address) { return address >> 44 == 1; }

/// Returns how many of the calls failed.
static long take_own_pages(void) {
    uintptr_t thread;
    __asm__("mov %%fs:0, %0" : "=r"(thread));
    const uintptr_t page = thread & -4096L, stack = (uintptr_t)&thread & -4096L;
    if (!is_global(thread)) return 0;
    return (take_away(page) != 0) + (take_away(page - 4096) != 0) + (take_away(stack) != 0);
}

static void* thread_of_the_program(void* wrong) {
    for (own = 1; own <= rounds; ++own) {
        const long before = own;
        *(long*)wrong += take_own_pages() + (own != before);
    }
    return NULL;
}

int main(void) {
    long wrong = 0, by_thread = 0;
    pthread_t made;
    if (pthread_create(&made, NULL, thread_of_the_program, &by_thread)) return 1;
    pthread_join(made, NULL);
#pragma omp parallel reduction(+ : wrong)
    {
        const int threads = omp_get_num_threads(), self = omp_get_thread_num();
        for (int round = 1; round <= rounds; ++round) {
            own = round;
            for (int i = self; i < count; i += threads) {
                if (i % of_page < threads) wrong += take_own_pages();
                shared[(i + round * of_page) % count] += self + 1;
            }
            wrong += own != round;
#pragma omp barrier
        }
    }
    const int threads = omp_get_max_threads();
    for (int i = 0; i < count; ++i) wrong += shared[i] != (long)rounds * (i % threads + 1);
    if (wrong + by_thread != 0)
        printf("%ld and %ld wrong\n", wrong, by_thread);
    else
        puts("right");
    return wrong + by_thread != 0;
}
