// SPDX-License-Identifier: BSD-3-Clause
// Role: the provider over libibverbs: puts, gets and atomics are RDMA, messages sends. No code of
// the target runs for what is one-sided, but when memory is first used by anybody (its chunk is
// pinned then) and for atomics on regions whose words the target's own processor changes.
// Kicks are messages, inline and in order with what windows send before them as messages; a write
// would overtake those.
// Invariant: for each region all nodes agree, at connect(), whose atomics change its words: the
// devices', own words included, or the processors'; never both.
//
// Files: device (a port and what it is asked for), meeting (connections on first use), send_queue
// (requests, lists, completions), lane (puts, gets, atomics), messages (messages), pinned_regions
// (memory and keys); verbs_provider.cpp meets and posts; verbs_progress.cpp polls and sleeps.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "net/provider/address_exchange.hpp"
#include "net/provider/poll_watch.hpp"
#include "net/provider/provider.hpp"
#include "net/provider/sleepers.hpp"
#include "net/provider/verbs/lane.hpp"
#include "net/provider/verbs/make_verbs_provider.hpp"
#include "net/provider/verbs/meeting.hpp"
#include "net/provider/verbs/message_queue.hpp"

namespace hiroba::net::verbs {

class VerbsProvider final : public Provider, private LaneHost {
public:
    static constexpr std::size_t message_bytes_max = std::size_t{64} << 10;

    /// @param silence_max_s  after which a peer that answers nothing, or whose connection broke, is
    /// told as silent; 0: never
    /// @param break_after  requests after which a connection breaks, for tests; 0: never
    VerbsProvider(ProviderSetup setup, std::unique_ptr<Device> device, std::uint32_t lanes,
                  std::uint64_t silence_max_s, std::uint32_t break_after);
    ~VerbsProvider() override;

    const Limits& limits() const noexcept override;
    Result<RegionId> allocate(std::size_t bytes) override;
    void processor_atomics(RegionId region) noexcept override;
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
    std::size_t post(std::span<Work> list) noexcept override;
    void peer_lost(NodeId peer) noexcept override;
    bool drained() noexcept override;

    std::size_t poll(Arrivals& arrivals, std::size_t count_max) noexcept override;
    std::size_t poll_own(Arrivals& arrivals, std::size_t count_max) noexcept override;
    void sleep(Sleeper role, std::uint64_t timeout_ns, bool (*ready)(void*),
               void* argument) noexcept override;
    void wake(NodeId node, Sleeper role) noexcept override;

private:
    struct Wanted {
        std::size_t bytes = 0;
        bool processor_atomics = false;
    };
    struct Peer {
        std::vector<std::uint64_t> starts;  ///< of its regions, in its address space
        std::atomic<bool> broken{false};    ///< a connection broke; to become gone
        std::atomic<bool> gone{false};      ///< nothing goes there; whether it is lost others say
        std::atomic<bool> lost{false};
        std::atomic<std::uint64_t> silent_at_ns{
            0};                          ///< when its silence is told; 0: it is not silent
        std::vector<std::byte> partial;  ///< of a message in parts; progress role
    };
    struct OwnMessage {
        MessageKind kind;
        std::vector<std::byte> body;
    };

    // verbs_provider.cpp
    Result<void> open_queues();
    Result<void> take_memory();
    std::vector<std::byte> make_card() const;
    Result<void> learn(const std::vector<std::vector<std::byte>>& cards);
    Lane& lane_of_thread() noexcept;
    Post post_one(Work work) noexcept;
    static std::size_t poll(Lane& lane, Arrivals& arrivals, std::size_t count_max) noexcept;
    std::byte* own_place(RegionId region, std::uint64_t offset, std::size_t bytes) noexcept;
    /// False: the device has to do it.
    /// @param is_behind  it comes after something of its list that the device does for this node,
    /// as a get behind the atomic that takes the lock
    bool do_here(const Work& work, bool is_behind) noexcept;
    /// The last operation of the list to each peer.
    struct Behind {
        std::array<Op*, 16> lasts{};
        std::array<bool, 16> started{};
        std::size_t count = 0;
    };
    bool enlist(Lane& lane, const Work& work, Behind& behind) noexcept;
    bool is_by_processor(std::uint32_t region) const noexcept {
        return wanted_[region].processor_atomics;
    }

    // LaneHost
    bool is_gone(NodeId peer) const noexcept override;
    bool is_lost(NodeId peer) const noexcept override;
    void broke(NodeId peer) noexcept override;
    std::uint64_t start_of(NodeId peer, std::uint32_t region) const noexcept override;
    void ask_for_key(NodeId peer, std::uint32_t region, std::uint32_t chunk) noexcept override;
    void ask_for_atomic(const Op& op, std::uint32_t lane, std::uint32_t place) noexcept override;

    // verbs_progress.cpp
    void introduce() noexcept;
    std::size_t deliver(Arrivals& arrivals, std::size_t count_max) noexcept;
    std::size_t deliver_own(Arrivals& arrivals, std::size_t count_max) noexcept;
    void take_word(NodeId from, Bytes body) noexcept;
    void answer_key(NodeId from, const Word& word) noexcept;
    void look_after_peers(Arrivals& arrivals) noexcept;
    void lose(NodeId peer) noexcept;
    bool anything_to_do(Sleeper role) noexcept;
    void silence_channel() noexcept;

    Limits limits_;
    ProviderSetup setup_;
    std::unique_ptr<Device> device_;
    std::uint64_t silence_max_ns_;
    std::uint32_t break_after_;
    std::vector<Wanted> wanted_;
    bool connected_ = false;
    PinnedRegions regions_;
    std::unique_ptr<PeerKeys> keys_;
    MessageQueue messages_;
    Meeting meeting_;  ///< whose ends receive into messages_'s buffers
    std::vector<std::unique_ptr<Lane>> lanes_;
    std::vector<Peer> peers_;
    std::uint64_t looked_at_ticks_ = 0;  ///< progress role
    std::uint32_t polls_ = 0;            ///< progress role
    std::atomic<bool> any_broken_{false};
    std::atomic<bool> was_met_{
        false};        ///< a thread that went to sleep has seen questions or answers
    Latch own_latch_;  ///< guards messages to this node itself
    std::vector<OwnMessage> own_messages_;
    std::atomic<bool> any_own_{false};  ///< written with the latch held
    Sleepers sleepers_[2];              ///< by role
    PollWatch watch_;                   ///< for a listener
};

}  // namespace hiroba::net::verbs
