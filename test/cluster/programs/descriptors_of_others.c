// SPDX-License-Identifier: BSD-3-Clause
// Every kind of call on descriptors that another node has opened: sockets, locks, waits for several
// descriptors, copies from one to another. Each prints what it gave.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

enum { lines_max = 80, line_bytes = 100, file_bytes = 8192, large_bytes = 200000 };

static char lines[lines_max][line_bytes];
static int line_count;

#define tell(call)                                                                \
    do {                                                                          \
        errno = 0;                                                                \
        const long result = (long)(call);                                         \
        snprintf(lines[line_count++], line_bytes, "%.60s: %ld %s", #call, result, \
                 result < 0 ? strerror(errno) : "");                              \
    } while (0)

/// The team is spread over the nodes; its first thread is main's.
static int is_last(void) { return omp_get_thread_num() == omp_get_num_threads() - 1; }
static int is_first(void) { return omp_get_thread_num() == 0; }

static void print_lines(void) {
    for (int i = 0; i < line_count; ++i) puts(lines[i]);
    line_count = 0;
}

static int temporary(void) {
    char name[] = "/tmp/others_XXXXXX", bytes[file_bytes];
    const int made = mkstemp(name);
    unlink(name);
    memset(bytes, 'x', sizeof bytes);
    if (write(made, bytes, sizeof bytes) != sizeof bytes) exit(2);
    return made;
}

static void call_on_files(int from, int to) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 5};
    tell(flock(from, LOCK_EX));
    tell(flock(from, LOCK_UN));
    tell(lockf(from, F_TLOCK, 10));
    tell(fcntl(from, F_SETLK, &lock));
    tell(fcntl(from, F_GETLK, &lock));
    tell(lock.l_type == F_UNLCK);
    tell(isatty(from));
    tell(posix_fallocate(from, 0, 9000));
    tell(readahead(from, 0, 100));
    tell(syncfs(from));
    tell(sync_file_range(from, 0, 10, SYNC_FILE_RANGE_WRITE));
    tell(futimens(from, (struct timespec[]){{1, 0}, {2, 0}}));
    struct stat status;
    tell(fstat(from, &status));
    tell(status.st_mtime);
    tell(lseek(from, 0, SEEK_SET));
    tell(lseek(to, 100, SEEK_SET));
    tell(sendfile(to, from, NULL, 50));
    off64_t place = 60;
    tell(copy_file_range(from, &place, to, NULL, 50, 0));
    tell(place);
    tell(lseek(to, 0, SEEK_CUR));
    tell(fcntl(from, F_GETPIPE_SZ));
    tell(fcntl(from, F_GETFL) == O_RDWR || (fcntl(from, F_GETFL) & O_RDWR));
}

static void call_on_channels(const int* ends, const int* sockets, int to) {
    char buffer[40];
    int ready = 0;
    struct pollfd both[] = {{ends[0], POLLIN, 0}, {ends[1], POLLOUT, 0}};
    tell(poll(both, 2, 100));
    tell(both[0].revents);
    tell(both[1].revents == POLLOUT);
    tell(poll(both, 1, 20));
    fd_set reads, writes;
    FD_ZERO(&reads);
    FD_ZERO(&writes);
    FD_SET(ends[0], &reads);
    FD_SET(ends[1], &writes);
    struct timeval second = {1, 0};
    const int highest = ends[0] > ends[1] ? ends[0] : ends[1];
    tell(select(highest + 1, &reads, &writes, NULL, &second));
    tell(FD_ISSET(ends[0], &reads) == 0 && FD_ISSET(ends[1], &writes) != 0);
    tell(pselect(highest + 1, NULL, &writes, NULL, &(struct timespec){1, 0}, NULL));
    tell(vmsplice(ends[1], &(struct iovec){"some bytes", 10}, 1, 0));
    tell(splice(ends[0], NULL, to, NULL, 6, 0));
    tell(ioctl(ends[0], FIONREAD, &ready));
    tell(ready);
    tell(fcntl(ends[0], F_SETPIPE_SZ, 8192));
    tell(send(sockets[0], "hello", 5, MSG_NOSIGNAL));
    tell(recv(sockets[1], buffer, 3, MSG_PEEK));
    tell(recv(sockets[1], buffer, sizeof buffer, 0));
    tell(memcmp(buffer, "hello", 5));
    tell(fcntl(sockets[1], F_SETFL, O_NONBLOCK));
    tell(recv(sockets[1], buffer, sizeof buffer, 0));
    const int on = 0;
    int type = 0;
    socklen_t bytes = sizeof type;
    tell(ioctl(sockets[1], FIONBIO, &on));
    tell(getsockopt(sockets[0], SOL_SOCKET, SO_TYPE, &type, &bytes));
    tell(type == SOCK_STREAM && bytes == sizeof type);
    tell(setsockopt(sockets[0], SOL_SOCKET, SO_KEEPALIVE, &type, bytes));
}

