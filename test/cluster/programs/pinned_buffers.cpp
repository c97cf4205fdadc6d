// SPDX-License-Identifier: BSD-3-Clause
// A thread is in a system call on pages that other threads go on writing next to the buffer: the
// pages become stale in the middle of the call, and the call must not notice.
#include <omp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <thread>

namespace {

constexpr int pages = 16;
constexpr int half = 2048;

/// The first half of each page belongs to the kernel, the second to the threads of the regions.
struct Page {
    char buffer[half];
    int counter[half / sizeof(int)];
};
alignas(4096) Page shared[pages];

void write_beside(int round) {
#pragma omp parallel
    if (omp_get_thread_num() == omp_get_num_threads() - 1) {
        for (Page& page : shared) page.counter[0] = round;
    }
}

int wrong_counters(int round) {
    int wrong = 0;
    for (const Page& page : shared) wrong += page.counter[0] != round;
    return wrong;
}

}  // namespace

int main() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 2;
    constexpr int rounds = 20;
    char sent[pages * half];
    for (int round = 1; round <= rounds; ++round) {
        std::memset(sent, round, sizeof sent);
        ssize_t got = 0;
        int error = 0;
        std::thread reader([&] {
            iovec vector[pages];
            for (int i = 0; i < pages; ++i) vector[i] = {shared[i].buffer, half};
            msghdr message{};
            message.msg_iov = vector;
            message.msg_iovlen = pages;
            got = recvmsg(ends[1], &message, MSG_WAITALL);
            error = got < 0 ? errno : 0;
        });
        // The first half lets the call begin for certain before the pages become stale.
        if (write(ends[0], sent, half) != half) return 3;
        for (int i = 0; i < 5; ++i) write_beside(100 * round + i);
        if (write(ends[0], sent + half, sizeof sent - half) != sizeof sent - half) return 4;
        reader.join();
        int wrong = 0;
        for (const Page& page : shared) {
            for (const char byte : page.buffer) wrong += byte != round;
        }
        std::printf("round %d: %zd bytes, errno %d, %d wrong, counters %d\n", round, got, error,
                    wrong, wrong_counters(100 * round + 4));
    }
}
