// SPDX-License-Identifier: BSD-3-Clause
// Descriptors and streams opened by one thread and used by others, in turn.
#define _GNU_SOURCE
#include <fcntl.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static int fd;
static FILE* stream;
static char big[200000], again[200000];

static void show(const char* title, const char* path) {
    FILE* file = fopen(path, "r");
    char line[200];
    printf("--- %s\n", title);
    while (fgets(line, sizeof line, file) != NULL) fputs(line, stdout);
    fclose(file);
}

static void use_stream(int i) {
    fprintf(stream, "turn %d of %d\n", i, omp_get_num_threads());
    fputs("a line", stream);
    fputc('.', stream);
    putc('\n', stream);
    fwrite("bytes\n", 1, 6, stream);
}

static void use_descriptor(int i) {
    char line[64];
    const int length = snprintf(line, sizeof line, "turn %d\n", i);
    if (write(fd, line, (size_t)length) != length) abort();
    struct iovec vector[2] = {{line, (size_t)length}, {"and again\n", 10}};
    if (writev(fd, vector, 2) != length + 10) abort();
}

int main(void) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/files_%d", (int)getpid());

    stream = fopen(path, "w");
    fprintf(stream, "first\n");
#pragma omp parallel for ordered schedule(static, 1)
    for (int i = 0; i < 8; ++i) {
#pragma omp ordered
        use_stream(i);
    }
    fprintf(stream, "last\n");
    fclose(stream);
    show("stream", path);

    fd = open(path, O_RDWR | O_TRUNC);
#pragma omp parallel for ordered schedule(static, 1)
    for (int i = 0; i < 8; ++i) {
#pragma omp ordered
        use_descriptor(i);
    }
    show("descriptor", path);

    // Long transfers, positions and the status, from the last thread.
    struct stat status;
#pragma omp parallel
    if (omp_get_thread_num() == omp_get_num_threads() - 1) {
        for (size_t i = 0; i < sizeof big; ++i) big[i] = (char)(i * 13);
        printf("write %zd\n", pwrite(fd, big, sizeof big, 1000));
        printf("lseek %ld\n", (long)lseek(fd, 1000, SEEK_SET));
        printf("read %zd\n", read(fd, again, sizeof again));
        printf("past the end %zd\n", read(fd, again, 10));
        const int failed = fstat(fd, &status);
        printf("fstat %d %ld\n", failed, (long)status.st_size);
        printf("fsync %d\n", fsync(fd));
        fflush(stdout);
    }
    printf("equal %d at %ld\n", memcmp(big, again, sizeof big) == 0, (long)lseek(fd, 0, SEEK_CUR));

    // Opened by the last thread, closed there, used in between by the first.
    int own = -1;
#pragma omp parallel
    if (omp_get_thread_num() == omp_get_num_threads() - 1) own = open(path, O_RDONLY);
    char text[8] = "";
    printf("read %zd: %.6s\n", read(own, text, 6), text);
    close(own);

    stream = fopen(path, "r");
#pragma omp parallel for ordered schedule(static, 1)
    for (int i = 0; i < 4; ++i) {
#pragma omp ordered
        {
            char line[100] = "", word[20] = "";
            int number = -1;
            if (fgets(line, sizeof line, stream) == NULL) abort();
            printf("%d read %s", i, line);
            const int items = fscanf(stream, "%19s %d\n", word, &number);
            printf("%d scanned %d %s %d at %ld\n", i, items, word, number, ftell(stream));
            fflush(stdout);
        }
    }
    int ended = 0;
#pragma omp parallel
    if (omp_get_thread_num() == omp_get_num_threads() - 1) {
        fseek(stream, -3, SEEK_END);
        while (fgetc(stream) != EOF) ++ended;
        ended = 100 * ended + 10 * (feof(stream) != 0) + (fclose(stream) == 0);
    }
    printf("ended %d\n", ended);
    close(fd);
    unlink(path);
    return 0;
}
