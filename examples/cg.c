// SPDX-License-Identifier: BSD-3-Clause
// CG, "conjugate gradient", after the NAS Parallel Benchmarks specification (NAS-91-002, section
// 2.4): the smallest eigenvalue of a sparse matrix by the inverse power method, with 25 steps of
// unpreconditioned CG for each solve. Usage: ./cg [S|W|A]
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct Class {
    char name;
    int order, nonzeros, iterations;
    double shift, zeta;  // zeta: published result
};

static const struct Class classes[] = {
    {'S', 1400, 7, 15, 10, 8.5971775078648},
    {'W', 7000, 8, 15, 12, 10.362595087124},
    {'A', 14000, 11, 15, 20, 17.130235054029},
};

static const double condition = 0.1;

// Compressed rows: row i holds entries first[i] to first[i + 1] - 1.
static int* first;
static int* column;
static double* value;
static double *x, *z, *p, *q, *r;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void* allocate(size_t count, size_t size) {
    void* memory = calloc(count, size);
    if (memory == NULL) {
        fprintf(stderr, "cg: out of memory\n");
        exit(2);
    }
    return memory;
}

static double random_next(void) {
    static uint64_t state = 314159265;
    state = state * 1220703125 & ((UINT64_C(1) << 46) - 1);
    return (double)state * 0x1p-46;
}

// A sparse random vector of the specification: `wanted` distinct places, then 1/2 at `diagonal`.
static int random_vector(int order, int wanted, int diagonal, int* places, double* elements) {
    int power = 1;
    while (power < order) power *= 2;
    int count = 0;
    while (count < wanted) {
        const double element = random_next();
        const int place = (int)(random_next() * power);
        int known = place >= order;
        for (int i = 0; i < count && !known; i++) known = places[i] == place;
        if (known) continue;
        places[count] = place;
        elements[count++] = element;
    }
    for (int i = 0; i < count; i++) {
        if (places[i] == diagonal) {
            elements[i] = 0.5;
            return count;
        }
    }
    places[count] = diagonal;
    elements[count++] = 0.5;
    return count;
}

// Adds up entries of one row that share a column; returns how many are left.
static int merge_row(int* columns, double* values, int count, double* sums, char* used) {
    int left = 0;
    for (int i = 0; i < count; i++) {
        const int c = columns[i];
        if (!used[c]) {
            used[c] = 1;
            sums[c] = 0;
            columns[left++] = c;
        }
        sums[c] += values[i];
    }
    for (int i = 0; i < left; i++) {
        values[i] = sums[columns[i]];
        used[columns[i]] = 0;
    }
    return left;
}

// A = sum over i of weight(i) v_i v_i^T, weights falling geometrically to `condition`, with
// condition - shift added to the diagonal.
static void make_matrix(const struct Class* class) {
    const int n = class->order, width = class->nonzeros + 1;
    int* counts = allocate(n, sizeof *counts);
    int* places = allocate((size_t)n * width, sizeof *places);
    double* elements = allocate((size_t)n * width, sizeof *elements);
    int* row_fill = allocate(n + 1, sizeof *row_fill);
    first = allocate(n + 1, sizeof *first);
    for (int i = 0; i < n; i++) {
        counts[i] = random_vector(n, class->nonzeros, i, places + i * width, elements + i * width);
        for (int a = 0; a < counts[i]; a++) row_fill[places[i * width + a] + 1] += counts[i];
    }
    for (int i = 0; i < n; i++) row_fill[i + 1] += row_fill[i];
    const int entries = row_fill[n];
    int* all_columns = allocate(entries, sizeof *all_columns);
    double* all_values = allocate(entries, sizeof *all_values);
    int* row_start = allocate(n + 1, sizeof *row_start);
    for (int i = 0; i <= n; i++) row_start[i] = row_fill[i];

    const double ratio = pow(condition, 1.0 / n);
    double weight = 1;
    for (int i = 0; i < n; i++, weight *= ratio) {
        const int* place = places + i * width;
        const double* element = elements + i * width;
        for (int a = 0; a < counts[i]; a++) {
            for (int b = 0; b < counts[i]; b++) {
                double entry = element[b] * (weight * element[a]);
                if (place[a] == i && place[b] == i) entry += condition - class->shift;
                all_columns[row_fill[place[a]]] = place[b];
                all_values[row_fill[place[a]]++] = entry;
            }
        }
    }
    column = allocate(entries, sizeof *column);
    value = allocate(entries, sizeof *value);
    double* sums = allocate(n, sizeof *sums);
    char* used = allocate(n, 1);
    for (int i = 0; i < n; i++) {
        int* columns = all_columns + row_start[i];
        double* values = all_values + row_start[i];
        const int left = merge_row(columns, values, row_start[i + 1] - row_start[i], sums, used);
        for (int k = 0; k < left; k++) {
            column[first[i] + k] = columns[k];
            value[first[i] + k] = values[k];
        }
        first[i + 1] = first[i] + left;
    }
    free(counts), free(places), free(elements), free(row_fill), free(row_start);
    free(all_columns), free(all_values), free(sums), free(used);
}

