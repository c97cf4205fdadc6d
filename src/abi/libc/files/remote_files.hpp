// SPDX-License-Identifier: BSD-3-Clause
// Role: calls on descriptors and streams of another node, and handlers for the program's end, which
// node 0 has; carried out there by FileService.
// Invariant: when a call returns, the owner's kernel or stream has it: what a thread does next, and
// what a thread does that synchronizes with it, comes after. Nothing is buffered on the way. A call
// that waits (a pipe's read) holds up no other one.
#pragma once

#include <stdio.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "abi/libc/files/file_service.hpp"
#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "net/net.hpp"

namespace hiroba::abi {

struct CallArguments;

/// The asking side of one node.
class RemoteFiles {
public:
    /// Before Endpoint::connect(); start() when the node is whole.
    explicit RemoteFiles(net::Endpoint& endpoint);
    /// Starts the thread that serves other nodes; it ends with the process.
    Result<void> start() { return service_.start(); }

    /// One exchange with `owner`. At most chunk_bytes() either way. Handlers of the program that
    /// are held back meanwhile run, if it takes long; what ends a call on one machine ends it, too.
    /// @param number   of a system call, a StreamCall, or a HandlerCall
    /// @param data_at  which of the words the owner replaces by the address of the data; -1: none
    /// @return the kernel's result or the negated error number
    std::int64_t call(NodeId owner, std::int64_t number, const CallArguments& words, int data_at,
                      Bytes in, MutableBytes out) noexcept;
    /// The same with several words that are places in `data`, which goes over and comes back.
    /// @param places  a bit for each such word
    std::int64_t call_packed(NodeId owner, std::int64_t number, const CallArguments& words,
                             std::uint32_t places, MutableBytes data) noexcept;
    std::size_t chunk_bytes() const noexcept { return chunk_bytes_; }

private:
    /// One call's; the thread that has taken it allocates the rooms when it is used first.
    struct Lane {
        std::atomic<bool> taken{false};
        std::atomic<bool> replied{false};
        std::int64_t result = 0;
        std::vector<std::byte> sent, received;
        std::size_t received_bytes = 0;
    };

    static void on_reply(void* self, NodeId from, Bytes body) noexcept;
    std::uint32_t take_lane() noexcept;
    std::int64_t exchange(NodeId owner, FileRequest& request, Bytes in, MutableBytes out) noexcept;
    void await_reply(NodeId owner, const FileRequest& asked) noexcept;
    void interrupt(NodeId owner, const FileRequest& asked) noexcept;

    net::Endpoint& endpoint_;
    std::size_t chunk_bytes_;
    FileService service_;
    std::unique_ptr<Lane[]> lanes_;
};

/// A system call on a descriptor of `owner`. What cannot be carried over ends as EBADF, with a line
/// that names the descriptor.
long perform_on_owner(NodeId owner, long number, const CallArguments& arguments) noexcept;

}  // namespace hiroba::abi
