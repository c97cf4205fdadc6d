// SPDX-License-Identifier: BSD-3-Clause
// Calls on another node's descriptors and streams that give less than there is room for: behind
// what they gave, the caller's memory is as it was.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include <wchar.h>

enum { room = 3000, lines_max = 80 };
static char lines[lines_max][80];
static int line_count;
static char buffer[room];

/// Prints what the call gave, and which bytes of the buffer are others than before.
#define tell(call)                                                                                \
    do {                                                                                          \
        memset(buffer, '.', room);                                                                \
        const long result = (long)(call);                                                         \
        int changed = room;                                                                       \
        while (changed > 0 && buffer[changed - 1] == '.') --changed;                              \
        snprintf(lines[line_count++], sizeof lines[0], "%.50s: %ld, %d", #call, result, changed); \
    } while (0)

static int file, pipe_ends[2], pair[2], datagrams[2], poller, folder;
static FILE *stream, *wide;

static void open_all(void) {
    file = memfd_create("short", 0);
    if (write(file, "hello", 5) != 5) perror("write");
    lseek(file, 3, SEEK_SET);
    if (pipe(pipe_ends) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0 ||
        socketpair(AF_UNIX, SOCK_DGRAM, 0, datagrams) != 0)
        perror("pipe");
    if (write(pipe_ends[1], "through", 7) != 7) perror("write");
    close(pipe_ends[1]);
    send(pair[0], "stream", 6, 0);
    send(datagrams[0], "datagram", 8, 0);
    send(datagrams[0], "another", 7, 0);
    poller = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(poller, EPOLL_CTL_ADD, datagrams[1], &event);
    folder = open("/proc/sys/vm", O_RDONLY | O_DIRECTORY);
    stream = tmpfile();
    fputs("of a stream", stream);
    rewind(stream);
    wide = tmpfile();
    fputws(L"wide", wide);
    rewind(wide);
}

static void call_all(void) {
    tell(pread(file, buffer, room, 2));
    tell(pread(file, buffer, room, 5));
    tell(read(file, buffer, room));
    tell(read(file, buffer, room));
    tell(read(pipe_ends[0], buffer, room));
    tell(read(pipe_ends[0], buffer, room));
    tell(epoll_wait(poller, (struct epoll_event*)buffer, 20, 0) * 0);
    tell(recv(pair[1], buffer, room, 0));
    socklen_t length = 100;
    tell(recvfrom(datagrams[1], buffer, 1000, 0, (struct sockaddr*)(buffer + 1000), &length));
    struct iovec part = {buffer, room};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    tell(recvmsg(datagrams[1], &message, 0));
    length = 1000;
    tell(getsockopt(pair[1], SOL_SOCKET, SO_TYPE, buffer, &length));
    length = 1000;
    tell(getsockname(pair[1], (struct sockaddr*)buffer, &length));
    tell(syscall(SYS_getdents64, folder, buffer, room) > 0 && buffer[room - 1] == '.' &&
         (memset(buffer, '.', room), 1));
    tell(syscall(SYS_getdents64, folder, buffer, room));
    tell(fread(buffer, 1, room, stream));
    tell(fread(buffer, 1, room, stream));
    tell(fgets(buffer, room, stream) != NULL);
    tell(fgetws((wchar_t*)buffer, room / sizeof(wchar_t), wide) != NULL);
    tell(fgetws((wchar_t*)buffer, room / sizeof(wchar_t), wide) != NULL);
}

int main(void) {
    open_all();
#pragma omp parallel
    if (omp_get_thread_num() == omp_get_num_threads() - 1) call_all();
    for (int i = 0; i < line_count; ++i) puts(lines[i]);
    line_count = 0;
#pragma omp parallel
    {
        if (omp_get_thread_num() == omp_get_num_threads() - 1) open_all();
#pragma omp barrier
        if (omp_get_thread_num() == 0) call_all();
    }
    for (int i = 0; i < line_count; ++i) puts(lines[i]);
    return 0;
}
