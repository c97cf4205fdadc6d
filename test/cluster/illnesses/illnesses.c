// SPDX-License-Identifier: BSD-3-Clause
// Small programs, each with one illness that makes it slow on several nodes, and its cured twin:
// what `hiroba report` has to name. Usage: illnesses NAME ill|cured|long [TIMES]. The line that has
// to be named ends with the comment `here: NAME`. Prints a result, and seconds.
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { block_bytes = 4096, threads_max = 256 };

// long: a hundred times as many steps, of needless_barrier; endless: until it is killed
static int steps_more = 1;

static double work(long i) { return sqrt((double)(i % 1000) + 1.5); }

// --- nodes write different bytes of one block ----------------------------------------------------

static struct { double sum; } close_by[threads_max];
static struct { _Alignas(4096) double sum; } far_apart[threads_max];

static double false_sharing(int cured) {
#pragma omp parallel
    {
        double* const own =
            cured ? &far_apart[omp_get_thread_num()].sum : &close_by[omp_get_thread_num()].sum;
        for (int step = 0; step < 150; ++step) {
            for (long i = 0; i < 500; ++i) *own += work(i + step);  // here: false_sharing
#pragma omp barrier
        }
    }
    double all = 0;
    for (int t = 0; t < threads_max; ++t) all += close_by[t].sum + far_apart[t].sum;
    return all;
}

// --- neighbouring elements belong to different nodes ---------------------------------------------

enum { dealt_elements = 1 << 16 };
static double dealt[dealt_elements];

static double dealt_singly(int cured) {
    for (int step = 0; step < 12; ++step) {
        if (cured) {
#pragma omp parallel for schedule(static)
            for (long i = 0; i < dealt_elements; ++i) dealt[i] += work(i + step);
        } else {
#pragma omp parallel for schedule(static, 1)
            for (long i = 0; i < dealt_elements; ++i)
                dealt[i] += work(i + step);  // here: dealt_singly
        }
    }
    double all = 0;
#pragma omp parallel for reduction(+ : all)
    for (long i = 0; i < dealt_elements; ++i) all += dealt[i];
    return all;
}

// --- the first thread writes first what others use -----------------------------------------------

static double first_touch(int cured) {
    const long elements = 1 << 20;
    double* const a = malloc((size_t)elements * sizeof *a);
    if (cured) {
#pragma omp parallel for
        for (long i = 0; i < elements; ++i) a[i] = (double)(i % 7);
    } else {
        for (long i = 0; i < elements; ++i) a[i] = (double)(i % 7);
    }
    double all = 0;
#pragma omp parallel for reduction(+ : all)
    for (long i = 0; i < elements; ++i) all += a[i] *= 2;  // here: first_touch
    free(a);
    return all;
}

// --- the first thread goes alone through what all wrote ------------------------------------------

enum { serial_elements = 1 << 17 };
static double gathered[serial_elements];

static double serial_use(int cured) {
    double all = 0;
    for (int step = 0; step < 10; ++step) {
#pragma omp parallel for
        for (long i = 0; i < serial_elements; ++i) gathered[i] = work(i + step);
        if (cured) {
            double sum = 0;
#pragma omp parallel for reduction(+ : sum)
            for (long i = 0; i < serial_elements; ++i) sum += gathered[i];
            all += sum;
        } else {
            for (long i = 0; i < serial_elements; ++i) all += gathered[i];  // here: serial_use
        }
    }
    return all;
}

// --- a loop over columns -------------------------------------------------------------------------

enum { rows = 256, columns = block_bytes / sizeof(double) };
static double matrix[rows][columns];

static double column_wise(int cured) {
    for (int step = 0; step < 8; ++step) {
        if (cured) {
#pragma omp parallel for
            for (long i = 0; i < rows; ++i)
                for (long j = 0; j < columns; ++j) matrix[i][j] += work(i + j + step);
        } else {
#pragma omp parallel for
            for (long j = 0; j < columns; ++j)
                for (long i = 0; i < rows; ++i)
                    matrix[i][j] += work(i + j + step);  // here: column_wise
        }
    }
    double all = 0;
#pragma omp parallel for reduction(+ : all)
    for (long i = 0; i < rows; ++i)
        for (long j = 0; j < columns; ++j) all += matrix[i][j];
    return all;
}

