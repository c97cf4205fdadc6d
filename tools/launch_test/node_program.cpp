// SPDX-License-Identifier: BSD-3-Clause
// Role: a node that speaks the control channel in place of the runtime. The first argument says
// what it is to do; a wrong outcome ends it with status 99 and a line.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "net/bootstrap/control_packet.hpp"
#include "net/bootstrap/job.hpp"

using hiroba::Bytes;
using hiroba::NodeId;
using hiroba::net::ControlChannel;
using hiroba::net::JobInfo;

extern int call_count;
int call_count = 1;
extern char racy_bytes[64];
char racy_bytes[64] = {1};

namespace {

struct Node {
    JobInfo job;
    ControlChannel control;
    char** words;  ///< arguments behind the name of the deed

    std::uint32_t rank() const { return job.self.value; }
    bool is(const char* word) const { return rank() == std::strtoul(word, nullptr, 10); }
};

[[noreturn]] void wrong(const char* what) {
    std::fprintf(stderr, "node_program: %s: %s\n", what, std::strerror(errno));
    std::_Exit(99);
}

void meet(Node& node) {
    if (!node.control.barrier()) wrong("barrier");
}

[[noreturn]] void wait_for_ever() {
    for (;;) ::pause();
}

int leave(Node& node, int status) {
    node.control.report_participation(node.rank() + 10, 0);
    std::fflush(stdout);
    std::_Exit(status);
}

/// Exchanges a memory file with every node and reads what each has put into its own.
int gather(Node& node) {
    for (int round = 0; round < 3; ++round) {
        const int fd = ::memfd_create("test", MFD_CLOEXEC);
        const std::uint32_t mine[2] = {node.rank(), 0x1234u + static_cast<unsigned>(round)};
        if (::write(fd, mine, sizeof mine) != sizeof mine) wrong("write");
        auto all = node.control.all_gather(std::as_bytes(std::span(mine)),
                                           round == 2 && node.rank() == 1 ? -1 : fd);
        if (!all || (*all).fds.size() != node.job.nodes) wrong("all_gather");
        for (std::uint32_t rank = 0; rank < node.job.nodes; ++rank) {
            std::uint32_t said[2], held[2] = {};
            if ((*all).bytes[rank].size() != sizeof said) wrong("size");
            std::memcpy(said, (*all).bytes[rank].data(), sizeof said);
            if (said[0] != rank || said[1] != mine[1]) wrong("bytes");
            if (round == 2 && rank == 1) {
                if ((*all).fds[rank] != -1) wrong("descriptor from nowhere");
                continue;
            }
            if (::pread((*all).fds[rank], held, sizeof held, 0) != sizeof held || held[0] != rank)
                wrong("descriptor");
            ::close((*all).fds[rank]);
        }
        ::close(fd);
        meet(node);
    }
    std::printf("rank %u of %u gathered\n", node.rank(), node.job.nodes);
    return leave(node, 0);
}

int big_gather(Node& node) {
    const std::vector<std::byte> mine(ControlChannel::gather_bytes_max,
                                      static_cast<std::byte>(node.rank()));
    auto all = node.control.all_gather(mine, -1);
    if (!all) wrong("all_gather");
    for (std::uint32_t rank = 0; rank < node.job.nodes; ++rank)
        if ((*all).bytes[rank].size() != mine.size() ||
            (*all).bytes[rank].back() != static_cast<std::byte>(rank))
            wrong("bytes");
    const std::vector<std::byte> too_big(mine.size() + 1);
    if (node.control.all_gather(too_big, -1)) wrong("too big a gather was not refused");
    return leave(node, 0);
}

int unequal_gather(Node& node) {
    const std::vector<std::byte> mine(8 + node.rank());
    const auto all = node.control.all_gather(mine, -1);
    return leave(node, 0);
}

/// status S: a whole life; rank 0 ends with S.
int status(Node& node) {
    meet(node);
    return leave(node, node.rank() == 0 ? std::atoi(node.words[0]) : 0);
}

/// killed R SIGNAL: rank R dies by the signal, the others wait.
int killed(Node& node) {
    meet(node);
    if (node.is(node.words[0])) ::raise(std::atoi(node.words[1]));
    wait_for_ever();
}

/// bereft R: rank R dies, the others print which rank they lost and wait.
int bereft(Node& node) {
    meet(node);
    if (node.is(node.words[0])) ::raise(SIGKILL);
    hiroba::net::ControlPacket packet;
    if (hiroba::net::receive_packet(node.job.control_fd, packet, true) !=
            hiroba::net::Transfer::done ||
        packet.header.kind != hiroba::net::ControlKind::lost)
        wrong("news of a loss");
    std::printf("rank %u lost %u\n", node.rank(), packet.header.rank);
    std::fflush(stdout);
    wait_for_ever();
}

/// exits R STATUS: rank R ends without a good-bye, the others wait.
int exits(Node& node) {
    meet(node);
    if (node.is(node.words[0])) std::_Exit(std::atoi(node.words[1]));
    wait_for_ever();
}

/// A worker leaves, and the kernel works for it two seconds and more.
int tidy_up(Node& node) {
    if (node.rank() == 0) return leave(node, 0);
    node.control.report_participation(1, 0);
    const std::uint64_t until_ns = hiroba::now_ns() + 2'500'000'000;
    constexpr std::size_t bytes = std::size_t{16} << 20;
    while (hiroba::now_ns() < until_ns) {
        void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (memory == MAP_FAILED) wrong("mmap");
        ::munmap(memory, bytes);
    }
    return 0;
}

int stay(Node& node) {
    meet(node);
    if (node.rank() == 0) return leave(node, 0);
    wait_for_ever();
}

/// request R STATUS: rank R asks for the end of the job.
int request(Node& node) {
    meet(node);
    if (node.is(node.words[0])) node.control.request_exit(std::atoi(node.words[1]));
    wait_for_ever();
}

/// Rank 0 prints each signal it gets; SIGTERM ends the job.
int signals(Node& node) {
    sigset_t all;
    ::sigfillset(&all);
    ::sigdelset(&all, SIGTSTP);
    // A terminal signal that reached a worker would kill it.
    for (int number : {SIGINT, SIGQUIT})
        if (node.rank() != 0) ::sigdelset(&all, number);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    std::printf("rank %u is %d\n", node.rank(), static_cast<int>(::getpid()));
    std::fflush(stdout);
    meet(node);
    if (node.rank() != 0) wait_for_ever();
    std::printf("ready\n");
    std::fflush(stdout);
    for (;;) {
        int number = 0;
        ::sigwait(&all, &number);
        std::printf("got %d\n", number);
        std::fflush(stdout);
        if (number == SIGTERM) std::_Exit(5);
    }
}

/// Prints the process id of each rank and that all are there, then waits.
int processes(Node& node) {
    std::printf("rank %u is %d\n", node.rank(), static_cast<int>(::getpid()));
    std::fflush(stdout);
    meet(node);
    if (node.rank() == 0) {
        std::printf("all there\n");
        std::fflush(stdout);
    }
    wait_for_ever();
}

/// unstoppable R: as processes(), but rank R waits for a child that never executes anything:
/// nothing but SIGKILL reaches a process in vfork(), a debugger's stop neither.
int unstoppable(Node& node) {
    if (!node.is(node.words[0])) return processes(node);
    std::printf("rank %u is %d\n", node.rank(), static_cast<int>(::getpid()));
    std::fflush(stdout);
    meet(node);
    if (::vfork() == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        wait_for_ever();
    }
    wrong("vfork came back");
}

int input(Node& node) {
    struct stat in {
    }, null{};
    ::fstat(STDIN_FILENO, &in);
    ::stat("/dev/null", &null);
    if (node.rank() != 0 && in.st_rdev != null.st_rdev) wrong("stdin is not /dev/null");
    meet(node);
    std::array<char, 4096> line{};
    if (node.rank() == 0)
        while (std::fgets(line.data(), line.size(), stdin)) std::fputs(line.data(), stdout);
    return leave(node, 0);
}

/// Whether the initial stack is laid out equally, what the user's variables become, and which
/// descriptors are open.
int environment(Node& node) {
    const std::uintptr_t places[3] = {reinterpret_cast<std::uintptr_t>(environ),
                                      reinterpret_cast<std::uintptr_t>(environ[0]),
                                      reinterpret_cast<std::uintptr_t>(&call_count)};
    auto all = node.control.all_gather(std::as_bytes(std::span(places)), -1);
    if (!all) wrong("all_gather");
    for (const auto& other : (*all).bytes)
        if (std::memcmp(other.data(), places, sizeof places) != 0) wrong("addresses differ");
    if (!std::getenv("LD_BIND_NOW") || !std::getenv("LD_PRELOAD")) wrong("not set up");
    if (!std::strstr(std::getenv("GLIBC_TUNABLES"), "glibc.pthread.rseq=0")) wrong("rseq");
    const int next = ::open("/dev/null", O_RDONLY);
    hiroba::net::restore_user_environment(environ);
    if (node.rank() == 0) {
        std::printf("threads %u next descriptor %d\n", node.job.threads_per_node, next);
        for (char** entry = environ; *entry; ++entry) std::puts(*entry);
    }
    return leave(node, 0);
}

int counts(Node& node) {
    meet(node);
    const hiroba::net::NamedCount mine[2] = {{"read_faults", 100 + node.rank()}, {"races", 0}};
    node.control.report_counts(mine, 2);
    return leave(node, 0);
}

/// races N: N places of an array, each reported by both nodes, and one variable.
int races(Node& node) {
    meet(node);
    const auto report = [&](const void* place) {
        node.control.report_race(reinterpret_cast<std::uintptr_t>(place), 4, node.job.self,
                                 NodeId{1 - node.rank()});
    };
    report(&call_count);
    for (int i = 0; i < std::atoi(node.words[0]); ++i) report(racy_bytes + i);
    const int on_stack = 0;
    report(&on_stack);
    meet(node);
    return leave(node, 0);
}

int garbage(Node& node) {
    meet(node);
    if (node.rank() == 1 &&
        ::write(node.job.control_fd, node.words[0], std::strlen(node.words[0])) < 0)
        wrong("write");
    wait_for_ever();
}

}  // namespace

int main(int argc, char** argv) {
    const std::string deed = argc > 1 ? argv[1] : "";
    if (deed == "unattached") return argc > 2 ? std::atoi(argv[2]) : 0;
    const std::map<std::string, int (*)(Node&)> deeds = {{"gather", gather},
                                                         {"big_gather", big_gather},
                                                         {"unequal_gather", unequal_gather},
                                                         {"status", status},
                                                         {"killed", killed},
                                                         {"exits", exits},
                                                         {"linger", stay},
                                                         {"tidies", tidy_up},
                                                         {"request", request},
                                                         {"signals", signals},
                                                         {"processes", processes},
                                                         {"input", input},
                                                         {"environment", environment},
                                                         {"counts", counts},
                                                         {"races", races},
                                                         {"garbage", garbage},
                                                         {"bereft", bereft},
                                                         {"unstoppable", unstoppable}};
    const auto found = deeds.find(deed);
    if (found == deeds.end()) wrong("no such deed");
    const auto job = hiroba::net::read_job_info();
    if (!job) {
        std::fprintf(stderr, "%s\n", job.error().text.c_str());
        return 98;
    }
    Node node{*job, ControlChannel(*job), argv + 2};
    return found->second(node);
}
