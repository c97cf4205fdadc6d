// SPDX-License-Identifier: BSD-3-Clause
// Role: see process_job.hpp. The parent is the launcher: it takes one packet (a byte, the node's
// bytes, perhaps a descriptor) from every node and then sends all of them to each, round by round.
#include "conformance/process_job.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "base/fatal.hpp"
#include "base/log.hpp"
#include "conformance/allowance.hpp"
#include "net/provider/registry.hpp"
#include "net/provider/sim/sim_provider.hpp"
#include "sim/sim_job.hpp"

namespace hiroba::conformance {
namespace {

constexpr std::size_t packet_bytes_max = 1024;

struct Packet {
    std::vector<std::byte> bytes;
    int fd = -1;
};

bool send_packet(int socket, Bytes bytes, int fd) {
    char mark = 'p';
    iovec pieces[2] = {{&mark, 1}, {const_cast<std::byte*>(bytes.data()), bytes.size()}};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = 2;
    if (fd >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL) >= 0;
}

/// Nothing when the other end is gone.
std::optional<Packet> receive_packet(int socket) {
    char mark = 0;
    Packet packet;
    packet.bytes.resize(packet_bytes_max);
    iovec pieces[2] = {{&mark, 1}, {packet.bytes.data(), packet.bytes.size()}};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = 2;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (received <= 0) return std::nullopt;
    packet.bytes.resize(static_cast<std::size_t>(received) - 1);
    if (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr) {
        std::memcpy(&packet.fd, CMSG_DATA(header), sizeof packet.fd);
    }
    return packet;
}

Result<net::ControlChannel::Gathered> gather(int socket, std::uint32_t nodes, Bytes mine, int fd) {
    net::ControlChannel::Gathered all;
    bool alive = send_packet(socket, mine, fd);
    for (std::uint32_t i = 0; alive && i < nodes; ++i) {
        std::optional<Packet> packet = receive_packet(socket);
        alive = packet.has_value();
        if (!alive) break;
        all.bytes.push_back(std::move(packet->bytes));
        all.fds.push_back(packet->fd);
    }
    if (!alive) return Error{ErrorKind::peer_lost, "the test's launcher is gone"};
    return all;
}

/// The parent's view of one node.
struct Child {
    pid_t pid = -1;
    int socket = -1;
    std::optional<Packet> waiting;
};

void enter_namespace(NodeId self) {
    const char* const prefix = std::getenv("HIROBA_TEST_NETNS");
    if (prefix == nullptr) return;
    const std::string path = "/run/netns/" + std::string(prefix) + std::to_string(self.value % 2);
    const int space = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (space < 0 || setns(space, CLONE_NEWNET) != 0) die(1, "%s: errno %d", path.c_str(), errno);
    close(space);
}

/// HIROBA_NET for an address of the suite: in namespaces, where no loopback leads to the other, the
/// one of the same family there.
std::string network_for(const Setting& setting, NodeId self) {
    const char* const separate = std::getenv("HIROBA_TEST_NETNS");
    return separate == nullptr ? setting.network : "fd77::" + std::to_string(1 + self.value % 2);
}

[[noreturn]] void be_node(const Setting& setting, NodeId self, int socket,
                          const std::function<void(Rig&)>& body) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    set_identity(self.value, "test");
    Rig rig{setting.provider, self, setting.nodes,
            [socket, nodes = setting.nodes](Bytes mine, int fd) {
                return gather(socket, nodes, mine, fd);
            }};
    rig.storm = setting.storm;
    rig.launcher = socket;
    if (auto set_up = set_up_diagnostics(); !set_up) die(1, "%s", set_up.error().text.c_str());
    enter_namespace(self);
    if (*setting.network != 0) setenv("HIROBA_NET", network_for(setting, self).c_str(), 1);
    if (setting.storm) {
        setenv("HIROBA_UDP_LOSS", "10", 1);
        setenv("HIROBA_UDP_DUPLICATE", "5", 1);
        setenv("HIROBA_UDP_REORDER", "30", 1);
        setenv("HIROBA_VERBS_BREAK", "500", 1);
    }
    body(rig);
    std::fflush(nullptr);
    _exit(testing::Test::HasFailure() ? 1 : 0);
}

/// The networks of the suite: the calls a card takes, and the weather.
net::sim::NetworkOptions network_of(const Setting& setting) {
    net::sim::NetworkOptions options;
    if (setting.provider == "sim_one_thread") options.calls = net::sim::Calls::one_thread;
    options.slow_calls = 20;
    if (setting.storm) {
        options.loss = 10;
        options.duplicate = 5;
        options.reorder = 30;
    }
    return options;
}

[[noreturn]] void be_every_node(const Setting& setting, const std::function<void(Rig&)>& body) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    set_identity(0, "simulation");
    net::sim::FiberStacks stacks;
    sim_test::SimJob job{stacks, setting.nodes, {}, network_of(setting)};
    const auto outcome = job.run([&](NodeId self) {
        Rig rig{setting.provider, self, setting.nodes, job.setup(self).exchange};
        rig.storm = setting.storm;
        rig.simulation = &job;
        body(rig);
    });
    EXPECT_EQ(outcome, net::sim::Scheduler::Outcome::ended) << sim_test::outcome_name(outcome);
    std::fflush(nullptr);
    _exit(testing::Test::HasFailure() ? 1 : 0);
}

/// Answers the round when every node has asked.
void answer(std::vector<Child>& children) {
    for (const Child& child : children) {
        if (!child.waiting) return;
    }
    for (const Child& to : children) {
        for (const Child& of : children) send_packet(to.socket, of.waiting->bytes, of.waiting->fd);
    }
    for (Child& child : children) {
        if (child.waiting->fd >= 0) close(child.waiting->fd);
        child.waiting.reset();
    }
}

