// SPDX-License-Identifier: BSD-3-Clause
// Role: shapes of programs that a shared memory of several machines makes slow first: one of them
// by name, its seconds and whether its answer is right. bench/patterns.py runs them in turns. Each
// ends with a region in which every thread shows that it took part.
#include <omp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t mixed(uint64_t x) {
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdu;
    return x ^ x >> 29;
}

/// Serial code that takes a lock after each row it has written.
static int serial_locks(void) {
    enum { rows = 20000, columns = 512 };
    double* const all = malloc(sizeof(double) * rows * columns);
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    long done = 0;
    for (int row = 0; row < rows; ++row) {
        for (int i = 0; i < columns; ++i) all[row * columns + i] = (double)mixed(row + i) * 0x1p-64;
        pthread_mutex_lock(&lock);
        ++done;
        pthread_mutex_unlock(&lock);
    }
    double sum = 0, wanted = 0;
    for (int row = 0; row < rows; row += 97) sum += all[row * columns + row % columns];
    for (int row = 0; row < rows; row += 97) wanted += (double)mixed(row + row % columns) * 0x1p-64;
    free(all);
    return done == rows && sum == wanted;
}

/// An interpreter's start: counted references, allocations, no region yet.
static int atomic_start(void) {
    enum { objects = 4096, steps = 311000 };
    struct object {
        long references, payload[15];
    }** const all = calloc(objects, sizeof *all);
    uint64_t at = 1;
    for (int i = 0; i < steps; ++i) {
        at = mixed(at + i);
        struct object** const each = &all[at % objects];
        if (*each == NULL) *each = calloc(1, sizeof **each);
        __atomic_fetch_add(&(*each)->references, 1, __ATOMIC_SEQ_CST);
        // What it interprets between two of them.
        for (int j = 0; j < 900; ++j) (*each)->payload[j % 15] += (long)mixed(at + j) & 0xff;
    }
    long sum = 0;
    for (int i = 0; i < objects; ++i) {
        if (all[i] != NULL) sum += all[i]->references;
        free(all[i]);
    }
    free(all);
    return sum == steps;
}

/// An image library's filter: tiles out of a cache under a mutex, no region.
static int filter(void) {
    enum { width = 4096, height = 2048, tiles = 5055 };
    float* const from = malloc(sizeof(float) * width * height);
    float* const to = malloc(sizeof(float) * width * height);
    for (long i = 0; i < (long)width * height; ++i) from[i] = (float)(mixed(i) >> 40);
    pthread_mutex_t cache = PTHREAD_MUTEX_INITIALIZER;
    long taken = 0;
    for (int tile = 0; tile < tiles; ++tile) {
        pthread_mutex_lock(&cache);
        ++taken;
        pthread_mutex_unlock(&cache);
        for (int row = 1 + tile * 7 % (height - 10), last = row + 8; row < last; ++row) {
            for (int x = 1; x < width - 1; ++x) {
                float sum = 0;
                for (int y = -1; y <= 1; ++y)
                    for (int z = -1; z <= 1; ++z) sum += from[(row + y) * width + x + z];
                to[row * width + x] = sum / 9;
            }
        }
    }
    const int row = 1, x = 17;
    float wanted = 0;
    for (int y = -1; y <= 1; ++y)
        for (int z = -1; z <= 1; ++z) wanted += (float)(mixed((row + y) * width + x + z) >> 40);
    const int right = taken == tiles && to[row * width + x] == wanted / 9;
    free(from);
    free(to);
    return right;
}

/// Node 0 reads its input, 60,000 pages, and all threads look up in it.
static int tables(void) {
    enum { entries = 60000 * 512, lookups = 24000000 };
    double* const table = malloc(sizeof(double) * entries);
    for (long i = 0; i < entries; ++i) {
        double x = (double)(mixed(i) >> 11) * 0x1p-53;
        for (int step = 0; step < 4; ++step) x = x * (1 - x) * 3.99;
        table[i] = x;
    }
    double sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < lookups; ++i) {
        uint64_t at = mixed((uint64_t)i * 2654435761u);
        double mine = 0;
        for (int step = 0; step < 8; ++step, at = mixed(at + 1)) mine += table[at % entries];
        sum += mine;
    }
    double few = 0;
    for (int i = 0; i < 1000; ++i) {
        uint64_t at = mixed((uint64_t)i * 2654435761u);
        for (int step = 0; step < 8; ++step, at = mixed(at + 1)) few += table[at % entries];
    }
    free(table);
    // The mean of the first lookups is that of all, or the table was not what it should be.
    const double difference = sum / lookups - few / 1000;
    return difference < .2 && difference > -.2;
}

