// SPDX-License-Identifier: BSD-3-Clause
// Role: the provider between hosts: a reliable, ordered datagram transport with a window for each
// peer; puts, gets and atomics are carried out by the target when it polls, exactly once because
// every packet is executed once and in order. Invariant: one latch guards everything; it is open
// while a message is delivered or a completion told, so that handlers may post. Nothing allocates
// from the program's heap after connect(): this runs below page faults.
//
// Files: udp_provider.cpp meets; posting.cpp takes what users post; transport.cpp polls,
// sends, receives and keeps time; execute.cpp carries out what peers ask for; sleep_control.hpp
// sleeps.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "base/latch.hpp"
#include "net/provider/address_exchange.hpp"
#include "net/provider/provider.hpp"
#include "net/provider/udp/disturbance.hpp"
#include "net/provider/udp/peer.hpp"
#include "net/provider/udp/peer_table.hpp"
#include "net/provider/udp/seals.hpp"
#include "net/provider/udp/sleep_control.hpp"
#include "net/provider/udp/socket.hpp"
#include "net/wire/address_card.hpp"

namespace hiroba::net::udp {

/// What happened to datagrams; for tests and statistics.
struct Counts {
    std::uint64_t sent = 0, received = 0;
    std::uint64_t retransmitted = 0;
    std::uint64_t seen_before = 0;  ///< duplicates and replays
    std::uint64_t refused[static_cast<std::size_t>(wire::Refusal::count)] = {};
    std::uint64_t refused_sum() const noexcept {
        std::uint64_t sum = 0;
        for (const std::uint64_t count : refused) sum += count;
        return sum;
    }
};

class UdpProvider final : public Provider {
public:
    /// @param datagram_bytes  512 to datagram_bytes_max; the way to a peer may take less
    UdpProvider(ProviderSetup setup, const Weather& weather, std::uint64_t silence_max_ns,
                std::size_t datagram_bytes = datagram_bytes_max, Secrecy secrecy = Secrecy::open);
    ~UdpProvider() override;

    const Limits& limits() const noexcept override;
    Result<RegionId> allocate(std::size_t bytes) override;
    MutableBytes local(RegionId region) noexcept override;
    std::byte* mapped(NodeId node, RegionId region) noexcept override;
    Result<void> connect() override;

    Post send(NodeId to, MessageKind kind, Urgency urgency,
              std::span<const Bytes> parts) noexcept override;
    Post put(OpId id, NodeId to, RegionId region, std::uint64_t offset,
             Bytes from) noexcept override;
    Post get(OpId id, MutableBytes to, NodeId from, RegionId region,
             std::uint64_t offset) noexcept override;
    Post atomic(OpId id, AtomicOp op, NodeId at, RegionId region, std::uint64_t offset,
                std::uint64_t operand, std::uint64_t expected,
                std::uint64_t* old) noexcept override;
    /// Requests to one peer leave together, in as few datagrams as hold them.
    std::size_t post(std::span<Work> list) noexcept override;
    std::size_t post_with_next(std::span<Work> list, bool waits) noexcept override;
    bool prepare(PreparedKick& kick) noexcept override;
    Post kick(const PreparedKick& kick, std::uint32_t offset, std::uint64_t value,
              bool more) noexcept override;
    const std::atomic<std::uint32_t>* requests_under_way() const noexcept override {
        return &requests_;
    }
    void peer_lost(NodeId peer) noexcept override;
    bool drained() noexcept override;

    std::size_t poll(Arrivals& arrivals, std::size_t count_max) noexcept override;
    void sleep(Sleeper role, std::uint64_t timeout_ns, bool (*ready)(void*),
               void* argument) noexcept override;
    void wake(NodeId node, Sleeper role) noexcept override;

    Counts counts() noexcept;
    std::uint16_t port() const noexcept { return socket_.port(); }

private:
    struct RegionMemory {
        std::byte* start = nullptr;
        std::size_t bytes = 0;
        bool own = false;
    };
    /// One poll.
    struct Delivery {
        Arrivals& arrivals;
        std::size_t count_max;
        std::size_t messages = 0;
        std::size_t events = 0;  ///< everything a waiter may have waited for
    };

