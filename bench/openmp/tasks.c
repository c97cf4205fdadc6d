// SPDX-License-Identifier: BSD-3-Clause
// Task programs, each checked: prints "name<TAB>least<TAB>median" of its samples, in microseconds
// for empty tasks (each) and steals, in seconds for programs. Usage: tasks [samples [name]]
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { samples_max = 1000 };

static double sample[samples_max];
static int samples;

static int compare_doubles(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}
static void print(const char* name, int count) {
    qsort(sample, (size_t)count, sizeof *sample, compare_doubles);
    printf("%s\t%.6g\t%.6g\n", name, sample[0], sample[count / 2]);
    fflush(stdout);
}
static void fail(const char* name, long got, long wanted) {
    fprintf(stderr, "%s: %ld instead of %ld\n", name, got, wanted);
    exit(1);
}
static void compute(double seconds) {
    const double until = omp_get_wtime() + seconds;
    while (omp_get_wtime() < until) {
    }
}

// --- what a task costs ---------------------------------------------------------------------------

enum { batch = 200, batches = 50 };

// The other threads compute meanwhile, and come for no task.
static void empty_tasks(void) {
    long executed = 0;
    double seconds = 0;
    for (int s = 0; s < samples; ++s) {
#pragma omp parallel
        {
            if (omp_get_thread_num() != 0) compute(0.05);
            if (omp_get_thread_num() == 0) {
                const double begin = omp_get_wtime();
                for (int b = 0; b < batches; ++b) {
                    for (int i = 0; i < batch; ++i) {
#pragma omp task shared(executed)
                        executed++;
                    }
#pragma omp taskwait
                }
                seconds = omp_get_wtime() - begin;
            }
        }
        sample[s] = seconds / (batch * batches) * 1e6;
    }
    if (executed != (long)samples * batch * batches)
        fail("empty_task", executed, (long)samples * batch * batches);
    print("empty_task", samples);
}

// The creator computes; how long until another thread has begun the task?
static void steals(void) {
    enum { rounds = 40 };
    static struct {
        double begun;
        int thread;
        char pad[4096 - sizeof(double) - sizeof(int)];
    } seen[rounds];
    int count = 0;
    // Where the other threads' cores are taken, all of a sample's tasks may be their creator's.
    enum { tries = 100 };
    for (int s = 0; s < samples || (count == 0 && s < tries); ++s) {
        if (count + rounds > samples_max) break;
        double made[rounds];
#pragma omp parallel
#pragma omp single
        for (int i = 0; i < rounds; ++i) {
            compute(2e-4);
            made[i] = omp_get_wtime();
#pragma omp task firstprivate(i)
            {
                seen[i].begun = omp_get_wtime();
                seen[i].thread = omp_get_thread_num();
            }
            compute(4e-4);
#pragma omp taskwait
            if (seen[i].thread == omp_get_thread_num()) made[i] = 0;
        }
        for (int i = 0; i < rounds; ++i)
            if (made[i] != 0) sample[count++] = (seen[i].begun - made[i]) * 1e6;
    }
    if (omp_get_max_threads() > 1 && count == 0) fail("steal", 0, 1);
    if (count > 0) print("steal", count);
}

// --- programs ------------------------------------------------------------------------------------

enum { board = 13, queens_deferred = 2 };

static long place_queens(int row, unsigned columns, unsigned left, unsigned right) {
    if (row == board) return 1;
    long found = 0;
    unsigned free_places = ~(columns | left | right) & ((1u << board) - 1);
    while (free_places != 0) {
        const unsigned place = free_places & -free_places;
        free_places ^= place;
        found += place_queens(row + 1, columns | place, (left | place) << 1, (right | place) >> 1);
    }
    return found;
}
static long queens(int row, unsigned columns, unsigned left, unsigned right) {
    if (row == queens_deferred) return place_queens(row, columns, left, right);
    long found[board] = {0};
    for (int column = 0; column < board; ++column) {
        const unsigned place = 1u << column;
        if ((place & (columns | left | right)) != 0) continue;
#pragma omp task shared(found) firstprivate(column, place)
        found[column] = queens(row + 1, columns | place, (left | place) << 1, (right | place) >> 1);
    }
#pragma omp taskwait
    long all = 0;
    for (int column = 0; column < board; ++column) all += found[column];
    return all;
}
static void n_queens(void) {
    for (int s = 0; s < samples; ++s) {
        long found = 0;
        const double begin = omp_get_wtime();
#pragma omp parallel
#pragma omp single
        found = queens(0, 0, 0, 0);
        sample[s] = omp_get_wtime() - begin;
        if (found != 73712) fail("n_queens", found, 73712);
    }
    print("n_queens", samples);
}