// --- regions with next to nothing in them --------------------------------------------------------

static struct { _Alignas(4096) double value[8]; } small[threads_max];

static double small_regions(int cured) {
    const int steps = 600;
    if (cured) {
#pragma omp parallel
        for (int step = 0; step < steps; ++step)
            small[omp_get_thread_num()].value[step % 8] += work(step);
    } else {
        for (int step = 0; step < steps; ++step) {
#pragma omp parallel  // here: small_regions
            small[omp_get_thread_num()].value[step % 8] += work(step);
        }
    }
    double all = 0;
    for (int t = 0; t < threads_max; ++t)
        for (int i = 0; i < 8; ++i) all += small[t].value[i];
    return all;
}

// --- a lock around every step --------------------------------------------------------------------

static double hot_lock(int cured) {
    double all = 0;
#pragma omp parallel
    for (int step = 0; step < 800; ++step) {
        double value = 0;
        if (cured) {
            for (long i = 0; i < 20000; ++i) value += work(i + step);
#pragma omp atomic
            all += value;
        } else {
#pragma omp critical  // here: hot_lock
            for (long i = 0; i < 20000; ++i) all += work(i + step);
        }
    }
    return all;
}

// --- some threads have more to do ----------------------------------------------------------------

static double unbalanced(int cured) {
    const long lines = 4000;
    double all = 0;
    if (cured) {
#pragma omp parallel for reduction(+ : all) schedule(static, 50)
        for (long i = 0; i < lines; ++i)
            for (long j = 0; j < i * i / lines * i / lines; ++j) all += work(i + j);
    } else {
#pragma omp parallel for reduction(+ : all)  // here: unbalanced
        for (long i = 0; i < lines; ++i)
            for (long j = 0; j < i * i / lines * i / lines; ++j) all += work(i + j);
    }
    return all;
}

// --- an atomic in the inner loop -----------------------------------------------------------------

static long counter;

static double shared_counter(int cured) {
    const long steps = 40000;
    if (cured) {
#pragma omp parallel for reduction(+ : counter)
        for (long i = 0; i < steps; ++i) counter += work(i) > 5;
    } else {
#pragma omp parallel for  // here: shared_counter
        for (long i = 0; i < steps; ++i) {
            const double value = work(i);
#pragma omp atomic
            counter += value > 5;
        }
    }
    return (double)counter;
}

// --- a reduction in an inner loop ----------------------------------------------------------------

static double inner_sum;

static double inner_reduction(int cured) {
    double all = 0;
    if (cured) {
#pragma omp parallel reduction(+ : all)
        for (int step = 0; step < 300; ++step) {
#pragma omp for nowait
            for (long i = 0; i < 2000; ++i) all += work(i + step);
        }
    } else {
        inner_sum = 0;
#pragma omp parallel
        for (int step = 0; step < 300; ++step) {
#pragma omp for reduction(+ : inner_sum)  // here: inner_reduction
            for (long i = 0; i < 2000; ++i) inner_sum += work(i + step);
        }
        all = inner_sum;
    }
    return all;
}

// --- constants beside what changes ---------------------------------------------------------------

enum { tables = 96, entries = 510 };
static struct {
    double values[entries];
    double step;
    double unused;
} together[tables];
static struct { double values[512]; } tables_alone[tables];
static struct { _Alignas(4096) double steps[tables]; } steps_alone;

static double constants_beside(int cured) {
    double all = 0;
    for (int t = 0; t < tables; ++t)
        for (int i = 0; i < entries; ++i)
            together[t].values[i] = tables_alone[t].values[i] = work(i + t);
#pragma omp parallel reduction(+ : all)
    for (int step = 0; step < 300; ++step) {
        for (int t = omp_get_thread_num(); t < tables; t += omp_get_num_threads())
            *(cured ? &steps_alone.steps[t] : &together[t].step) = step;
#pragma omp barrier
        for (int t = 0; t < tables; ++t) {
            const double* const values = cured ? tables_alone[t].values : together[t].values;
            for (int i = 0; i < entries; ++i) all += values[i];  // here: constants_beside
            all += cured ? steps_alone.steps[t] : together[t].step;
        }
#pragma omp barrier
    }
    return all;
}

