// SPDX-License-Identifier: BSD-3-Clause
// What the last thread does with files, pipes, children and standard input, and what the first
// thread then finds.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ON_LAST _Pragma("omp parallel") if (omp_get_thread_num() == omp_get_num_threads() - 1)

static FILE* stream;
static int ends[2];
static char text[100], path[64];

static void children(void) {
    ON_LAST {
        printf("system %d\n", WEXITSTATUS(system("exit 4")));
        FILE* child = popen("echo from a child; exit 5", "r");
        char* line = NULL;
        size_t room = 0;
        const long got = getline(&line, &room, child);
        printf("getline %ld %s", got, line);
        printf("pclose %d\n", WEXITSTATUS(pclose(child)));
        free(line);
    }
}

static void pipes(void) {
    ON_LAST {
        printf("pipe %d\n", pipe(ends));
        printf("write %zd\n", write(ends[1], "through a pipe", 14));
    }
    printf("read %zd: %.14s\n", read(ends[0], text, sizeof text), text);
    ON_LAST {
        printf("close %d %d\n", close(ends[0]), close(ends[1]));
        printf("socketpair %d\n", socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
        printf("send %zd\n", send(ends[0], "abc", 3, 0));
        printf("recv %zd\n", recv(ends[1], text, sizeof text, 0));
        const int copy = fcntl(ends[0], F_DUPFD_CLOEXEC, 0);
        printf("copy %d\n", fcntl(copy, F_GETFD) == FD_CLOEXEC);
        close(copy);
    }
    close(ends[0]);
    printf("closed %d\n", close(ends[0]));
    close(ends[1]);
}

static void streams(void) {
    ON_LAST {
        stream = fopen(path, "w+");
        fprintf(stream, "by the last %d\n", 1);
    }
    fprintf(stream, "by the first %d\n", 2);
    printf("flush %d\n", fflush(stream));
    ON_LAST fprintf(stream, "by the last again\n");
    rewind(stream);
    while (fgets(text, sizeof text, stream) != NULL) printf("line: %s", text);
    printf("ended %d\n", feof(stream) != 0);
    ON_LAST printf("fclose %d\n", fclose(stream));
    ON_LAST {
        DIR* directory = opendir("/proc/self");
        int entries = 0;
        while (readdir(directory) != NULL) ++entries;
        printf("entries %d %d\n", entries > 10, closedir(directory));
    }
    unlink(path);
}

static void input(void) {
    ON_LAST {
        int number = 0;
        const int items = scanf("%d %90s", &number, text);
        printf("scanned %d %d %s\n", items, number, text);
    }
    printf("left: %c", getchar());
    printf("gets %s", fgets(text, sizeof text, stdin));
    ON_LAST {
        printf("gets %s", fgets(text, sizeof text, stdin));
        printf("end %d\n", getchar() == EOF);
    }
}

static void no_such_call(int number) {
    static const char line[] = "handled SIGSYS\n";
    if (number == SIGSYS && write(1, line, sizeof line - 1) < 0) abort();
}

int main(void) {
    snprintf(path, sizeof path, "/tmp/calls_of_others_%d", (int)getpid());
    children();
    pipes();
    streams();
    input();
    fflush(stdout);
    signal(SIGSYS, no_such_call);
    raise(SIGSYS);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    printf("blocked %d\n", system("exit 0"));
    return 0;
}