/// Dynamic programming: 255 regions over the tiles of a diagonal, each tile 64 bytes wide.
static int wavefront(void) {
    enum { size = 8192, tile = 64, count = size / tile };
    unsigned char* const cell = malloc((long)size * size);
    for (int i = 0; i < size; ++i) cell[i] = cell[(long)i * size] = (unsigned char)mixed(i);
    for (int diagonal = 0; diagonal < 2 * count - 1; ++diagonal) {
        const int first = diagonal < count ? 0 : diagonal - count + 1;
        const int last = diagonal < count ? diagonal : count - 1;
#pragma omp parallel for
        for (int down = first; down <= last; ++down) {
            const int across = diagonal - down;
            for (int y = down * tile; y < (down + 1) * tile; ++y) {
                for (int x = across * tile; x < (across + 1) * tile; ++x) {
                    if (y == 0 || x == 0) continue;
                    const unsigned char* const up = &cell[(long)(y - 1) * size + x];
                    const unsigned left = cell[(long)y * size + x - 1];
                    cell[(long)y * size + x] =
                        (unsigned char)(left * 3 + up[0] * 5 + up[-1] + (unsigned)(x ^ y));
                }
            }
        }
    }
    // Again by rows, on one thread.
    unsigned char* const row = malloc(size);
    int right = 1;
    for (int i = 0; i < size; ++i) row[i] = (unsigned char)mixed(i);
    for (int y = 1; y < size; ++y) {
        unsigned corner = row[0];
        row[0] = (unsigned char)mixed(y);
        for (int x = 1; x < size; ++x) {
            const unsigned up = row[x];
            row[x] = (unsigned char)(row[x - 1] * 3u + up * 5 + corner + (unsigned)(x ^ y));
            corner = up;
        }
        if (y % 512 == 511) right &= memcmp(row, &cell[(long)y * size], size) == 0;
    }
    free(row);
    free(cell);
    return right;
}

/// Thirty thousand regions of some thirty microseconds, as of a hydrodynamics code.
static int small_regions(void) {
    enum { regions = 30000, cells = 49152 };
    double* const now = malloc(sizeof(double) * cells);
    double* const next = malloc(sizeof(double) * cells);
    double all = 0, wanted = 0;
    for (int i = 0; i < cells; ++i) wanted += now[i] = (double)(i % 17);
    for (int region = 0; region < regions; region += 2) {
#pragma omp parallel for
        for (int i = 0; i < cells; ++i)
            next[i] = .5 * now[i] + .25 * (now[(i + 1) % cells] + now[(i + cells - 1) % cells]);
#pragma omp parallel for
        for (int i = 0; i < cells; ++i)
            now[i] = .5 * next[i] + .25 * (next[(i + 1) % cells] + next[(i + cells - 1) % cells]);
    }
    for (int i = 0; i < cells; ++i) all += now[i];
    free(now);
    free(next);
    return all > wanted - 1e-3 && all < wanted + 1e-3;
}

/// A graph is built: an atomic for each end of an edge, and a plain write behind it.
static int graph(void) {
    enum { vertices = 1 << 16, edges = 1 << 22 };
    int* const first = calloc(vertices + 1, sizeof *first);
    int* const end = malloc(sizeof *end * vertices);
    unsigned* const edge = malloc(sizeof *edge * edges);
#pragma omp parallel for
    for (int i = 0; i < edges; ++i)
        __atomic_fetch_add(&first[mixed(i) % vertices + 1], 1, __ATOMIC_RELAXED);
    for (int i = 0; i < vertices; ++i) first[i + 1] += first[i];
    memcpy(end, first, sizeof *end * vertices);
#pragma omp parallel for
    for (int i = 0; i < edges; ++i)
        edge[__atomic_fetch_add(&end[mixed(i) % vertices], 1, __ATOMIC_RELAXED)] = (unsigned)i;
    long wrong = first[vertices] != edges;
    for (int vertex = 0; vertex < vertices; ++vertex)
        for (int i = first[vertex]; i < first[vertex + 1]; ++i)
            wrong += mixed(edge[i]) % vertices != (uint64_t)vertex;
    free(first);
    free(end);
    free(edge);
    return wrong == 0;
}

static const struct {
    const char* name;
    int (*run)(void);
} patterns[] = {{"serial_locks", serial_locks},
                {"atomic_start", atomic_start},
                {"filter", filter},
                {"tables", tables},
                {"graph", graph},
                {"wavefront", wavefront},
                {"small_regions", small_regions}};

int main(int count, char** words) {
    for (size_t i = 0; count == 2 && i < sizeof patterns / sizeof *patterns; ++i) {
        if (strcmp(words[1], patterns[i].name) != 0) continue;
        const double begin = omp_get_wtime();
        const int right = patterns[i].run();
        const double seconds = omp_get_wtime() - begin;
        int threads = 0;
#pragma omp parallel reduction(+ : threads)
        ++threads;
        printf("%s %.4f s, %d threads\n", right ? "right" : "wrong", seconds, threads);
        return !right || threads != omp_get_max_threads();
    }
    fputs("usage: patterns serial_locks|atomic_start|filter|tables|graph|wavefront|small_regions\n",
          stderr);
    return 64;
}
