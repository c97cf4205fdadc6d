// SPDX-License-Identifier: BSD-3-Clause
// Rows of one stream, taken in turn by the threads of all nodes: the position is the job's, a row
// is whole, and its end is seen by whoever comes upon it. Each row is asked for at once.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { rows = 40, width = 9600, tail = 123 };
static long sums[rows];

static unsigned char byte_of(int row, int i) { return (unsigned char)(row * 31 + i); }

/// Whether the bytes of five rows take less than ten times as long as 500 of them one by one, in
/// one of some tries: other work may have the processor in the others.
static int reads_at_once(FILE* file, unsigned char* line) {
    for (int tries = 20; tries > 0; --tries) {
        rewind(file);
        const double begin = omp_get_wtime();
        for (int i = 0; i < 500; ++i) line[0] ^= (unsigned char)getc(file);
        const double middle = omp_get_wtime();
        for (int row = 0; row < 5; ++row)
            if (fread(line, 1, width, file) != width) return 0;
        if (omp_get_wtime() - middle < 10 * (middle - begin) + 5e-3) return 1;
    }
    return 0;
}

int main(void) {
    FILE* const file = tmpfile();
    for (int r = 0; r < rows; ++r)
        for (int i = 0; i < width; ++i) putc(byte_of(r, i), file);
    for (int i = 0; i < tail; ++i) putc('t', file);
    rewind(file);
    int next = 0, wrong = 0, ends = 0, soon = 0;
#pragma omp parallel reduction(+ : wrong, ends, soon)
    {
        unsigned char* const line = malloc(width);
#pragma omp for schedule(dynamic)
        for (int k = 0; k < rows; ++k) {
            int r, c = 0;
#pragma omp critical
            {
                r = next++;
                // Some by a character, given back, and items of several bytes.
                if (r % 3 == 1) {
                    c = getc(file);
                    wrong += c != byte_of(r, 0);
                    wrong += ungetc(c, file) != c;
                }
                wrong += fread(line, r % 2 ? 4 : 1, r % 2 ? width / 4 : width, file) !=
                         (size_t)(r % 2 ? width / 4 : width);
                wrong += feof(file) || ferror(file);
            }
            long sum = 0;
            for (int i = 0; i < width; ++i) sum += (long)line[i] * (i + 1);
            sums[r] = sum;
        }
#pragma omp barrier
        if (omp_get_thread_num() == omp_get_num_threads() - 1) {
            wrong += fread(line, 10, width / 10, file) != tail / 10;
            wrong += line[0] != 't' || line[tail - 1] != 't';
            ends += feof(file) != 0 && ferror(file) == 0;
            wrong += fread(line, 0, 5, file) != 0;
            soon += reads_at_once(file, line);
        }
        free(line);
    }
    for (int r = 0; r < rows; ++r) {
        long sum = 0;
        for (int i = 0; i < width; ++i) sum += (long)byte_of(r, i) * (i + 1);
        wrong += sums[r] != sum;
    }
    printf("wrong %d, ends %d, soon %d\n", wrong, ends, soon);
    return wrong != 0;
}