enum { sorted_numbers = 1 << 22, sorted_alone = 1 << 16 };

static int compare_numbers(const void* a, const void* b) {
    const uint32_t x = *(const uint32_t*)a, y = *(const uint32_t*)b;
    return (x > y) - (x < y);
}
static void merge_sort(uint32_t* numbers, uint32_t* room, long count) {
    if (count <= sorted_alone) {
        qsort(numbers, (size_t)count, sizeof *numbers, compare_numbers);
        return;
    }
    const long half = count / 2;
#pragma omp task
    merge_sort(numbers, room, half);
#pragma omp task
    merge_sort(numbers + half, room + half, count - half);
#pragma omp taskwait
    long a = 0, b = half;
    for (long i = 0; i < count; ++i)
        room[i] =
            b == count || (a < half && numbers[a] <= numbers[b]) ? numbers[a++] : numbers[b++];
    memcpy(numbers, room, (size_t)count * sizeof *numbers);
}
static void recursive_sort(void) {
    uint32_t* const numbers = malloc(sorted_numbers * sizeof *numbers);
    uint32_t* const room = malloc(sorted_numbers * sizeof *room);
    for (int s = 0; s < samples; ++s) {
        uint32_t state = 1;
        for (long i = 0; i < sorted_numbers; ++i)
            numbers[i] = state = state * 1664525u + 1013904223u;
        const double begin = omp_get_wtime();
#pragma omp parallel
#pragma omp single
        merge_sort(numbers, room, sorted_numbers);
        sample[s] = omp_get_wtime() - begin;
        for (long i = 1; i < sorted_numbers; ++i)
            if (numbers[i - 1] > numbers[i]) fail("sort", i, 0);
    }
    print("sort", samples);
    free(numbers);
    free(room);
}

enum { blocks = 8, side = 128 };
typedef double Block[side][side];
static Block (*matrix)[blocks];

