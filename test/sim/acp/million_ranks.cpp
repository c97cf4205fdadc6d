// SPDX-License-Identifier: BSD-3-Clause
// Role: measures what one rank of 2^20 holds that talks to 16 others, over the udp provider: all
// parts, as the paper's table 6 has them. Seventeen ranks are processes; of the others only their
// addresses exist, which the meeting makes up. Fails when it is more than 16 MiB.
// Source: ACP basic layer, tables 5 and 6.
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>

#include "base/fatal.hpp"
#include "net/provider/udp/udp_provider.hpp"
#include "sim/acp/acp_rank.hpp"

namespace hiroba::sim_test {
namespace {

constexpr std::uint32_t ranks = gas::AddressLayout::nodes_max, talked_to = 16;
constexpr std::uint32_t ranks_of_host = 64;
constexpr std::uint64_t starter_bytes = 65536;
constexpr long kib_max = 16 * 1024;

/// The measured rank is number 0 of those that exist.
constexpr std::uint32_t rank_of(std::uint32_t number) { return number * 61'681 + 5; }

/// What the processes share while they meet.
struct Meeting {
    net::wire::DatagramCard cards[talked_to + 1];
    std::atomic<std::uint32_t> arrived{0};
    std::atomic<bool> someone_learns{false};  ///< the cards of all take 200 MB: one after the other
    std::atomic<bool> over{false};
};

/// Sixteen processes wait for one that works: they leave it the processor.
template <class Ready>
void wait_until(Ready&& ready) {
    while (!ready()) ::usleep(1000);
}

/// As the launcher would answer: the cards of all ranks.
net::ControlChannel::Gathered gather(Meeting& meeting, std::uint32_t number, Bytes mine) {
    std::memcpy(static_cast<void*>(&meeting.cards[number]), mine.data(), mine.size());
    ++meeting.arrived;
    wait_until([&] { return meeting.arrived == talked_to + 1; });
    wait_until([&] { return !meeting.someone_learns.exchange(true); });
    net::ControlChannel::Gathered all;
    all.bytes.reserve(ranks);
    net::wire::DatagramCard card = meeting.cards[number];
    card.host ^= 1;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        const std::uint32_t host = rank / ranks_of_host;
        const std::uint8_t address[] = {10, std::uint8_t(host >> 16), std::uint8_t(host >> 8),
                                        std::uint8_t(host)};
        std::memcpy(card.address, address, sizeof address);
        card.port = static_cast<std::uint16_t>(20'000 + rank % ranks_of_host);
        card.common.node = rank;
        card.drawn = rank * 0x9e37'79b9'7f4a'7c15u;
        const Bytes bytes = std::as_bytes(std::span(&card, 1));
        all.bytes.emplace_back(bytes.begin(), bytes.end());
    }
    for (std::uint32_t other = 0; other <= talked_to; ++other) {
        std::memcpy(all.bytes[rank_of(other)].data(), &meeting.cards[other], sizeof card);
    }
    return all;
}

std::unique_ptr<net::Endpoint> open_endpoint(Meeting& meeting, std::uint32_t number) {
    net::ProviderSetup setup{
        .self = NodeId{rank_of(number)},
        .nodes = ranks,
        .job_key = 0x5eed,
        .exchange =
            [&meeting, number](Bytes mine, int) {
                return Result<net::ControlChannel::Gathered>(gather(meeting, number, mine));
            },
        .network = "127.0.0.1"};
    return net::Endpoint::over(
        NodeId{rank_of(number)}, ranks,
        std::make_unique<net::udp::UdpProvider>(std::move(setup), net::udp::Weather{},
                                                std::uint64_t{60'000'000'000}));
}

void connect(Meeting& meeting, AcpRank& rank) {
    if (!rank.connect())
        die(exit_environment, "rank %u did not connect", rank.endpoint().self().value);
    malloc_trim(0);  // what the meeting took is free again
    meeting.someone_learns = false;
}

/// One of those talked to: carries out what it is asked for.
[[noreturn]] void serve(Meeting& meeting, std::uint32_t number) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    AcpRank rank{open_endpoint(meeting, number), starter_bytes};
    connect(meeting, rank);
    rank.endpoint().wait_until([&] { return meeting.over.load(); });
    _exit(0);
}

/// Private and shared memory that is resident, in KiB.
long resident_kib() {
    long kib = 0, value = 0;
    char line[200];
    std::FILE* const file = std::fopen("/proc/self/status", "r");
    while (std::fgets(line, sizeof line, file) != nullptr) {
        if (std::sscanf(line, "RssAnon: %ld", &value) == 1) kib += value;
        if (std::sscanf(line, "RssShmem: %ld", &value) == 1) kib += value;
    }
    std::fclose(file);
    return kib;
}

class Table {
public:
    Table() : before_(resident_kib()) {}
    void row(const char* what) {
        const long now = resident_kib() - before_;
        std::printf("%-58s %8ld KiB %+8ld\n", what, now, now - last_);
        last_ = now;
    }
    long last() const { return last_; }

private:
    long before_, last_ = 0;
};

/// `count` copies of 8 bytes to the ranks that exist, in turn, at most `together` at a time.
void copy_to_all(AcpRank& rank, std::uint32_t count, std::uint32_t together) {
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint32_t to = rank_of(1 + i % talked_to);
        const auto handle =
            rank.copy(rank.address(to, 8 * (i % 1024)), rank.address(rank_of(0), 0), 8, {});
        if ((i + 1) % together == 0) rank.complete(handle);
    }
    rank.complete(rank.last_handle());
}

int measure(Meeting& meeting) {
    resident_kib();
    malloc_trim(0);
    Table table;
    AcpRank rank{open_endpoint(meeting, 0), starter_bytes};
    table.row("stations, registrations, starter memory, not connected");
    connect(meeting, rank);
    table.row("connected: addresses and numbers of 1,048,576 ranks");
    std::thread service{[&] { rank.endpoint().serve(); }};
    copy_to_all(rank, talked_to, 1);
    table.row("a service thread; 16 ranks talked to");
    copy_to_all(rank, 10'000, 1);
    table.row("10,000 copies of 8 bytes to them, one at a time");
    copy_to_all(rank, 20'000, acp::CommandStation::capacity);
    table.row("20,000, as many at once as the command queue holds");
    std::memset(rank.at(0), 1, starter_bytes);
    table.row("all 64 KiB of starter memory written");
    rank.endpoint().stop();
    service.join();
    return table.last() <= kib_max ? 0 : 1;
}

}  // namespace
}  // namespace hiroba::sim_test

int main() {
    using namespace hiroba::sim_test;
    alarm(500);
    void* const shared =
        mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return 78;
    auto& meeting = *new (shared) Meeting;
    for (std::uint32_t number = 1; number <= talked_to; ++number) {
        if (fork() == 0) serve(meeting, number);
    }
    const int status = measure(meeting);
    meeting.over = true;
    while (wait(nullptr) > 0) {
    }
    std::printf("%s\n", status == 0 ? "at most 16 MiB" : "MORE THAN 16 MiB");
    return status;
}