static void all_on_others(void) {
    const int from = temporary(), to = temporary();
    int ends[2], sockets[2];
    if (pipe(ends) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) exit(2);
#pragma omp parallel
    if (is_last()) {
        call_on_files(from, to);
        call_on_channels(ends, sockets, to);
    }
    print_lines();
    for (int i = 0; i < 2; ++i) close(ends[i]), close(sockets[i]);
    close(from);
    close(to);
}

/// Each thread serves a socket that the other has made.
static void serve(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr*)&address, bytes) != 0 || listen(listener, 4) != 0) exit(2);
    getsockname(listener, (struct sockaddr*)&address, &bytes);
    char* const large = malloc(large_bytes);
    memset(large, 'y', large_bytes);
    long got = 0, sum = 0;
#pragma omp parallel
    if (is_last()) {
        struct sockaddr_in peer = {0};
        socklen_t peer_bytes = sizeof peer;
        const int connection = accept(listener, (struct sockaddr*)&peer, &peer_bytes);
        sum = peer.sin_family * 1000 + peer_bytes;
        char* const room = malloc(large_bytes);
        got = recv(connection, room, large_bytes, MSG_WAITALL);
        sum += memcmp(room, large, large_bytes) == 0;
        send(connection, "done", 4, 0);
        close(connection);
        free(room);
    } else if (is_first()) {
        char reply[5] = "";
        const int connection = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(connection, (struct sockaddr*)&address, bytes) != 0) perror("connect");
        for (long sent = 0, part; sent < large_bytes; sent += part) {
            part = send(connection, large + sent, large_bytes - sent, MSG_NOSIGNAL);
            if (part < 0) break;
        }
        if (recv(connection, reply, 4, MSG_WAITALL) != 4) perror("recv");
        close(connection);
    }
    printf("served %ld, %ld\n", got, sum);
    close(listener);
    free(large);
}

static void messages(void) {
    int pair[2];
    long sum = 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0) exit(2);
#pragma omp parallel
    for (int i = 0; i < 10 && (is_first() || is_last()); ++i) {
        char first[7], rest[30];
        struct iovec parts[] = {{first, 7}, {rest, 30}};
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
        if (is_first()) {
            memcpy(first, "packet ", 7);
            parts[1].iov_len = snprintf(rest, sizeof rest, "%d", i * i);
            if (sendmsg(pair[0], &message, 0) < 0) perror("sendmsg");
        } else {
            const ssize_t bytes = recvmsg(pair[1], &message, 0);
            if (bytes < 8) break;
            rest[bytes - 7] = '\0';
            sum = sum * 3 + bytes + atoi(rest);
        }
    }
    printf("messages %ld\n", sum);
    close(pair[0]);
    close(pair[1]);
}

/// A wait for descriptors of both nodes, and one by epoll; each is woken by the other thread.
static void waits(void) {
    const int of_main = eventfd(0, 0), many = epoll_create1(0);
    const int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    int of_other = -1;
    long seen = 0;
    struct epoll_event wanted = {.events = EPOLLIN, .data.u64 = 77};
#pragma omp parallel
    {
        if (is_last()) {
            of_other = eventfd(0, 0);
            epoll_ctl(many, EPOLL_CTL_ADD, timer, &wanted);
        }
#pragma omp barrier
        if (is_last()) {
            struct pollfd both[] = {{of_main, POLLIN, 0}, {of_other, POLLIN, 0}};
            // A thread that is late finds both writes at once.
            for (long total = 0, got = 1; total < 6 && got == 1;) {
                unsigned long value = 0;
                got = poll(both, 2, 30000);
                if (got != 1) perror("poll");
                for (int k = 0; k < 2; ++k)
                    if (both[k].revents == POLLIN && read(both[k].fd, &value, 8) == 8)
                        total += (long)value;
                if (write(of_main, &(unsigned long){3}, 8) != 8) perror("write");
                if (read(of_main, &value, 8) != 8) perror("read");
            }
            const struct itimerspec soon = {{0, 0}, {0, 2000000}};
            struct epoll_event event = {0};
            timerfd_settime(timer, 0, &soon, NULL);
            if (epoll_wait(many, &event, 1, 30000) != 1) perror("epoll_wait");
            seen = (long)event.data.u64;
        } else if (is_first()) {
            usleep(3000);
            if (write(of_other, &(unsigned long){2}, 8) != 8) perror("write");
            usleep(3000);
            if (write(of_other, &(unsigned long){4}, 8) != 8) perror("write");
        }
    }
    printf("seen %ld\n", seen);
    close(of_main);
    close(many);
    close(timer);
}

