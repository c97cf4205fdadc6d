// SPDX-License-Identifier: BSD-3-Clause
// Role: the queue lock of each block, found along probable owners (docs/protocol.md#lock).
// Invariant: at most one thread of a node is between lock() and unlock() of a block: the block's
// latch is held by it. Nothing is held while waiting for another block.
// Source: the paper, section 3.2 and listing 1; forwarding after 8 hops: its reference 32.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "dsm/block/block_table.hpp"
#include "dsm/block/moved_blocks.hpp"
#include "dsm/block/public_copies.hpp"
#include "dsm/memory/address_map.hpp"
#include "dsm/protocol/lease_word.hpp"
#include "dsm/protocol/link_word.hpp"
#include "gas/gas.hpp"
#include "net/net.hpp"

namespace hiroba::dsm {

class BlockLock {
public:
    static constexpr unsigned hops_usual = 8;

    /// @param records one BlockRecord per block on every node
    /// @param moved  is told at a node when a lock leaves it
    /// @param hops_before_message after so many links a request becomes a message
    BlockLock(net::Endpoint& endpoint, gas::Segment& records, MovedBlocks& moved,
              const AddressMap& map, unsigned hops_before_message = hops_usual);

    /// Takes the lock; the token is then this node's. The caller holds the block's latch.
    /// @param along  is read where the lock is found, if that costs no exchange more
    LockToken lock(BlockId block, PublicCopies::Reading* along = nullptr) noexcept;
    /// As lock(), only where it is free at this node already.
    bool try_lock_here(BlockId block, LockToken& token) noexcept;

    /// Whether this node is the block's home, with the lock free. What says so may change at any
    /// time, but then the block is marked as moved here.
    bool is_here(BlockId block) noexcept;
    /// Until when what this node had may be read, now that it is the home no more; 0 if the lock
    /// was here without the home.
    Timestamp rts_when_it_went(BlockId block) noexcept;
    /// A home as it was seen, for extend().
    struct HomeView {
        NodeId node;
        LeaseWord lease;
    };
    /// Follows the links for the home, from `start` or, without it, as this node's own word says.
    /// Empty: the lock is held, or the home moves too fast. A kept lock is asked for, and waited
    /// for if `may_wait`.
    /// @param along  is read there after that, if it costs no exchange more
    std::optional<HomeView> find_home(BlockId block, std::optional<NodeId> start,
                                      PublicCopies::Reading* along, bool may_wait) noexcept;
    /// find_home() in two halves, for who looks for several homes at once: where it begins, what it
    /// reads there, and whether that was the home.
    NodeId first_stop(BlockId block, std::optional<NodeId> start) noexcept;
    using HomeWords = std::array<std::uint64_t, 4>;
    gas::Segment::Access look_for_home(BlockId block, HomeWords& words) noexcept;
    std::optional<HomeView> home_in(NodeId at, BlockId block,
                                    const HomeWords& words) const noexcept;
    /// Whether a node has the lock, for itself or on its way there.
    bool is_held_in(NodeId at, BlockId block, const HomeWords& words) const noexcept {
        const auto kind = LinkWord::from_raw(words[0]).kind(at, initial_home(block));
        return kind == LinkWord::Kind::locked || kind == LinkWord::Kind::locked_with_successor;
    }
    /// Extends what readers are given at that home. True: what was read there since `home` was
    /// seen was the newest, and stays readable until `rts`.
    bool extend(BlockId block, const HomeView& home, Timestamp rts) noexcept;
    /// As extend(), to be made at the home together with other accesses, and its outcome.
    gas::Segment::Access extension(BlockId block, const HomeView& home, Timestamp rts) noexcept;
    static bool is_extended(const gas::Segment::Access& extension) noexcept {
        return extension.found == extension.expected;
    }

    /// Where the lock went when it left this node; empty while it is here or asked for.
    std::optional<NodeId> went_to(BlockId block) noexcept;
    /// lock() in steps, for who takes several locks at once: how far the chase has come.
    struct Chased {
        BlockId block = 0;
        NodeId at;                                 ///< where it asks next,
        LinkWord expected = LinkWord::unlocked();  ///< what it takes to find there,
        bool takes = true;  ///< and for the lock, or for a place in the queue
        unsigned hops = 0;
        PublicCopies::Reading* along = nullptr;  ///< is made where the lock is taken
        std::optional<LockToken> token;          ///< the lock is this node's
        std::uint64_t words[3] = {};
    };
    static constexpr std::size_t together_max = 16;
    /// Whether try_lock_here() would do.
    bool is_free_here(BlockId block) noexcept;
    /// The lock, which is not free here, is on its way from here on: others who come by old links
    /// queue behind this node, until finish().
    Chased begin(BlockId block) noexcept;
    /// Asks for all that have no token yet, in one exchange with each node: where a lock is held it
    /// stays without. Waits for nobody who holds one. At most together_max.
    void try_together(std::span<Chased> chased) noexcept;
    /// Goes on alone, and waits. The caller has unlocked all that have a token; who waits for
    /// several does so in the order of blocks (docs/protocol.md#together).
    LockToken finish(Chased& chased, PublicCopies::Reading* along = nullptr) noexcept;