static void factor(Block diagonal) {
    for (int k = 0; k < side; ++k)
        for (int i = k + 1; i < side; ++i) {
            diagonal[i][k] /= diagonal[k][k];
            for (int j = k + 1; j < side; ++j) diagonal[i][j] -= diagonal[i][k] * diagonal[k][j];
        }
}
static void solve_row(Block diagonal, Block right) {
    for (int k = 0; k < side; ++k)
        for (int i = k + 1; i < side; ++i)
            for (int j = 0; j < side; ++j) right[i][j] -= diagonal[i][k] * right[k][j];
}
static void solve_column(Block diagonal, Block below) {
    for (int i = 0; i < side; ++i)
        for (int k = 0; k < side; ++k) {
            below[i][k] /= diagonal[k][k];
            for (int j = k + 1; j < side; ++j) below[i][j] -= below[i][k] * diagonal[k][j];
        }
}
static void update(Block left, Block above, Block inner) {
    for (int i = 0; i < side; ++i)
        for (int k = 0; k < side; ++k)
            for (int j = 0; j < side; ++j) inner[i][j] -= left[i][k] * above[k][j];
}
static void decompose(void) {
    for (int k = 0; k < blocks; ++k) {
#pragma omp task depend(inout : matrix[k][k]) firstprivate(k)
        factor(matrix[k][k]);
        for (int j = k + 1; j < blocks; ++j) {
#pragma omp task depend(in : matrix[k][k]) depend(inout : matrix[k][j]) firstprivate(k, j)
            solve_row(matrix[k][k], matrix[k][j]);
#pragma omp task depend(in : matrix[k][k]) depend(inout : matrix[j][k]) firstprivate(k, j)
            solve_column(matrix[k][k], matrix[j][k]);
        }
        for (int i = k + 1; i < blocks; ++i)
            for (int j = k + 1; j < blocks; ++j) {
#pragma omp task depend(in                                         \
                        : matrix[i][k], matrix[k][j]) depend(inout \
                                                             : matrix[i][j]) firstprivate(i, j, k)
                update(matrix[i][k], matrix[k][j], matrix[i][j]);
            }
    }
}
static double entry(int i, int j) {
    return i == j ? 2.0 * blocks * side : 1.0 / (1 + (i * 7 + j * 3) % 11);
}
static void blocked_lu(void) {
    enum { order = blocks * side };
    matrix = malloc(sizeof(Block) * blocks * blocks);
    for (int s = 0; s < samples; ++s) {
        for (int i = 0; i < order; ++i)
            for (int j = 0; j < order; ++j)
                matrix[i / side][j / side][i % side][j % side] = entry(i, j);
        const double begin = omp_get_wtime();
#pragma omp parallel
#pragma omp single
        decompose();
        sample[s] = omp_get_wtime() - begin;
        // A few entries of the product of the two.
        for (int i = 0; i < order; i += 97)
            for (int j = 0; j < order; j += 89) {
                double sum = 0;
                for (int k = 0; k <= (i < j ? i : j); ++k) {
                    const double l = k == i ? 1 : matrix[i / side][k / side][i % side][k % side];
                    sum += l * matrix[k / side][j / side][k % side][j % side];
                }
                if (sum - entry(i, j) > 1e-6 || entry(i, j) - sum > 1e-6) fail("lu", i, j);
            }
    }
    print("lu", samples);
    free(matrix);
}

// A tree whose shape hangs on a random number of each node.
static uint64_t mixed(uint64_t x) {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ x >> 31;
}
static long visit(uint64_t node, int depth, int deferred) {
    uint64_t value = node;
    for (int i = 0; i < 15000; ++i) value = mixed(value + (uint64_t)i);
    // The last of a long chain, so that no compiler leaves it out; and never 1.
    const int more = value == 1;
    const int children = depth == 0 ? 40 : depth < 16 && mixed(node) % 100 < 42 ? 3 : 0;
    long below[40] = {0};
    for (int i = 0; i < children + more; ++i) {
        if (deferred) {
#pragma omp task shared(below) firstprivate(i)
            below[i] = visit(mixed(node + 77u * (unsigned)i + 1), depth + 1, 1);
        } else {
            below[i] = visit(mixed(node + 77u * (unsigned)i + 1), depth + 1, 0);
        }
    }
    if (deferred) {
#pragma omp taskwait
    }
    long all = 1;
    for (int i = 0; i < children; ++i) all += below[i];
    return all;
}
static void tree_search(void) {
    const long wanted = visit(7, 0, 0);
    for (int s = 0; s < samples; ++s) {
        long seen = 0;
        const double begin = omp_get_wtime();
#pragma omp parallel
#pragma omp single
        seen = visit(7, 0, 1);
        sample[s] = omp_get_wtime() - begin;
        if (seen != wanted) fail("tree", seen, wanted);
    }
    print("tree", samples);
}

int main(int argc, char** argv) {
    static const struct {
        const char* name;
        void (*run)(void);
    } all[] = {{"empty_task", empty_tasks}, {"steal", steals},  {"n_queens", n_queens},
               {"sort", recursive_sort},    {"lu", blocked_lu}, {"tree", tree_search}};
    samples = argc > 1 ? atoi(argv[1]) : 5;
    if (samples < 1 || samples > 20) return 64;
    for (unsigned i = 0; i < sizeof all / sizeof *all; ++i)
        if (argc < 3 || strcmp(argv[2], all[i].name) == 0) all[i].run();
    return 0;
}
