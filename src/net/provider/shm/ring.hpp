// SPDX-License-Identifier: BSD-3-Clause
// Role: a queue of messages from one node to another in the receiver's shared memory.
// Invariant: one writer at a time (the sender's latch) and one reader at a time (the receiver's
// progress role). A record is a header and a body, contiguous, a multiple of 64 bytes; where the
// ring's end is too near, a skip record fills it. A record's bytes are reused only after its
// message was delivered: head moves with the next read, since to clear a line that the writer still
// has takes its way from core to core, for which nobody shall wait who has a message to answer.
//
// The reader watches the header of the next record, so that a message crosses from core to core in
// one cache line if it is short. For that, a place where a header may come holds 0 before: the
// reader clears the first word of each 64 bytes that it gives back. `tail` is there for those who
// ask whether anything is left (empty()), not for the reader.
//
// Memory order: the writer's release store of the header pairs with the reader's acquire load (the
// record is complete), the reader's release store of head with the writer's acquire load (the bytes
// are free and cleared). The private copies are handed from thread to thread by the latches around
// the calls.
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "net/provider/provider.hpp"
#include "net/provider/shm/layout.hpp"
#include "net/wire/record.hpp"

namespace hiroba::net::shm {

/// The sending end; lives in private memory of the sender.
class RingWriter {
public:
    RingWriter() = default;
    RingWriter(RingControl* control, std::byte* data) noexcept : control_(control), data_(data) {}

    /// Appends one message made of `parts`. False when there is no room: nothing was done.
    /// @param body_bytes  the sum of the parts, at most message_bytes_max
    bool write(MessageKind kind, std::span<const Bytes> parts, std::size_t body_bytes) noexcept;

private:
    bool has_room(std::size_t bytes) noexcept;
    std::byte* at(std::uint64_t position) const noexcept { return data_ + position % ring_bytes; }

    RingControl* control_ = nullptr;
    std::byte* data_ = nullptr;
    std::uint64_t tail_ = 0;
    std::uint64_t head_seen_ = 0;  ///< the receiver's head when last looked at
};

/// The receiving end; lives in private memory of the receiver.
class RingReader {
public:
    RingReader() = default;
    RingReader(RingControl* control, std::byte* data, NodeId from) noexcept
        : control_(control), data_(data), from_(from) {}

    /// True when every message sent so far was delivered. Any thread.
    bool empty() const noexcept {
        return control_->delivered.load(std::memory_order_acquire) ==  // read(), any thread's
               control_->tail.load(std::memory_order_acquire);         // RingWriter::write()
    }
    /// False when read() would do nothing. As read().
    bool has_work() const noexcept {
        return given_back_ != delivered_ || wire::has_record(at(delivered_));
    }

    /// Delivers up to `count_max` of the messages that are there now; returns how many.
    /// Gives back what the read before has delivered.
    std::size_t read(Arrivals& arrivals, std::size_t count_max) noexcept;

private:
    void give_back() noexcept;
    std::byte* at(std::uint64_t position) const noexcept { return data_ + position % ring_bytes; }

    RingControl* control_ = nullptr;
    std::byte* data_ = nullptr;
    NodeId from_;
    std::uint64_t delivered_ = 0;
    std::uint64_t given_back_ = 0;
};

}  // namespace hiroba::net::shm
