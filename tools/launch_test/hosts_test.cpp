// SPDX-License-Identifier: BSD-3-Clause
// What is refused before a host is asked, and the start-up packet. Jobs over hosts: test/cluster.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "tools/hosts/call_launcher.hpp"
#include "tools/hosts/host_list.hpp"
#include "tools/hosts/rendezvous.hpp"
#include "tools/hosts/startup_packet.hpp"
#include "tools/launch_test/command.hpp"

namespace hiroba::tools {
namespace {

using namespace std::chrono_literals;

std::string refusal(const std::string& words, std::uint32_t nodes = 0) {
    const auto hosts = parse_hosts(words, nodes);
    if (hosts) return "not refused";
    EXPECT_EQ(hosts.error().kind, ErrorKind::usage);
    return hosts.error().text;
}

TEST(HostList, RanksFillTheHostsInOrder) {
    const auto hosts = parse_hosts("a,b:2,[::1]:3", 0);
    ASSERT_TRUE(hosts);
    ASSERT_EQ(hosts->size(), 3u);
    EXPECT_EQ((*hosts)[1].name, "b");
    EXPECT_EQ((*hosts)[1].first_rank, 1u);
    EXPECT_EQ((*hosts)[1].nodes, 2u);
    EXPECT_EQ((*hosts)[2].name, "::1");
    EXPECT_EQ((*hosts)[2].first_rank, 3u);
    EXPECT_EQ((*hosts)[2].nodes, 3u);
}

TEST(HostList, FewerNodesThanPlacesLeaveTheLastHostsOut) {
    const auto hosts = parse_hosts("a:2,b:2,c:2", 3);
    ASSERT_TRUE(hosts);
    ASSERT_EQ(hosts->size(), 2u);
    EXPECT_EQ((*hosts)[1].nodes, 1u);
}

TEST(HostList, WrongWordsAreNamed) {
    EXPECT_NE(refusal("a,b,a").find("names a twice"), std::string::npos);
    EXPECT_NE(refusal("a:0").find("0 nodes: wanted a whole number from 1 to 1024"),
              std::string::npos);
    EXPECT_NE(refusal("a:x").find("x nodes"), std::string::npos);
    EXPECT_NE(refusal("a:").find("no number of nodes"), std::string::npos);
    EXPECT_NE(refusal("a,,b").find("\"\" is no name of a host"), std::string::npos);
    EXPECT_NE(refusal("a,").find("is no name of a host"), std::string::npos);
    EXPECT_NE(refusal("-oProxyCommand=x").find("is no name of a host"), std::string::npos);
    EXPECT_NE(refusal("a;reboot").find("is no name of a host"), std::string::npos);
    EXPECT_NE(refusal("a:2,b", 4).find("has places for 3 nodes, -n asks for 4"), std::string::npos);
    EXPECT_NE(refusal("a:600,b:600").find("makes 1200 nodes; at most 1024"), std::string::npos);
}

struct Pipe {
    Pipe() { EXPECT_EQ(::pipe(ends), 0); }
    ~Pipe() {
        ::close(ends[0]);
        stop();
    }
    void write(const std::string& text) const {
        EXPECT_EQ(::write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
    void stop() {
        if (ends[1] >= 0) ::close(ends[1]);
        ends[1] = -1;
    }
    int ends[2];
};

StartupPacket sample() {
    StartupPacket packet;
    packet.host = "b";
    packet.host_index = 1;
    packet.job.key = ~std::uint64_t{0};
    packet.plan.nodes = 3;
    packet.plan.first_rank = 1;
    packet.plan.local_nodes = 2;
    packet.plan.spmd = true;
    packet.plan.command = {"./a", "two words", "line\nline", ""};
    packet.directory = "/";
    packet.environment = {"A=1\n2", "B="};
    return packet;
}

TEST(StartupPacket, ArrivesAsItWasWrittenAndNotAByteMoreIsRead) {
    const Pipe pipe;
    pipe.write(write_startup_packet(sample()) + "input");
    const auto packet = read_startup_packet(pipe.ends[0], 1000);
    ASSERT_TRUE(packet) << packet.error().text;
    EXPECT_EQ(packet->host, "b");
    EXPECT_EQ(packet->job.key, ~std::uint64_t{0});
    EXPECT_EQ(packet->plan.local_nodes, 2u);
    EXPECT_TRUE(packet->plan.spmd);
    EXPECT_EQ(packet->plan.command, sample().plan.command);
    EXPECT_EQ(packet->environment, sample().environment);
    char rest[16] = {};
    EXPECT_EQ(::read(pipe.ends[0], rest, sizeof rest), 5);
    EXPECT_STREQ(rest, "input");
}

std::string refusal_of_startup_packet(const std::string& text) {
    Pipe pipe;
    pipe.write(text);
    pipe.stop();
    const auto packet = read_startup_packet(pipe.ends[0], 1000);
    if (packet) return "not refused";
    EXPECT_EQ(packet.error().kind, ErrorKind::environment);
    return packet.error().text;
}

TEST(StartupPacket, OfAnotherBuildIsRefusedByBothNames) {
    const std::string text = write_startup_packet(sample());
    const std::string own = own_build_id();
    ASSERT_NE(own, "none");
    std::string changed = text;
    changed.replace(changed.find(own), own.size(), "cafe");
    const std::string refused = refusal_of_startup_packet(changed);
    EXPECT_NE(refused.find("build " + own + ", the launcher's is cafe"), std::string::npos)
        << refused;
}

TEST(StartupPacket, WhatIsNoneOrCutOrGarbledIsRefused) {
    const std::string text = write_startup_packet(sample());
    EXPECT_NE(refusal_of_startup_packet("").find("standard input ended"), std::string::npos);
    EXPECT_NE(refusal_of_startup_packet("GET / HTTP/1.1\n").find("is no start-up packet"),
              std::string::npos);
    EXPECT_NE(refusal_of_startup_packet(text.substr(0, text.size() - 1)).find("is cut"),
              std::string::npos);
    std::string garbled = text;
    garbled[garbled.find('\n') + 1] = 'x';
    EXPECT_NE(refusal_of_startup_packet(garbled).find("garbled"), std::string::npos);
}

/// A connection to `port` of this host.
int call(std::uint16_t port) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(port);
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
    return socket;
}

TEST(Rendezvous, LetsInWhoKnowsTheKeyAndNobodyElse) {
    constexpr net::wire::HashKey key{1, 2}, wrong{1, 3};
    auto rendezvous = Rendezvous::open(key);
    ASSERT_TRUE(rendezvous);
    const int garbage = call(rendezvous->port());
    EXPECT_EQ(::send(garbage, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 18);
    const int silent = call(rendezvous->port());
    net::HostLink stranger(call(rendezvous->port()), wrong), agent(call(rendezvous->port()), key);

    const net::HelloBody hello{7, 8};
    std::list<Arrival> arrivals;
    bool said = false;
    for (int round = 0; round < 1000 && arrivals.empty(); ++round) {
        arrivals = rendezvous->serve(now_ns());
        stranger.receive();
        agent.receive();
        if (said || !stranger.met() || !agent.met()) continue;
        stranger.send({net::HostKind::hello, 0, 0}, std::as_bytes(std::span(&hello, 1)));
        agent.send({net::HostKind::hello, 0, 5}, std::as_bytes(std::span(&hello, 1)));
        said = true;
    }
    ASSERT_EQ(arrivals.size(), 1u);
    EXPECT_EQ(arrivals.front().host_index, 5u);
    EXPECT_EQ(arrivals.front().hello.host, 7u);
    EXPECT_FALSE(stranger.authentic());
    // A stranger that only holds the line is dropped when its time is over.
    EXPECT_TRUE(rendezvous->serve(now_ns() + Rendezvous::stranger_limit_ns + 1).empty());
    std::vector<pollfd> entries;
    rendezvous->add_poll_entries(entries);
    EXPECT_EQ(entries.size(), 1u);
    ::close(garbage);
    ::close(silent);
}

/// An address of the launcher's: welcomes who calls there, after a time, or never.
class Address {
public:
    /// @param port  0: any, which port() then tells
    Address(std::uint32_t last_byte, std::uint16_t port) {
        name_.sin_family = AF_INET;
        name_.sin_port = htons(port);
        name_.sin_addr.s_addr = htonl(0x7f'00'00'00 + last_byte);
        socklen_t bytes = sizeof name_;
        auto* const generic = reinterpret_cast<sockaddr*>(&name_);
        EXPECT_EQ(::bind(socket_, generic, bytes), 0);
        EXPECT_EQ(::listen(socket_, 4), 0);
        EXPECT_EQ(::getsockname(socket_, generic, &bytes), 0);
    }
    ~Address() {
        over_ = true;
        if (server_.joinable()) server_.join();
        ::close(socket_);
    }
    Address(Address&&) = delete;

    std::uint16_t port() const { return ntohs(name_.sin_port); }
    void welcome_after(std::chrono::milliseconds time, net::wire::HashKey key) {
        server_ = std::thread([this, time, key] { serve(time, key); });
    }

private:
    void serve(std::chrono::milliseconds time, net::wire::HashKey key) {
        std::optional<net::HostLink> caller;
        std::optional<std::uint64_t> due_ns;
        while (!over_) {
            if (!caller) {
                const int socket = ::accept(socket_, nullptr, nullptr);
                if (socket >= 0) caller.emplace(socket, key);
            }
            if (caller) caller->receive();
            if (caller && caller->met() && !due_ns) {
                due_ns = now_ns() + static_cast<std::uint64_t>(time / 1ns);
            }
            if (due_ns && now_ns() >= *due_ns) {
                caller->send({net::HostKind::welcome, 0, 0});
                due_ns = ~std::uint64_t{0};
            }
            std::this_thread::sleep_for(1ms);
        }
    }

    const int socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_in name_{};
    std::atomic<bool> over_{false};
    std::thread server_;
};

/// Which of 127.0.0.2 and 127.0.0.3 is taken when they welcome after these times.
std::string taken(std::chrono::milliseconds first_after, std::chrono::milliseconds second_after,
                  std::vector<std::string> callers = {"127.0.0.2", "127.0.0.3"}) {
    Address first(2, 0), second(3, first.port());
    StartupPacket packet;
    packet.callers = std::move(callers);
    packet.port = first.port();
    first.welcome_after(first_after, {packet.job.key, packet.job.key_high});
    second.welcome_after(second_after, {packet.job.key, packet.job.key_high});
    const auto link = call_launcher(packet, 20'000);
    return link ? link->peer_address() : link.error().text;
}

TEST(CallLauncher, TakesTheFirstAddressOfThoseThatAllWork) {
    ::unsetenv("SSH_CONNECTION");
    EXPECT_EQ(taken(0ms, 0ms), "127.0.0.2");
    EXPECT_EQ(taken(20ms, 0ms), "127.0.0.2");
    EXPECT_EQ(taken(0ms, 20ms), "127.0.0.2");
}

TEST(CallLauncher, PassesOverAnAddressThatDoesNotAnswer) {
    ::unsetenv("SSH_CONNECTION");
    EXPECT_EQ(taken(1h, 0ms), "127.0.0.3");
    // No socket listens at .4.
    EXPECT_EQ(taken(0ms, 0ms, {"127.0.0.4", "127.0.0.3"}), "127.0.0.3");
}

TEST(CallLauncher, PrefersTheAddressThatSshCameFrom) {
    ::setenv("SSH_CONNECTION", "127.0.0.3 40000 127.0.0.9 22", 1);
    EXPECT_EQ(taken(0ms, 20ms), "127.0.0.3");
    // What is none of the launcher's addresses is left over from another login, or translated.
    EXPECT_EQ(taken(20ms, 0ms, {"127.0.0.2"}), "127.0.0.2");
    EXPECT_EQ(taken(0ms, 0ms, {"127.0.0.4"}), "127.0.0.3");
    ::unsetenv("SSH_CONNECTION");
}

Outcome outcome_on_hosts(std::vector<std::string> words, std::vector<std::string> variables = {}) {
    std::vector<std::string> all = {stage("bin/hiroba"), "run"};
    all.insert(all.end(), words.begin(), words.end());
    all.push_back(stage("programs/launch_node"));
    Command::Options options;
    options.variables = std::move(variables);
    return outcome_of(all, options);
}

void expect_refused(const Outcome& outcome, int status, const std::string& line) {
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_NE(outcome.err.find(line), std::string::npos) << outcome.err;
    EXPECT_EQ(occurrences(outcome.err, "hiroba: "), 1u) << outcome.err;
}

TEST(Hosts, ACommandThatCannotServeIsNamedWithItsHost) {
    expect_refused(outcome_on_hosts({"--hosts", "b", "--ssh", "/nonexistent/ssh"}), 78,
                   "cannot execute /nonexistent/ssh");
    expect_refused(outcome_on_hosts({"--hosts", "b", "--ssh", "false"}), 78,
                   "host b: `false b` ended with status 1 before an agent came from there");
    expect_refused(outcome_on_hosts({"--hosts", "b", "--ssh", " "}), 64, "--ssh names no command");
}

TEST(Hosts, AHostThatDoesNotAnswerIsWaitedForAsLongAsWasSaid) {
    const Outcome outcome = outcome_on_hosts({"--hosts", "5", "--ssh", "/bin/tail -f /dev/null -n"},
                                             {"HIROBA_HOST_TIMEOUT=1"});
    EXPECT_LT(outcome.took_ns, 5'000'000'000u);
    expect_refused(outcome, 78, "no agent came from host 5 within 1 s");
}

TEST(Hosts, AWorkingDirectoryThatIsGoneIsRefusedBeforeAHostIsAsked) {
    const std::string gone = ::testing::TempDir() + "gone" + std::to_string(::getpid());
    const std::string script = "mkdir " + gone + " && cd " + gone + " && rmdir " + gone +
                               " && exec " + stage("bin/hiroba") +
                               " run --hosts b --ssh /nonexistent/ssh true";
    expect_refused(outcome_of({"/bin/sh", "-c", script}), 78,
                   "the working directory cannot be found: No such file or directory. Start the "
                   "job in a directory that every host has");
}

TEST(Hosts, WordsThatContradictAreRefused) {
    expect_refused(outcome_on_hosts({"--hosts", "a,b", "-n", "3"}), 64, "-n asks for 3");
    expect_refused(outcome_on_hosts({"--hosts", "a,a"}), 64, "names a twice");
    expect_refused(outcome_on_hosts({"--hosts", "a,b"}, {"HIROBA_PROVIDER=shm"}), 64,
                   "HIROBA_PROVIDER=shm reaches no other host");
    expect_refused(outcome_of({stage("bin/hiroba"), "agent"}), 78,
                   "hiroba agent is started by hiroba run --hosts alone");
}

}  // namespace
}  // namespace hiroba::tools