// One of main's onto a number of the last thread's choice, and onto one that is open.
static void duplicates(void) {
    char path[] = "/tmp/duplicatesXXXXXX", text[200] = "";
    const int made = mkstemp(path), other = open("/dev/null", O_RDWR);
    int by_dup2 = -1, by_dup3 = -1, closed = -1, wrong = 0;
#pragma omp parallel
    {
        const int last = omp_get_thread_num() == omp_get_num_threads() - 1;
        if (last) {
            by_dup2 = dup2(made, 60);
            by_dup3 = dup3(made, other, O_CLOEXEC);
            wrong = dup2(59, 61) == -1 && errno == EBADF;
        }
#pragma omp barrier
        for (int i = 0; i < omp_get_num_threads(); ++i) {
            if (i == omp_get_thread_num()) {
                char word[20];
                const int length = snprintf(word, sizeof word, "%d of %d\n", i, by_dup2);
                if (write(i % 2 ? 60 : other, word, (size_t)length) != length) exit(9);
            }
#pragma omp barrier
        }
        if (last) closed = close(60);
    }
    const int has_gone = fcntl(60, F_GETFD) == -1, flag = fcntl(other, F_GETFD);
    const ssize_t length = pread(made, text, sizeof text - 1, 0);
    printf("duplicates: %d %d %d %d %d %d %zd\n%s", by_dup2, by_dup3 == other, wrong, closed,
           has_gone, flag, length, text);
    unlink(path);
}

static void send_along(int socket, int descriptor) {
    char control[CMSG_SPACE(sizeof descriptor)], byte = 'x';
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    struct cmsghdr* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof descriptor);
    memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
    if (sendmsg(socket, &message, 0) != 1) perror("sendmsg");
}

static int receive(int socket) {
    char control[CMSG_SPACE(sizeof(int))], byte;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    int descriptor = -1;
    if (recvmsg(socket, &message, 0) == 1 && message.msg_controllen > 0)
        memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof descriptor);
    return descriptor;
}

/// What the last thread does with descriptors of two nodes that one call cannot join.
static void refused(const char* what) {
    int ends[2], sockets[2];
    if (pipe(ends) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) exit(2);
    puts("begin");
    fflush(stdout);
#pragma omp parallel
    if (is_last()) {
        int own[2], own_sockets[2];
        if (pipe(own) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, own_sockets) != 0) exit(2);
        struct epoll_event wanted = {.events = EPOLLIN};
        if (strcmp(what, "onto_main") == 0) dup2(own[0], 60);
        if (strcmp(what, "onto_own") == 0) dup2(ends[0], own[0]);
        if (strcmp(what, "epoll") == 0)
            epoll_ctl(epoll_create1(0), EPOLL_CTL_ADD, ends[0], &wanted);
        if (strcmp(what, "pass") == 0) send_along(own_sockets[0], ends[0]);
        if (strcmp(what, "pass_there") == 0) send_along(sockets[0], own[0]);
        if (strcmp(what, "tee") == 0) tee(own[0], ends[1], 10, SPLICE_F_NONBLOCK);
    }
    puts("not reached");
}

