// SPDX-License-Identifier: BSD-3-Clause
// Role: the provider over UCX: puts, gets and atomics are UCP's one-sided operations, messages its
// active messages; which wire that is (verbs, tcp, shared memory) UCX chooses.
// Invariant: one latch guards the worker and everything here; it is open while a message is
// delivered or a completion told, so that handlers may post. A put is done when a flush behind it
// is: UCP's own completion says only that its buffer is free. One flush at a time goes to a peer,
// for all puts before it; those that come meanwhile share the next. Atomics are the target's
// processor's (UCX_ATOMIC_MODE=cpu): its own threads use the same words.
//
// UCX allocates as it likes, in memory private to the node, and so does this file for messages.
//
// Memory that a device pins is registered by chunks on first use; who needs the key of a chunk asks
// its node by a message, and what waits for it is posted when the answer comes.
//
// Files: ucx_provider.cpp meets; ucx_posting.cpp posts; ucx_memory registers, and keeps keys;
// ucx_progress.cpp polls, delivers and sleeps.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "base/latch.hpp"
#include "net/provider/address_exchange.hpp"
#include "net/provider/poll_watch.hpp"
#include "net/provider/provider.hpp"
#include "net/provider/sleepers.hpp"
#include "net/provider/ucx/make_ucx_provider.hpp"
#include "net/provider/ucx/ucp_library.hpp"
#include "net/provider/ucx/ucx_memory.hpp"

namespace hiroba::net::ucx {

class UcxProvider final : public Provider {
public:
    static constexpr std::size_t message_bytes_max = std::size_t{64} << 10;

    /// @param silence_max_s  after which a peer that answers nothing, or whose connection broke, is
    /// told as silent; 0: never
    UcxProvider(ProviderSetup setup, const UcpLibrary& ucp, std::uint64_t silence_max_s);
    ~UcxProvider() override;

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
    void peer_lost(NodeId peer) noexcept override;
    bool drained() noexcept override;

    std::size_t poll(Arrivals& arrivals, std::size_t count_max) noexcept override;
    void sleep(Sleeper role, std::uint64_t timeout_ns, bool (*ready)(void*),
               void* argument) noexcept override;
    void wake(NodeId node, Sleeper role) noexcept override;

private:
    struct Op;
    struct Peer {
        UcxProvider* provider = nullptr;
        std::vector<std::byte> card;         ///< its address and keys, as it sent them
        std::span<const std::byte> address;  ///< in `card`
        PeerKeys keys;                       ///< to its regions
        ucp_ep_h endpoint = nullptr;
        std::uint32_t sends = 0;  ///< that UCX has not taken over yet
        bool unflushed = false;   ///< something was sent since the last flush began
        bool flushing = false;
        std::vector<Op*> waiting;      ///< for a key
        std::vector<Op*> puts;         ///< posted since the last flush began
        std::vector<Op*> puts_before;  ///< posted before the flush under way
        bool flushing_puts = false;
        bool dies_untold =
            false;            ///< over wires that report no error: the endpoint is never closed
        bool broken = false;  ///< UCX has reported an error; to become gone
        bool gone = false;    ///< its connection broke; whether it is lost others say
        bool lost = false;
        std::uint64_t silent_at_ns = 0;  ///< to be told then, if this node is still there; 0: not
    };
    /// A put, get or atomic on its way.
    struct Op {
        UcxProvider* provider = nullptr;
        OpId id{};
        NodeId peer{};
        Work::Kind kind{};
        AtomicOp op{};
        bool in_use = false;
        bool waiting = false;  ///< for a key: in Peer::waiting
        bool parked = false;   ///< its peer is gone: nothing is told yet
        bool told = false;     ///< as failed, before UCX has called back,
        bool queued = false;   ///< or about to be
        bool failed = false;
        std::uint32_t under_way = 0;  ///< UCX will call back so many times
        std::uint32_t region = 0;
        std::uint64_t offset = 0;
        std::byte* memory = nullptr;
        std::size_t bytes = 0, posted = 0;
        std::uint64_t operand = 0, result = 0;
        std::uint64_t* old = nullptr;
        Op* next = nullptr;
    };
    /// A message that has come or is to go, with its bytes behind it.
    struct Message {
        Message* next;
        UcxProvider* provider;
        Peer* peer;
        std::size_t bytes;  ///< header included
        std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
    };
    /// Before the body of each active message.
    struct Header {
        std::uint32_t from;
        std::uint8_t kind;
        std::uint8_t urgency;
        std::uint16_t unused;
    };
    /// What providers say to each other, and the bytes of a key behind it.
    struct Word {
        bool is_answer = false;
        std::uint32_t region = 0, chunk = 0;
        ucs_status_t status = UCS_OK;  ///< why there is no key
    };
    template <class T>
    struct Queue {
        T* first = nullptr;
        T* last = nullptr;
        void push(T* item) noexcept;
        T* pop() noexcept;
        bool empty() const noexcept { return first == nullptr; }
    };

