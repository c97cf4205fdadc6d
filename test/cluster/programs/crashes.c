// SPDX-License-Identifier: BSD-3-Clause
// One way to crash, on one thread of the team, or on all (-1): crashes HOW THREAD. `handled-HOW`:
// with a handler of its own.
#include <omp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile int zero;
static const int table[64] = {1, 2, 3};
static const int* volatile constant = table;
static sigjmp_buf back;
static volatile int caught;

static void on_fault(int number) {
    caught = number;
    siglongjmp(back, 1);
}

#pragma GCC diagnostic ignored "-Winfinite-recursion"
static int deep(volatile char* above) {
    volatile char frame[4096];
    frame[0] = *above;
    return deep(frame) + frame[0];
}

static void* deep_thread(void* nothing) {
    volatile char first = 1;
    return (void*)((size_t)deep(&first) + (size_t)nothing);
}

static int overflow_of_thread(void) {
    pthread_t thread;
    void* result = NULL;
    pthread_create(&thread, NULL, deep_thread, NULL);
    pthread_join(thread, &result);
    return result != NULL;
}

__attribute__((noinline)) static int crash(const char* how) {
    volatile char first = 1;
    if (!strcmp(how, "null")) *(volatile int*)8 = 1;
    if (!strcmp(how, "wild")) return *(volatile int*)0x210000000000;
    if (!strcmp(how, "constant")) *(volatile int*)(constant + 3) = 1;
    if (!strcmp(how, "nonsense")) return *(volatile int*)(UINT64_C(1) << 63);
    if (!strcmp(how, "jump")) ((void (*)(void))0x10)();
    if (!strcmp(how, "abort")) abort();
    if (!strcmp(how, "divide")) return 7 / zero;
    if (!strcmp(how, "illegal")) __builtin_trap();
    if (!strcmp(how, "deep")) return deep(&first);
    if (!strcmp(how, "thread")) return overflow_of_thread();
    if (!strcmp(how, "atomic")) __atomic_fetch_add((int*)(size_t)(zero + 16), 1, __ATOMIC_SEQ_CST);
    if (!strcmp(how, "heap")) ((void (*)(void))(size_t)memset(malloc(100), 0, 100))();
    if (!strcmp(how, "stack")) ((void (*)(void))(size_t)&first)();
    if (!strcmp(how, "code")) *(volatile char*)(size_t)&deep_thread = 1;
    if (!strcmp(how, "raise")) raise(SIGSEGV);
    if (!strcmp(how, "killed")) return system("kill -ABRT $PPID") + (int)sleep(10);
    if (!strcmp(how, "library")) return (int)strlen((const char*)(size_t)(zero + 24));
    return first;
}

int main(int count, char** words) {
    const int who = count > 2 ? atoi(words[2]) : 0;
    const char* how = words[1];
    const int signals[] = {SIGSEGV, SIGFPE, SIGILL, SIGABRT};
    if (!strncmp(how, "handled-", 8)) {
        how += 8;
        for (int i = 0; i < 4; ++i) signal(signals[i], on_fault);
    }
    if (!strcmp(how, "seen")) {
        // What the program is shown of its actions is what it has set.
        for (int i = 0; i < 4; ++i) {
            struct sigaction action;
            sigaction(signals[i], NULL, &action);
            printf("%d", action.sa_handler == SIG_DFL && action.sa_flags == 0);
            printf("%d", signal(signals[i], on_fault) == SIG_DFL);
            printf("%d", signal(signals[i], SIG_DFL) == on_fault);
            printf("%d", signal(signals[i], SIG_IGN) == SIG_DFL);
            printf("%d", signal(signals[i], SIG_DFL) == SIG_IGN);
        }
        puts("");
        return 0;
    }
    if (!strcmp(how, "later")) {
        puts("ready");
        fflush(stdout);
        getchar();
        how = "null";
    }
    int sum = 0;
#pragma omp parallel reduction(+ : sum)
    if ((who < 0 || omp_get_thread_num() == who) && sigsetjmp(back, 1) == 0) sum += crash(how);
    printf("caught %d\n", caught);
    return sum < 0;
}