// --- a barrier that orders nothing ---------------------------------------------------------------

static struct { _Alignas(4096) double value[512]; } own_part[threads_max];

static double needless_barrier(int cured) {
#pragma omp parallel
    {
        double* const own = own_part[omp_get_thread_num()].value;
        for (int step = 0; step < 400 * steps_more; ++step) {
            for (long i = 0; i < 512; ++i) own[i] += work(i + step);
            if (!cured) {
#pragma omp barrier  // here: needless_barrier
            }
        }
    }
    double all = 0;
    for (int t = 0; t < omp_get_max_threads(); ++t) all += own_part[t].value[7];
    return all;
}

// --- large arrays on the stack -------------------------------------------------------------------

enum { stack_elements = 1 << 16 };
static double* buffers[threads_max];

static double use_buffer(double* buffer, int step) {
    double sum = 0;
    for (long i = 0; i < stack_elements; i += 8) buffer[i] = work(i + step);  // here: stack_arrays
    for (long i = 0; i < stack_elements; i += 64) sum += buffer[i];
    return sum;
}

static double stack_arrays(int cured) {
    double all = 0;
    for (int step = 0; step < 40; ++step) {
#pragma omp parallel reduction(+ : all)
        {
            const int me = omp_get_thread_num();
            if (cured) {
                if (buffers[me] == NULL) buffers[me] = malloc(stack_elements * sizeof(double));
                all += use_buffer(buffers[me], step);
            } else {
                double buffer[stack_elements];
                all += use_buffer(buffer, step);
            }
        }
    }
    return all;
}

// --- loops that deal out anew --------------------------------------------------------------------

enum { again_elements = 1 << 20 };
static double again[again_elements];

static double dynamic_again(int cured) {
    for (int step = 0; step < 8; ++step) {
        if (cured) {
#pragma omp parallel for schedule(static)
            for (long i = 0; i < again_elements; ++i) again[i] += work(i + step);
        } else {
#pragma omp parallel for schedule(dynamic, 2048)
            for (long i = 0; i < again_elements; ++i)
                again[i] += work(i + step);  // here: dynamic_again
        }
    }
    double all = 0;
#pragma omp parallel for reduction(+ : all)
    for (long i = 0; i < again_elements; ++i) all += again[i];
    return all;
}

// --- more threads than cores: by how it is started -----------------------------------------------

static double crowded(int cured) {
    (void)cured;
    double all = 0;
#pragma omp parallel reduction(+ : all)
    for (int step = 0; step < 60; ++step) {
        for (long i = 0; i < 20000; ++i) all += work(i + step);
#pragma omp barrier
    }
    return all;
}

static const struct {
    const char* name;
    double (*run)(int cured);
} programs[] = {
    {"false_sharing", false_sharing},
    {"dealt_singly", dealt_singly},
    {"first_touch", first_touch},
    {"serial_use", serial_use},
    {"column_wise", column_wise},
    {"small_regions", small_regions},
    {"hot_lock", hot_lock},
    {"unbalanced", unbalanced},
    {"shared_counter", shared_counter},
    {"inner_reduction", inner_reduction},
    {"constants_beside", constants_beside},
    {"needless_barrier", needless_barrier},
    {"stack_arrays", stack_arrays},
    {"dynamic_again", dynamic_again},
    {"crowded", crowded},
};

int main(int argc, char** argv) {
    const int cured = argc > 2 && strcmp(argv[2], "cured") == 0;
    if (argc > 2 && strcmp(argv[2], "long") == 0) steps_more = 100;
    if (argc > 2 && strcmp(argv[2], "endless") == 0) steps_more = 1000000;
    for (size_t i = 0; argc > 1 && i < sizeof programs / sizeof *programs; ++i) {
        if (strcmp(programs[i].name, argv[1]) != 0) continue;
        const double begin = omp_get_wtime();
        double value = 0;
        for (int times = argc > 3 ? atoi(argv[3]) : 1; times > 0; --times)
            value = programs[i].run(cured);
        printf("%.6g %.4f\n", value, omp_get_wtime() - begin);
        return 0;
    }
    return 64;
}
