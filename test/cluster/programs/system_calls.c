// SPDX-License-Identifier: BSD-3-Clause
// System calls with everything they point to in memory that another thread has just written: what
// libc makes inside itself as well as what the program calls.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <omp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// Each on pages of its own, all written elsewhere before each use.
static struct {
    char path[4096], text[4096], big[1 << 20], big_2[1 << 20];
    struct stat status;
    struct statvfs volume;
    struct utsname name;
    struct rlimit limit;
    struct rusage usage;
    struct timespec times[2];
    struct tms ticks;
    struct pollfd polled[2];
    fd_set set;
    struct timeval timeout;
    struct msghdr message;
    struct iovec vector[2];
    struct sockaddr_in address;
    socklen_t length;
    int descriptors[2], status_word, count;
    unsigned char random[64];
    struct addrinfo hints;
} shared __attribute__((aligned(4096)));

/// The last thread writes all of it, so that it is invalid where main runs.
static void spoil(void) {
#pragma omp parallel
    if (omp_get_thread_num() == omp_get_num_threads() - 1) {
        memset(&shared, 0, sizeof shared);
        for (size_t i = 0; i < sizeof shared.big; ++i) shared.big[i] = (char)(i * 7 + i / 4096);
        strcpy(shared.path, "/proc/self/exe");
        strcpy(shared.text, "127.0.0.1");
        shared.length = sizeof shared.address;
    }
}

static const char* file_name;

static void files(void) {
    spoil();
    strcpy(shared.path, file_name);
    spoil();
    FILE* file = fopen(file_name, "w+");
    printf("fwrite %zu\n", fwrite(shared.big, 1, sizeof shared.big, file));
    rewind(file);
    spoil();
    printf("fread %zu", fread(shared.big_2, 1, sizeof shared.big_2, file));
    printf(" equal %d\n", memcmp(shared.big, shared.big_2, sizeof shared.big) == 0);
    fseek(file, 100, SEEK_SET);
    char* line = NULL;
    size_t room = 0;
    printf("getline %zd\n", getline(&line, &room, file));
    free(line);
    fclose(file);

    spoil();
    printf("readlink %d\n", readlink(shared.path, shared.text, sizeof shared.text) > 0);
    spoil();
    int fd = open(file_name, O_RDWR);
    printf("statvfs %d fstatat %d\n", fstatvfs(fd, &shared.volume),
           fstatat(AT_FDCWD, shared.path, &shared.status, 0));
    spoil();
    printf("fstat %d", fstat(fd, &shared.status));
    printf(" size %ld\n", (long)shared.status.st_size);
    spoil();
    printf("futimens %d\n", futimens(fd, shared.times));
    spoil();
    printf("short read %zd\n", pread(fd, shared.big_2, 5000, (1 << 20) - 3000));
    printf("bad descriptor %zd", read(-1, shared.big_2, 10));
    printf(" %d\n", errno);
    char* volatile nowhere = (char*)8;
    printf("bad address %zd", read(fd, nowhere, 10));
    printf(" %d\n", errno);
    close(fd);

    spoil();
    strcpy(shared.text, "/proc/self");
    spoil();
    DIR* directory = opendir("/proc/self/fdinfo/..");
    int entries = 0;
    while (readdir(directory) != NULL) ++entries;
    closedir(directory);
    printf("entries %d\n", entries > 10);
}

static void sockets(void) {
    spoil();
    printf("socketpair %d\n", socketpair(AF_UNIX, SOCK_STREAM, 0, shared.descriptors));
    const int a = shared.descriptors[0], b = shared.descriptors[1];
    spoil();
    shared.vector[0] = (struct iovec){shared.big, 3000};
    shared.vector[1] = (struct iovec){shared.big + 50000, 5000};
    shared.message.msg_iov = shared.vector;
    shared.message.msg_iovlen = 2;
#pragma omp parallel
    if (omp_get_thread_num() == omp_get_num_threads() - 1) shared.message.msg_flags = 0;
    printf("sendmsg %zd\n", sendmsg(a, &shared.message, 0));
    printf("FIONREAD %d", ioctl(b, FIONREAD, &shared.count));
    printf(" %d\n", shared.count);
    spoil();
    shared.polled[0] = (struct pollfd){b, POLLIN, 0};
    printf("poll %d", poll(shared.polled, 1, 1000));
    printf(" %d\n", shared.polled[0].revents);
    spoil();
    FD_SET(b, &shared.set);
    shared.timeout.tv_sec = 1;
    printf("select %d\n", select(b + 1, &shared.set, NULL, NULL, &shared.timeout));
    spoil();
    shared.vector[0] = (struct iovec){shared.big_2, 4000};
    shared.vector[1] = (struct iovec){shared.big_2 + 60000, 4000};
    shared.message.msg_iov = shared.vector;
    shared.message.msg_iovlen = 2;
    printf("recvmsg %zd\n", recvmsg(b, &shared.message, 0));
    int type = 0;
    spoil();
    printf("getsockopt %d", getsockopt(a, SOL_SOCKET, SO_TYPE, &shared.count, &shared.length));
    type = shared.count;
    printf(" %d\n", type == SOCK_STREAM);
    close(a);
    close(b);
    spoil();
    shared.hints.ai_flags = AI_NUMERICHOST;
    struct addrinfo* found = NULL;
    printf("getaddrinfo %d\n", getaddrinfo(shared.text, "80", &shared.hints, &found));
    printf("port %d\n", ntohs(((struct sockaddr_in*)found->ai_addr)->sin_port));
    freeaddrinfo(found);
}

static void process(void) {
    spoil();
    printf("uname %d %s\n", uname(&shared.name), shared.name.sysname);
    spoil();
    printf("getrusage %d\n", getrusage(RUSAGE_SELF, &shared.usage));
    spoil();
    printf("getrlimit %d\n", getrlimit(RLIMIT_CORE, &shared.limit));
    spoil();
    printf("getrandom %zd\n", getrandom(shared.random, sizeof shared.random, 0));
    spoil();
    printf("clock_gettime %ld", syscall(SYS_clock_gettime, CLOCK_REALTIME, &shared.times[0]));
    printf(" %d\n", shared.times[0].tv_sec > 1000000);
    spoil();
    shared.times[0].tv_nsec = 1000;
    printf("nanosleep %d\n", nanosleep(&shared.times[0], &shared.times[1]));
    spoil();
    printf("times %d\n", times(&shared.ticks) != (clock_t)-1);
    spoil();
    printf("pipe %d\n", pipe(shared.descriptors));
    printf("written %zd\n", write(shared.descriptors[1], shared.text, 10));
    close(shared.descriptors[0]);
    close(shared.descriptors[1]);
    spoil();
    printf("system %d\n", system("exit 3"));
    FILE* command = popen("echo from a child", "r");
    spoil();
    printf("fgets %d ", fgets(shared.text, sizeof shared.text, command) != NULL);
    printf("%s", shared.text);
    printf("pclose %d\n", pclose(command));
}

int main(void) {
    static char name[64];
    snprintf(name, sizeof name, "/tmp/system_calls_%d", (int)getpid());
    file_name = name;
    files();
    sockets();
    process();
    unlink(file_name);
    return 0;
}
