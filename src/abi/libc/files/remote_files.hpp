// SPDX-License-Identifier: BSD-3-Clause
// Role: calls on descriptors and streams of another node, and handlers for the program's end, which
// node 0 has; carried out there, one at a time.
// Invariant: when a call returns, the owner's kernel or stream has it: what a thread does next, and
// what a thread does that synchronizes with it, comes after. Nothing is buffered on the way.
#pragma once

#include <stdio.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "net/net.hpp"

namespace hiroba::abi {

struct CallArguments;

/// What can be done with a stream of another node; numbered behind the kernel's calls.
enum class StreamCall : std::int64_t {
    write = 1 << 20,
    read,
    unread,  ///< gives characters back, the last one read first
    seek,
    tell,
    flush,
    close,
    number,
    buffer,  ///< setvbuf() with the mode and bytes, and a buffer of the owner's
    reopen   ///< the words as freopen(): mode and path in the data
};

/// One node's part: the client of others and the thread that serves them.
class RemoteFiles {
public:
    /// Before Endpoint::connect(); start() when the node is whole.
    explicit RemoteFiles(net::Endpoint& endpoint);
    /// Starts the thread that serves other nodes; it ends with the process.
    Result<void> start();

    /// One exchange with `owner`. At most chunk_bytes() either way.
    /// @param number   of a system call, a StreamCall, or a HandlerCall
    /// @param data_at  which of the words the owner replaces by the address of the data; -1: none
    /// @return the kernel's result or the negated error number
    std::int64_t call(NodeId owner, std::int64_t number, const CallArguments& words, int data_at,
                      Bytes in, MutableBytes out) noexcept;
    std::size_t chunk_bytes() const noexcept { return chunk_bytes_; }

private:
    struct Request {
        std::int64_t number;
        std::int64_t words[6];
        std::int32_t data_at;
        std::uint32_t in_bytes;
        std::uint32_t out_bytes;
        std::uint32_t unused;
    };
    struct Slot {
        Request request;
        std::vector<std::byte> data;
        std::atomic<bool> waiting{false};
    };

    static void on_request(void* self, NodeId from, Bytes body) noexcept;
    static void on_reply(void* self, NodeId from, Bytes body) noexcept;
    static void* serve(void* self) noexcept;
    void answer(NodeId to) noexcept;

    net::Endpoint& endpoint_;
    std::size_t chunk_bytes_;
    std::atomic<std::uint32_t> arrived_{0};  ///< requests so far; the serving thread sleeps on it
    std::vector<std::unique_ptr<Slot>> slots_;  ///< by node: each has one request under way

    std::atomic<bool> busy_{false};  ///< a thread of this node is in call()
    std::atomic<bool> replied_{false};
    std::int64_t result_ = 0;
    std::vector<std::byte> sent_;
    std::vector<std::byte> received_;
    std::size_t received_bytes_ = 0;
};

/// A system call on a descriptor of `owner`. What cannot be carried over ends as EBADF, with a line
/// that names the descriptor.
long perform_on_owner(NodeId owner, long number, const CallArguments& arguments) noexcept;

}  // namespace hiroba::abi