    // udp_provider.cpp
    Result<void> take_memory();
    Result<void> meet(wire::DatagramCard& mine);
    Result<void> learn(const wire::DatagramCard& mine, std::uint32_t rank, Bytes card);
    std::size_t path_bytes(const Way& way) const noexcept;
    Peer* talk_to(std::uint32_t rank) noexcept;
    Peer* make_peer(std::uint32_t rank) noexcept;
    std::byte* mapped_address(std::uint32_t node, std::uint32_t region, std::uint64_t offset,
                              std::uint64_t bytes) noexcept;
    // posting.cpp
    Post begin_put(NodeId to, Bytes from, Op& op) noexcept;
    Post begin_get(NodeId from, MutableBytes to, Op& op) noexcept;
    Post begin_atomic(NodeId at, std::uint64_t* old, Op& op) noexcept;
    Post begin(const Work& work, Op& op) noexcept;
    Post post_op(NodeId to, const Op& op) noexcept;
    Post take_op(Peer& peer, const Op& op) noexcept;
    void compose_taken(Peer& peer, std::uint32_t index) noexcept;
    std::size_t take_list(std::span<Work> list, Peer*& composed) noexcept;
    bool compose_record(const Work& work, Peer& peer) noexcept;
    void keep_for_next(Peer& peer, std::size_t works) noexcept;
    Post compose_message(Peer& peer, MessageKind kind, std::span<const Bytes> parts) noexcept;
    Post send_in_parts(Peer& peer, MessageKind kind, std::span<const Bytes> parts,
                       std::size_t body_bytes) noexcept;

    // transport.cpp
    void compose(Peer& peer) noexcept;
    bool compose_answers(Peer& peer) noexcept;
    bool compose_op(Peer& peer, std::uint32_t index) noexcept;
    void transmit(Peer& peer) noexcept;
    void transmit_kept() noexcept;
    struct HeaderSpace {
        alignas(8) std::byte bytes[wire::header_bytes_max];
    };
    void repeat(Peer& peer, std::span<const Bytes> tail) noexcept;
    void follow_path(Peer& peer) noexcept;
    void acknowledge(Peer& peer) noexcept;
    void ring_bell(Peer& peer) noexcept;
    wire::DatagramHeader header_to(Peer& peer) noexcept;
    void emit(Peer& peer, Bytes datagram, std::uint64_t now_ns) noexcept;
    void receive(Delivery& delivery) noexcept;
    void receive_bell(Delivery& delivery) noexcept;
    void arrive(MutableBytes datagram, Delivery& delivery) noexcept;
    void take(MutableBytes datagram, Delivery& delivery) noexcept;
    void release_held(Delivery& delivery) noexcept;
    bool look_after(bool idle) noexcept;
    void keep_time() noexcept;
    void ask_again(Peer& peer) noexcept;
    void mark_dirty(Peer& peer) noexcept;
    void finish(std::uint32_t index) noexcept;
    void finish_arrived(Peer& peer) noexcept;
    void lose(Peer& peer) noexcept;
    void tell_finished(Delivery& delivery) noexcept;

    // execute.cpp
    void execute_front(Peer& peer, Delivery& delivery) noexcept;
    bool execute(Peer& peer, Bytes records, Delivery& delivery) noexcept;
    void carry_out(Peer& peer, const wire::WireRecord& record, Bytes payload) noexcept;
    bool take_message(Peer& peer, const wire::WireRecord& record, Bytes payload,
                      Delivery& delivery) noexcept;
    void take_answer(Peer& peer, const wire::WireRecord& record, Bytes payload) noexcept;

    ProviderSetup setup_;
    Weather weather_;
    std::uint64_t silence_max_ns_;
    std::size_t datagram_bytes_;
    std::uint64_t drawn_ = 0;
    Seals seals_;
    std::vector<RegionMemory> regions_;
    PeerTable peers_;
    std::vector<Peer*> talked_;  ///< those talked to, in the order met
    std::vector<Peer*> dirty_;
    std::vector<Peer*> kept_;  ///< those for whom post_with_next() has kept something

    Latch latch_;  ///< guards all below but sleep_
    Socket socket_;
    Disturbance out_, in_;
    std::unique_ptr<Op[]> ops_;
    OpList free_ops_, finished_;
    /// Requests in ops_ that were not told of; written under the latch, read by all that post.
    alignas(cache_line_bytes) std::atomic<std::uint32_t> requests_{0};
    Counts counts_;
    std::uint32_t delivering_ = 0;  ///< messages whose acknowledgement is owed only after this
    std::uint64_t now_ns_ = 0;      ///< of this call
    bool told_shrunk_ = false;      ///< that a path takes less
    bool any_silent_ = false;       ///< some peer's silence is to be told

    SleepControl sleep_;  ///< any thread
};

/// As ProviderSetup says; refuses a rank outside the job.
Result<std::unique_ptr<Provider>> make_udp_provider(ProviderSetup setup);

}  // namespace hiroba::net::udp