    // ucx_provider.cpp
    Result<void> open_worker();
    Result<void> take_memory();
    Result<std::vector<std::byte>> make_card();
    Result<void> learn(Peer& peer, std::uint32_t rank);
    Error wrong(const char* call, ucs_status_t status) const;
    bool open_endpoint(Peer& peer) noexcept;
    std::byte* own_place(RegionId region, std::uint64_t offset, std::size_t bytes) noexcept;

    // ucx_posting.cpp
    Op* take_op(const Op& wanted) noexcept;
    void give_op(Op* op) noexcept;
    Post post_op(const Op& wanted) noexcept;
    void advance(Op& op) noexcept;
    ucs_status_t start(Peer& peer, ucp_rkey_h key, Op& op, std::size_t bytes) noexcept;
    void flush_puts(Peer& peer) noexcept;
    Message* make_message(Peer* peer, std::uint8_t kind, Urgency urgency,
                          std::span<const Bytes> parts) noexcept;
    Post send_bytes(Peer& peer, Message* message, bool is_bounded) noexcept;
    void tell_peer(Peer& peer, const Word& word, Bytes key) noexcept;
    void take_word(Message& message) noexcept;

    // ucx_progress.cpp
    static void on_op_done(void* request, ucs_status_t status, void* op) noexcept;
    static void on_sent(void* request, ucs_status_t status, void* message) noexcept;
    static void on_puts_flushed(void* request, ucs_status_t status, void* peer) noexcept;
    static void on_flushed(void* request, ucs_status_t status, void* peer) noexcept;
    static void on_closed(void* request, ucs_status_t status, void* provider) noexcept;
    static void on_error(void* peer, ucp_ep_h endpoint, ucs_status_t status) noexcept;
    static ucs_status_t on_message(void* provider, const void* header, std::size_t header_bytes,
                                   void* data, std::size_t bytes,
                                   const ucp_am_recv_param_t* param) noexcept;
    void op_done(Op* op, ucs_status_t status) noexcept;
    void end_puts(Peer& peer, ucs_status_t status) noexcept;
    void finish(Op* op) noexcept;
    void park_waiting(Peer& peer) noexcept;
    void lose(Peer& peer) noexcept;
    void leave_broken() noexcept;
    void close_endpoint(Peer& peer) noexcept;
    void tell_silent(Arrivals& arrivals) noexcept;
    bool anything_to_do() noexcept;

    static constexpr std::size_t ops_max = 4096;
    static constexpr std::uint32_t sends_max = 1024;  ///< under way to one peer
    static constexpr unsigned message_id = 1;
    /// MessageKind of nothing but a wake-up, and of a Word.
    static constexpr std::uint8_t bell = 0xff, word_kind = 0xfe;

    ProviderSetup setup_;
    const UcpLibrary& ucp_;
    std::uint64_t silence_max_s_;
    Limits limits_;
    std::vector<std::size_t> wanted_;  ///< bytes of regions
    OwnMemory regions_;
    std::vector<Peer> peers_;  ///< empty before connect(), then of fixed size
    ucp_context_h context_ = nullptr;
    ucp_worker_h worker_ = nullptr;
    int event_fd_ = -1;

    Latch latch_;  ///< guards all below, the worker, and what changes of peers_
    std::unique_ptr<Op[]> ops_;
    Op* free_ops_ = nullptr;
    Queue<Op> finished_;
    Queue<Message> arrived_;
    Queue<Message> words_;
    std::vector<Peer*> to_flush_;                       ///< whose puts came during a flush
    std::size_t bells_ = 0;                             ///< that rang since the last poll
    bool any_broken_ = false;                           ///< some peer has become gone
    std::uint64_t next_silent_ns_ = ~std::uint64_t{0};  ///< the earliest silent_at_ns
    Sleepers sleepers_[2];                              ///< by role
    PollWatch watch_;
};

}  // namespace hiroba::net::ucx
