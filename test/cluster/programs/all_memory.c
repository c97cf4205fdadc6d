// SPDX-License-Identifier: BSD-3-Clause
// depend(inout: omp_all_memory) as code of gcc 13 and later passes it (address 0; also in the long
// form of a clause, in a depend object, at a taskwait) and as clang's does (a flag; address 0; the
// last address). clang's taskwait nowait is a task without code. What compilers and runtimes of
// before know nothing of, called as that code would (newer_gcc.py).
#include <omp.h>
#include <stdint.h>
#include <stdio.h>

enum { cells = 16, rounds = 20 };
enum how { out, in, all, all_by_other_form, all_by_address };

static int before[cells], later[cells], totals[rounds], seen[rounds][cells], seen_at_wait[rounds];

static void compute(int steps) {
    for (volatile int i = 0; i < steps; i = i + 1) {
    }
}

/// A task of step 0 writes a cell, of step 1 adds them up, of step 2 reads the sum, of step 3
/// clears.
struct work {
    int step, round, cell;
};

static void carry_out(const struct work* work) {
    const int round = work->round;
    if (work->step == 0) {
        compute(20000);
        before[work->cell] = round + 1;
    } else if (work->step == 1) {
        compute(20000);
        int sum = 0;
        for (int i = 0; i < cells; ++i) sum += before[i];
        totals[round] = sum;
    } else if (work->step == 2) {
        compute(5000);
        seen[round][work->cell] = totals[round];
    } else {
        int sum = 0;
        for (int i = 0; i < cells; ++i) {
            sum += seen[round][i];
            before[i] = 0;
        }
        seen_at_wait[round] = sum;
    }
}

#ifdef __clang__

struct location;
struct task {
    struct work* shareds;
};
struct item {
    void* address;
    size_t bytes;
    unsigned char flags;
};
int __kmpc_global_thread_num(struct location*);
struct task* __kmpc_omp_task_alloc(struct location*, int, int, size_t, size_t,
                                   int (*)(int, struct task*));
int __kmpc_omp_task_with_deps(struct location*, int, struct task*, int, const struct item*, int,
                              const struct item*);
void __kmpc_omp_wait_deps(struct location*, int, int, const struct item*, int, const struct item*);

static int enter(int thread, struct task* task) {
    (void)thread;
    carry_out(task->shareds);
    return 0;
}
static struct item item_of(enum how how, void* address) {
    if (how == all) return (struct item){NULL, 0, 0x80};
    if (how == all_by_other_form) return (struct item){NULL, 0, 3};
    if (how == all_by_address) return (struct item){(void*)-1, 0, 2};
    return (struct item){address, sizeof(int), how == in ? 1 : 3};
}
static void make(struct work work, enum how how, void* address) {
    const int thread = __kmpc_global_thread_num(NULL);
    struct task* const task = __kmpc_omp_task_alloc(NULL, thread, 1, 40, sizeof work, enter);
    *task->shareds = work;
    const struct item item = item_of(how, address);
    __kmpc_omp_task_with_deps(NULL, thread, task, 1, &item, 0, NULL);
}
static void wait_for_all(void) {
    const struct item item = item_of(all, NULL);
    const int thread = __kmpc_global_thread_num(NULL);
    struct task* const nothing = __kmpc_omp_task_alloc(NULL, thread, 1, 40, 0, NULL);
    __kmpc_omp_task_with_deps(NULL, thread, nothing, 1, &item, 0, NULL);
    __kmpc_omp_wait_deps(NULL, thread, 1, &item, 0, NULL);
}

#else

void GOMP_task(void (*)(void*), void*, void (*)(void*, void*), long, long, _Bool, unsigned, void**,
               int, void*);
void GOMP_taskwait_depend(void** depend);
void GOMP_taskwait_depend_nowait(void** depend);

static void enter(void* data) { carry_out(data); }
static void* number(uintptr_t value) { return (void*)value; }
static void make(struct work work, enum how how, void* address) {
    // The other form is a depend object, in a clause with a plain item.
    void* object[2] = {NULL, number(3)};
    void* plain[] = {number(1), number(how != in), how >= all ? NULL : address};
    void* with_object[] = {NULL, number(2), NULL, NULL, number(1), &later[0], object};
    GOMP_task(enter, &work, NULL, sizeof work, _Alignof(struct work), 1, 8,
              how == all_by_other_form ? with_object : plain, 0, NULL);
}
static void wait_for_all(void) {
    void* depend[] = {number(1), number(1), NULL};
    GOMP_taskwait_depend_nowait(depend);
    GOMP_taskwait_depend(depend);
}

#endif

int main(void) {
    int wrong[4] = {0};
#pragma omp parallel
#pragma omp single
    for (int round = 0; round < rounds; ++round) {
        const enum how how = round % 2 == 0   ? all
                             : round % 4 == 1 ? all_by_other_form
                                              : all_by_address;
        for (int i = 0; i < cells; ++i) make((struct work){0, round, i}, out, &before[i]);
        make((struct work){1, round, 0}, how, NULL);
        // Half of these addresses no task has named before.
        for (int i = 0; i < cells; ++i)
            make((struct work){2, round, i}, in, i % 2 == 0 ? &before[i] : &later[i]);
        if (round % 4 < 2) {
            wait_for_all();
            for (int i = 0; i < cells; ++i) wrong[3] += seen[round][i] == 0;
        }
        make((struct work){3, round, 0}, how, NULL);
    }
    for (int round = 0; round < rounds; ++round) {
        const int total = cells * (round + 1);
        wrong[0] += totals[round] != total;
        for (int i = 0; i < cells; ++i) wrong[1] += seen[round][i] != total;
        wrong[2] += seen_at_wait[round] != cells * total;
    }
    printf("rounds %d, wrong %d %d %d %d\n", rounds, wrong[0], wrong[1], wrong[2], wrong[3]);
    return 0;
}