/// Copies between files of two nodes, calls of several messages, of none but a path.
static void call_on_two(int of_main, const int* ends, const int* sockets) {
    const int own = temporary();
    off_t at = 10;
    off64_t from = 100, to = 5;
    tell(sendfile(own, of_main, NULL, 7000));
    tell(lseek(of_main, 0, SEEK_CUR));
    tell(sendfile(own, of_main, &at, 500));
    tell(at);
    tell(copy_file_range(of_main, &from, own, &to, 1000, 0));
    tell(from * 10000 + to);
    tell(write(ends[1], "through a pipe", 14));
    tell(splice(ends[0], NULL, own, NULL, 7, 0));
    tell(splice(ends[0], NULL, own, NULL, 100, 0));
    tell(lseek(own, 0, SEEK_CUR));
    char bytes[20], first[8], second[8];
    tell(pread(own, bytes, 14, file_bytes + 7500));
    tell(memcmp(bytes, "through a pipe", 14));
    struct iovec out[] = {{"ab", 2}, {"cde", 3}}, in[] = {{first, 8}, {second, 8}};
    struct mmsghdr sent[] = {{{.msg_iov = out, .msg_iovlen = 2}, 0},
                             {{.msg_iov = out, .msg_iovlen = 1}, 0}};
    struct mmsghdr got[] = {{{.msg_iov = in, .msg_iovlen = 1}, 0},
                            {{.msg_iov = in + 1, .msg_iovlen = 1}, 0}};
    tell(sendmmsg(sockets[0], sent, 2, 0));
    tell(recvmmsg(sockets[1], got, 2, 0, NULL));
    tell(got[0].msg_len * 10 + got[1].msg_len);
    tell(first[4] == 'e' && second[1] == 'b');
    struct iovec parts[] = {{bytes, 5}, {bytes + 5, 6}};
    tell(preadv2(of_main, parts, 2, 20, 0));
    tell(bytes[10] == 'x');
    tell(pwritev2(of_main, parts, 2, -1, 0));
    struct statx status;
    tell(statx(of_main, "", AT_EMPTY_PATH, STATX_SIZE, &status));
    tell(status.stx_size);
    tell(fchownat(of_main, "", -1, -1, AT_EMPTY_PATH));
    tell(ioctl(of_main, FIOCLEX));
    tell(fcntl(of_main, F_GETFD));
    close(own);
}

static void two_nodes(void) {
    const int of_main = temporary();
    int ends[2], sockets[2], own[2] = {-1, -1}, received = -1;
    char text[10] = "";
    if (pipe(ends) != 0 || socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets) != 0) exit(2);
    lseek(of_main, 0, SEEK_SET);
#pragma omp parallel
    {
        if (is_last()) {
            call_on_two(of_main, ends, sockets);
            // A descriptor that comes with a message is known to all, as any other of its node's.
            int pair[2];
            if (pipe(own) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) exit(2);
            send_along(pair[0], own[1]);
            received = receive(pair[1]);
        }
#pragma omp barrier
        if (is_first()) {
            fd_set wanted;
            FD_ZERO(&wanted);
            FD_SET(own[0], &wanted);
            FD_SET(ends[0], &wanted);
            struct timeval now = {0, 0};
            tell(select(FD_SETSIZE, &wanted, NULL, NULL, &now));
            tell(write(received, "received", 8));
            FD_SET(own[0], &wanted);
            tell(select(FD_SETSIZE, &wanted, NULL, NULL, &now));
            tell(read(own[0], text, 8));
            tell(strcmp(text, "received"));
        }
    }
    print_lines();
}

/// So many that they do not fit an fd_set with those of all nodes: each is a file of its own.
static void many(void) {
    enum { count = 700 };
    static int made[count];
    long sum = 0;
    struct rlimit limit = {2000, 2000};
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < 800) return;
    for (int i = 0; i < count; ++i) {
        char name[] = "many";
        made[i] = memfd_create(name, 0);
        if (write(made[i], &i, sizeof i) != sizeof i) perror("write");
    }
#pragma omp parallel for schedule(static, 1) reduction(+ : sum)
    for (int i = 0; i < count; ++i) {
        int number = -1, own = open("/dev/zero", O_RDONLY);
        if (pread(made[i], &number, sizeof number, 0) == sizeof number) sum += number == i;
        if (read(own, &number, sizeof number) == sizeof number) sum += 1000 * (number == 0);
        close(own);
    }
    for (int i = 0; i < count; ++i) close(made[i]);
    printf("many %ld\n", sum);
}

int main(int argc, char** argv) {
    if (argc > 1) refused(argv[1]);
    if (argc > 1) return 0;
    two_nodes();
    many();
    all_on_others();
    serve();
    messages();
    waits();
    duplicates();
    return 0;
}
