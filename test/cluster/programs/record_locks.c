// SPDX-License-Identifier: BSD-3-Clause
// Locks on a file: of the process (fcntl, lockf), which no two threads of the program keep from
// each other, of an open file (F_OFD_SETLK) and flock(). After reports of HDF5 and SQLite.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

enum { threads = 4, answers = 12 };

static int answer[threads][answers];

static int lock(int fd, int command, short type, short whence, long at, long bytes) {
    struct flock wanted = {.l_type = type, .l_whence = whence, .l_start = at, .l_len = bytes};
    return fcntl(fd, command, &wanted) ? errno : 0;
}

// Asks who is in the way of the whole file: 1000 nobody, else 2000.
static int asked(int fd) {
    struct flock wanted = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_GETLK, &wanted) ? errno : wanted.l_type == F_UNLCK ? 1000 : 2000;
}

// The same as another process sees it.
static int asked_by_another(const char* self, const char* name) {
    char command[600];
    snprintf(command, sizeof command, "%s ask %s", self, name);
    return WEXITSTATUS(system(command));
}

static void of_process(const char* self, const char* name, int fd, int me) {
    int* const mine = answer[me];
    const int own = open(name, O_RDWR), readable = open(name, O_RDONLY);
    if (me == 0) mine[0] = lock(fd, F_SETLK, F_WRLCK, SEEK_SET, 0, 10);
#pragma omp barrier
    if (me != 0) mine[0] = lock(own, F_SETLK, F_WRLCK, SEEK_SET, 0, 10);
    mine[1] = lock(fd, F_SETLKW, F_WRLCK, SEEK_SET, me, 1);
    mine[2] = asked(own);
    mine[3] = lock(readable, F_SETLK, F_WRLCK, SEEK_SET, 50, 1);
    lseek(own, 60, SEEK_SET);
    mine[4] = lockf(own, F_TLOCK, 5) ? errno : 0;
    mine[5] = lock(own, F_SETLK, F_RDLCK, SEEK_END, -2, 1);
    mine[6] = lock(own, F_SETLK, F_WRLCK, SEEK_SET, -5, 1);
#pragma omp barrier
    if (me == threads - 1) mine[7] = asked_by_another(self, name);
#pragma omp barrier
    // As soon as the process closes any descriptor of the file, all its locks end.
    if (me == threads - 1) {
        close(own);
        mine[8] = asked_by_another(self, name);
    }
#pragma omp barrier
    if (me != threads - 1) close(own);
    close(readable);
}

static void of_open_file(const char* name, int fd, int me) {
    int* const mine = answer[me];
    const int own = open(name, O_RDWR);
    if (me == threads - 1) mine[9] = lock(own, F_OFD_SETLK, F_WRLCK, SEEK_SET, 100, 10);
#pragma omp barrier
    if (me != threads - 1) mine[9] = lock(own, F_OFD_SETLK, F_RDLCK, SEEK_SET, 100, 10);
    if (me == 1) mine[10] = flock(own, LOCK_EX) ? errno : 0;
#pragma omp barrier
    if (me != 1) mine[10] = flock(own, LOCK_SH | LOCK_NB) ? errno : 0;
    mine[11] = flock(fd, LOCK_SH | LOCK_NB) ? errno : 0;
#pragma omp barrier
    close(own);
}

// Each thread counts up in the file, with its lock.
static int counted(const char* name, int fd, int command) {
    if (pwrite(fd, "0000000000", 10, 0) != 10) return -1;
#pragma omp parallel num_threads(threads)
    {
        const int own = open(name, O_RDWR);
        for (int i = 0; i < 10; ++i) {
            char text[16] = "";
            lock(own, command, F_WRLCK, SEEK_SET, 0, 10);
            if (pread(own, text, 10, 0) != 10) puts("short");
            snprintf(text, sizeof text, "%010d", atoi(text) + 1);
            if (pwrite(own, text, 10, 0) != 10) puts("short");
            lock(own, command, F_UNLCK, SEEK_SET, 0, 10);
        }
        close(own);
    }
    char text[16] = "";
    return pread(fd, text, 10, 0) == 10 ? atoi(text) : -1;
}

int main(int argc, char** argv) {
    if (argc > 2) {
        const int other = open(argv[2], O_RDWR);
        return other < 0 ? 9 : asked(other) / 1000;
    }
    char name[64];
    snprintf(name, sizeof name, "/tmp/record_locks_%d", getpid());
    const int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, "0000000000", 10) != 10) return 1;
#pragma omp parallel num_threads(threads)
    {
        of_process(argv[0], name, fd, omp_get_thread_num());
        of_open_file(name, fd, omp_get_thread_num());
    }
    for (int i = 0; i < threads; ++i) {
        for (int k = 0; k < answers; ++k) printf("%d ", answer[i][k]);
        puts("");
    }
    printf("%d\n", counted(name, fd, F_OFD_SETLKW));
    unlink(name);
    return 0;
}
