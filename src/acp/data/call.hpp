// SPDX-License-Identifier: BSD-3-Clause
// Role: the accesses that one call of the middle layer makes of the basic layer: typed reads,
// writes that are under way while the call goes on, copies between any two ranks. Invariant: what a
// call writes has its effect in the order in which it was written, so a structure is never seen
// with a link to an element that is not there yet; all of it is complete when the call ends. The
// first thing that goes wrong is kept; from then on nothing is accessed, reads give zeros, and
// loops over what was read end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "acp/node.hpp"

namespace hiroba::acp::data {

/// Thread: the one that made it, and no other thread meanwhile; other threads have their own.
class Call {
public:
    explicit Call(Node& node);
    /// Completes what is under way.
    ~Call();
    Call(const Call&) = delete;

    bool ok() const noexcept { return ok_; }
    const Error& error() const noexcept { return error_; }
    /// Keeps the first one. @return false, for callers that say so at once
    bool fail(Error error);
    bool fail(std::string text);

    /// What is at `address` once all that this call wrote before is there.
    template <class Value>
    Value read(std::uint64_t address) {
        static_assert(std::is_trivially_copyable_v<Value>);
        Value value{};
        read_bytes(address, &value, sizeof value);
        return value;
    }
    void read_bytes(std::uint64_t address, void* to, std::uint64_t bytes);
    /// Starts to write; `value` may change at once.
    template <class Value>
    void write(std::uint64_t address, const Value& value) {
        static_assert(std::is_trivially_copyable_v<Value>);
        write_bytes(address, &value, sizeof value);
    }
    void write_bytes(std::uint64_t address, const void* from, std::uint64_t bytes);
    /// Gives a lock back, also when something went wrong while it was held.
    void unlock(std::uint64_t address);
    /// Starts to copy between any two ranks; the ends do not overlap.
    void copy(std::uint64_t dst, std::uint64_t src, std::uint64_t bytes);
    /// Returns when all that was written and copied is there.
    void complete();

    /// Waits until the word at `address` is 0 and makes it 1: a lock that ranks share. It is given
    /// back by unlock(). @return false on failure: it is not held
    bool lock(std::uint64_t address) { return lock(address, nullptr, 0); }
    /// As above, and reads `bytes` from behind the word, as they are once the lock is held.
    bool lock(std::uint64_t address, void* behind, std::uint64_t bytes);

    /// @return a block; 0 on failure
    std::uint64_t allocate(std::uint64_t bytes, std::int64_t rank);
    void release(std::uint64_t address);

    /// Whether the bytes at both places are the same.
    bool are_equal(std::uint64_t first, std::uint64_t second, std::uint64_t bytes);
    bool are_equal(std::uint64_t address, const void* here, std::uint64_t bytes);

    /// The rank whose memory it is; fails and returns -1 for what is no address.
    std::int64_t rank_of(std::uint64_t address);
    std::int64_t my_rank() const noexcept { return node_.rank(); }
    std::int64_t ranks() const noexcept { return node_.ranks(); }

private:
    static constexpr std::uint64_t reading_bytes = 1024;  ///< of the scratch block, from its start

    /// Issues an access behind the ones under way. @return its handle; 0 on failure
    std::int64_t issue(const Access& access);
    std::uint64_t room_to_write(std::uint64_t bytes);

    Node& node_;
    Heap::Scratch scratch_;
    std::uint64_t written_ = reading_bytes;  ///< end of the bytes in scratch_ that are under way
    std::int64_t last_ = 0;                  ///< the access issued last, unless it is complete
    bool ok_ = true;
    Error error_;
};

}  // namespace hiroba::acp::data
