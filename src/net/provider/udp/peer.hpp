// SPDX-License-Identifier: BSD-3-Clause
// Role: what a node keeps of one peer it talks to: both windows, what waits to be sent, what is
// being put together. Invariant: made when first talked to, in a mapping of its own whose untouched
// pages cost nothing; never freed before the provider. Owned by the provider's latch.
#pragma once

#include <cstdint>

#include "net/provider/provider.hpp"
#include "net/provider/udp/receive_window.hpp"
#include "net/provider/udp/send_window.hpp"
#include "net/provider/udp/socket.hpp"

namespace hiroba::net::udp {

inline constexpr std::uint32_t ops_max = 1024;             ///< of a node, to all peers together
inline constexpr std::uint32_t packets_for_messages = 64;  ///< one-sided work leaves in a window
/// Rather than with less a put begins a new packet.
inline constexpr std::size_t smallest_piece_bytes = 256;
inline constexpr std::uint32_t no_op = ~std::uint32_t{0};
inline constexpr std::size_t message_bytes_max = std::size_t{64} << 10;

/// One-sided work of this node that is not complete.
struct Op {
    enum class Kind : std::uint8_t { put, get, atomic };
    struct Operands {
        std::uint64_t operand, expected;
    };
    Kind kind = Kind::put;
    AtomicOp atomic{};
    bool pending = false;  ///< posted and not complete: an answer may name it
    bool failed = false;
    std::uint32_t peer = 0;
    std::uint32_t region = 0;
    std::uint32_t next = no_op;  ///< in the list it is in
    OpId id;
    std::uint64_t offset = 0;
    std::byte* memory = nullptr;  ///< put: source; get: target; atomic: the value before
    std::uint64_t bytes = 0;
    std::uint64_t position = 0;       ///< put: bytes composed; get: bytes that came
    std::uint64_t last_sequence = 0;  ///< put: complete when this is acknowledged
    union Rest {
        Operands words = {};  ///< of an atomic
        Completion then;      ///< of a put or get with OpId::bare
    } rest{};
};
static_assert(sizeof(Op) == 80);  // those of puts and gets in 64

/// First in, first out, linked through Op::next.
struct OpList {
    std::uint32_t first = no_op, last = no_op;

    bool empty() const noexcept { return first == no_op; }
    void append(Op* ops, std::uint32_t index) noexcept {
        ops[index].next = no_op;
        (empty() ? first : ops[last].next) = index;
        last = index;
    }
    /// Appends what hangs together from `begin` to `end`.
    void append_chain(Op* ops, std::uint32_t begin, std::uint32_t end) noexcept {
        ops[end].next = no_op;
        (empty() ? first : ops[last].next) = begin;
        last = end;
    }
    std::uint32_t take(Op* ops) noexcept {
        const std::uint32_t index = first;
        first = ops[index].next;
        return index;
    }
};

/// What a peer asked for and has not been sent yet.
struct Answer {
    wire::RecordKind kind = wire::RecordKind::got;
    std::uint32_t tag = 0;
    std::uint32_t region = 0;
    std::uint32_t bytes = 0;
    std::uint32_t position = 0;
    std::uint64_t offset_or_old = 0;
};

/// A peer can ask for as much as it has ops, so this never overflows.
class AnswerQueue {
public:
    bool empty() const noexcept { return head_ == tail_; }
    bool full() const noexcept { return tail_ - head_ == ops_max; }
    void append(const Answer& answer) noexcept { answers_[tail_++ % ops_max] = answer; }
    Answer& front() noexcept { return answers_[head_ % ops_max]; }
    void pop() noexcept { ++head_; }

private:
    std::uint32_t head_ = 0, tail_ = 0;
    Answer answers_[ops_max];
};

/// For as long an acknowledgement that nobody waits for may find something to ride on: longer than
/// a node takes to answer, and a small part of the shortest time after which a peer sends again.
inline constexpr std::uint64_t acknowledge_late_ns = 10'000;
static_assert(acknowledge_late_ns * 4 < retransmission_min_ns);

/// The acknowledgement that is owed to a peer. `later`: no thread there waits for it; `soon`: one
/// may, for a put.
enum class Acknowledge : std::uint8_t { nothing, later, soon, now };

struct Peer {
    NodeId node;
    bool lost = false;
    bool silent = false;     ///< lost because nothing was heard; to be told
    bool dirty = false;      ///< in the list of those to look after at the end of the poll
    std::uint32_t kept = 0;  ///< operations that wait for what is posted next
    Acknowledge acknowledge = Acknowledge::nothing;
    std::uint8_t wakes = 0;              ///< bit per role: to be rung, when there is room
    std::uint32_t not_acknowledged = 0;  ///< packets executed since the last acknowledgement
    std::uint64_t owes_since_ns = 0;     ///< an acknowledgement
    std::uint64_t silent_since_ns = 0;   ///< 0: nothing is expected of it
    Way way;
    wire::DirectionKey key_out, key_in;       ///< unless encrypted
    wire::DirectionCipher seal_out, open_in;  ///< where encrypted

    SendWindow send;
    OpList to_compose;  ///< not wholly in the window
    OpList to_arrive;   ///< puts whose last packet is not acknowledged
    AnswerQueue answers;

    ReceiveWindow receive;
    std::size_t front_done = 0;    ///< bytes of the front packet that were executed
    std::byte* message = nullptr;  ///< message_bytes_max bytes, being put together
    std::size_t message_bytes = 0;
};

}  // namespace hiroba::net::udp