/// Serves rounds until every node has hung up. False when `allowance` was used up first.
bool serve(std::vector<Child>& children, Allowance& allowance, std::optional<NodeId> victim) {
    constexpr int look_again_ms = 1000;
    std::vector<pid_t> processes;
    for (const Child& child : children) processes.push_back(child.pid);
    std::size_t connected = children.size();
    while (connected > 0) {
        std::vector<pollfd> polled;
        for (const Child& child : children) {
            polled.push_back({child.waiting ? -1 : child.socket, POLLIN, 0});
        }
        if (allowance.used_up(processes)) return false;
        poll(polled.data(), polled.size(), look_again_ms);
        for (std::size_t i = 0; i < children.size(); ++i) {
            if (polled[i].fd < 0 || polled[i].revents == 0) continue;
            children[i].waiting = receive_packet(children[i].socket);
            if (children[i].waiting) continue;
            close(children[i].socket);
            children[i].socket = -1;
            --connected;
            if (!victim || i != victim->value) continue;
            const std::byte rank[] = {static_cast<std::byte>(i)};
            for (const Child& other : children) {
                if (other.socket >= 0) send_packet(other.socket, rank, -1);
            }
        }
        answer(children);
        // A node that has gone can never come to a round others wait in: let them know.
        if (connected < children.size()) {
            for (Child& child : children) {
                if (child.socket < 0 || !child.waiting) continue;
                shutdown(child.socket, SHUT_RDWR);
                child.waiting.reset();
            }
        }
    }
    return true;
}

}  // namespace

bool all_rounds() {
    const char* const given = std::getenv("HIROBA_TEST_ROUNDS");
    return given != nullptr && std::string_view(given) == "all";
}

std::uint64_t times_slower() {
    const char* const given = std::getenv("HIROBA_TEST_SLOWER");
    return given == nullptr ? 1 : std::max(1ull, std::strtoull(given, nullptr, 10));
}

void run_job(const Setting& setting, const std::function<void(Rig&)>& body, unsigned seconds_max,
             std::optional<NodeId> victim) {
    if (all_rounds()) seconds_max *= 20;
    std::fflush(nullptr);
    std::vector<Child> children(setting.simulated() ? 1 : setting.nodes);
    for (std::uint32_t rank = 0; rank < children.size(); ++rank) {
        int ends[2];
        ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
        const pid_t pid = fork();
        ASSERT_GE(pid, 0);
        if (pid == 0) {
            close(ends[0]);
            for (const Child& child : children) {
                if (child.socket >= 0) close(child.socket);
            }
            if (setting.simulated()) be_every_node(setting, body);
            be_node(setting, NodeId{rank}, ends[1], body);
        }
        close(ends[1]);
        children[rank].pid = pid;
        children[rank].socket = ends[0];
    }

    Allowance allowance{seconds_max * 1'000'000'000ull, children.size(), times_slower()};
    const bool in_time = serve(children, allowance, victim);
    EXPECT_TRUE(in_time) << "nodes still running after " << seconds_max << " s of their own";
    for (const Child& child : children) {
        if (!in_time) kill(child.pid, SIGKILL);
    }
    for (std::uint32_t rank = 0; rank < children.size(); ++rank) {
        int status = 0;
        waitpid(children[rank].pid, &status, 0);
        if (children[rank].socket >= 0) close(children[rank].socket);
        const bool as_wanted = victim == NodeId{rank}
                                   ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                                   : WIFEXITED(status) && WEXITSTATUS(status) == 0;
        EXPECT_TRUE(as_wanted) << "node " << rank << " ended with status " << status;
    }
}

std::unique_ptr<net::Endpoint> Rig::open(std::uint64_t job_key) {
    std::unique_ptr<net::Provider> made;
    if (simulation != nullptr) {
        made = std::make_unique<net::sim::SimProvider>(simulation->network(),
                                                       simulation->setup(self, job_key));
    } else {
        net::ProviderSetup setup{self, nodes, job_key, exchange};
        // Even ranks are near each other, each odd one is alone on a host: neighbours are far.
        // Namespaces are told apart as hosts are.
        const bool one_host = std::getenv("HIROBA_TEST_NETNS") == nullptr;
        const bool is_mixed = provider == "auto" || provider.starts_with("shm+");
        if (is_mixed && one_host) setup.host = self.value % 2 == 0 ? 1 : 1 + self.value;
        auto result = net::make_provider(provider, std::move(setup));
        if (!result) die(1, "%s", result.error().text.c_str());
        made = std::move(*result);
    }
    if (wrap) made = wrap(std::move(made));
    auto endpoint = net::Endpoint::over(self, nodes, std::move(made));
    opened = endpoint.get();
    return endpoint;
}

void Rig::await_loss() {
    const auto news = receive_packet(launcher);
    if (!news || news->bytes.size() != 1) die(1, "the test's launcher spoke of no lost node");
    opened->provider().peer_lost(NodeId{static_cast<std::uint32_t>(news->bytes[0])});
}

std::uint64_t Rig::sleeps() const {
    if (simulation != nullptr) {
        return static_cast<net::sim::SimProvider&>(opened->provider()).sleeps();
    }
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<std::uint64_t>(usage.ru_nvcsw);
}

void Rig::meet() {
    std::atomic<bool> over{false};
    Thread carrier;
    if (opened != nullptr && !opened->provider().limits().completes_inline) {
        carrier = Thread{[&] { opened->wait_until([&] { return over.load(); }); }};
    }
    const auto met = exchange({}, -1);
    if (!met) die(1, "%s", met.error().text.c_str());
    over = true;
    if (!carrier.joinable()) return;
    opened->wake_local();
    carrier.join();
}

}  // namespace hiroba::conformance