    /// The token of a block whose lock this node holds, as lock() returned it.
    LockToken held_token(BlockId block) noexcept { return read_token(self_, block); }
    /// This node is the home from here on, of `token`'s times. Hands the token on to the successor
    /// if there is one.
    void unlock(BlockId block, const LockToken& token) noexcept;
    /// Takes the lock of a block that no node has ever read or written. False: some node has, or is
    /// about to. Waits for nobody. Where the initial home's memory is not mapped: an exchange.
    bool try_lock_untouched(BlockId block) noexcept;
    /// As unlock(), of a block that no node can read, this one neither.
    void unlock_sole(BlockId block, const LockToken& token) noexcept;
    /// Takes the lock at `home`, another node that was seen there with a block that none can read.
    /// Empty: some other node was faster. Waits for nobody, unless one has queued behind this node
    /// meanwhile; then the token may be any.
    std::optional<LockToken> try_lock_sole(BlockId block, const HomeView& home) noexcept;
    /// This node, the home, is going to read the block: it is untouched, or sole, no more. False:
    /// the lock has been taken meanwhile.
    bool touch(BlockId block) noexcept;
    /// The lock, which this node has as the home, stays with it until somebody wants it: they say
    /// so to the Keeper. False: somebody has queued already, so it must be opened.
    bool keep(BlockId block) noexcept;
    /// The part of the node that decides about kept locks.
    class Keeper {
    public:
        /// Tells `holder` that a block whose lock it keeps is wanted here; now and then again.
        virtual void ask_for(NodeId holder, BlockId block) noexcept = 0;
        /// Waits for an answer to what was asked since answers() was `seen`, until `until_ns`.
        virtual std::uint32_t answers() noexcept = 0;
        virtual void await_answer(std::uint32_t seen, std::uint64_t until_ns) noexcept = 0;
        /// `requester` wants a block whose lock is kept here. In a handler, which may not wait.
        virtual void wanted(NodeId requester, BlockId block) noexcept = 0;
        /// This node waits for a block: others may want one from it meanwhile.
        virtual void wait() noexcept = 0;

    protected:
        ~Keeper() = default;
    };
    /// Before the first lock().
    void ask_by(Keeper& keeper) noexcept { keeper_ = &keeper; }
    /// As unlock(), with the home where it was: this node has not got the bytes.
    void give_back(BlockId block, const LockToken& token) noexcept;

    /// Where the chase left off when it became a message; for tests and statistics.
    std::uint64_t forwarded() const noexcept { return forwarded_.load(std::memory_order_relaxed); }

private:
    struct ChaseMessage {
        BlockId block;
        std::uint32_t requester;
    };
    /// The lock, from a handler: there nothing one-sided can be waited for.
    struct HandoverMessage {
        std::uint64_t block;
        std::uint64_t words[3];
    };
    static void on_handover(void* self, NodeId from, Bytes body) noexcept;
    static void on_chase(void* self, NodeId from, Bytes body) noexcept;
    bool is_kept_at(NodeId holder, BlockId block) noexcept;
    void wait_until_open(NodeId holder, BlockId block) noexcept;
    void forward(ChaseMessage request) noexcept;
    LinkWord exchange(NodeId at, BlockId block, LinkWord expected, LinkWord mine, bool takes,
                      std::uint64_t (&token)[3], PublicCopies::Reading* along) noexcept;
    bool ask_together(std::span<Chased> chased) noexcept;
    void ask_at(NodeId at, std::span<Chased> chased, bool (&open)[together_max]) noexcept;
    bool goes_on(Chased& chased, LinkWord seen) const noexcept;
    LockToken take_over(BlockId block, const std::uint64_t (&words)[3]) noexcept;
    std::optional<NodeId> find_predecessor(BlockId block) noexcept;
    LockToken wait_for_grant(BlockId block, std::optional<NodeId> holder) noexcept;
    void grant(BlockId block, NodeId to, const LockToken& token) noexcept;
    void grant_by_message(BlockId block, NodeId to) noexcept;
    void open(BlockId block, const LockToken& token, LeaseWord lease) noexcept;
    LockToken read_token(NodeId at, BlockId block) noexcept;
    NodeId home_of(BlockId block, std::uint64_t word) const noexcept;
    LockToken token_of(BlockId block, const std::uint64_t words[3]) const noexcept;
    void write_own_token(BlockId block, NodeId home, Timestamp wts, LeaseWord lease) noexcept;
    LeaseWord close_own_lease(BlockId block) noexcept;
    NodeId initial_home(BlockId block) const noexcept;
    static constexpr std::size_t link_at = offsetof(BlockRecord, link);
    static constexpr std::size_t token_at = offsetof(BlockRecord, token_home);
    static constexpr std::size_t wts_at = offsetof(BlockRecord, token_wts);
    static constexpr std::size_t lease_at = offsetof(BlockRecord, token_rts);
    gas::GlobalAddress word(NodeId node, BlockId block, std::size_t member) const noexcept {
        return {node, std::uint64_t{block} * sizeof(BlockRecord) + member};
    }

    net::Endpoint& endpoint_;
    gas::Segment& records_;
    MovedBlocks& moved_;
    const AddressMap& map_;
    NodeId self_;
    unsigned hops_before_message_;
    Keeper* keeper_ = nullptr;
    std::atomic<std::uint64_t> forwarded_{0};
};

}  // namespace hiroba::dsm