// z := approximate solution of A z = x. One parallel region; the sums are its shared variables.
static void conjugate_gradient(int n) {
    double rho = 0, rho_before = 0, curvature = 0;
#pragma omp parallel
    {
#pragma omp for reduction(+ : rho)
        for (int i = 0; i < n; i++) {
            z[i] = q[i] = 0;
            r[i] = p[i] = x[i];
            rho += x[i] * x[i];
        }
        for (int step = 0; step < 25; step++) {
#pragma omp single
            {
                rho_before = rho;
                rho = curvature = 0;
            }
#pragma omp for reduction(+ : curvature)
            for (int i = 0; i < n; i++) {
                double sum = 0;
                for (int k = first[i]; k < first[i + 1]; k++) sum += value[k] * p[column[k]];
                q[i] = sum;
                curvature += p[i] * sum;
            }
            const double alpha = rho_before / curvature;
#pragma omp for reduction(+ : rho)
            for (int i = 0; i < n; i++) {
                z[i] += alpha * p[i];
                r[i] -= alpha * q[i];
                rho += r[i] * r[i];
            }
            const double beta = rho / rho_before;
#pragma omp for
            for (int i = 0; i < n; i++) p[i] = r[i] + beta * p[i];
        }
    }
}

// One step of the power method; returns 1 / (x . z) and sets x := z / |z|.
static double power_step(int n) {
    conjugate_gradient(n);
    double x_z = 0, z_z = 0;
#pragma omp parallel for reduction(+ : x_z, z_z)
    for (int i = 0; i < n; i++) {
        x_z += x[i] * z[i];
        z_z += z[i] * z[i];
    }
    const double scale = 1 / sqrt(z_z);
#pragma omp parallel for
    for (int i = 0; i < n; i++) x[i] = scale * z[i];
    return 1 / x_z;
}

static void start_vector(int n) {
#pragma omp parallel for
    for (int i = 0; i < n; i++) x[i] = 1;
}

int main(int argc, char** argv) {
    const char wanted = argc > 1 ? argv[1][0] : 'S';
    const struct Class* class = NULL;
    for (unsigned i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        if (classes[i].name == wanted) class = &classes[i];
    }
    if (class == NULL) {
        fprintf(stderr, "usage: cg [S|W|A]\n");
        return 2;
    }
    const int n = class->order;
    random_next();  // the specification drops the first number
    make_matrix(class);
    double** vectors[] = {&x, &z, &p, &q, &r};
    for (int i = 0; i < 5; i++) *vectors[i] = allocate(n, sizeof(double));

    start_vector(n);
    power_step(n);  // untimed: touches everything once
    start_vector(n);
    const double start = now();
    double zeta = 0;
    for (int i = 0; i < class->iterations; i++) zeta = class->shift + power_step(n);
    const double seconds = now() - start;

    const int good = fabs(zeta - class->zeta) <= 1e-10;
    printf("CG %c zeta %.13f error %.1e seconds %.3f VERIFICATION %s\n", class->name, zeta,
           fabs(zeta - class->zeta), seconds, good ? "SUCCESSFUL" : "FAILED");
    return good ? 0 : 1;
}
