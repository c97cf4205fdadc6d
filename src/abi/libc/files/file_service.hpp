// SPDX-License-Identifier: BSD-3-Clause
// Role: carries out what other nodes ask by RemoteFiles, and what travels between the two.
// Invariant: while any request is carried out, a thread is free for the next: what waits (a read of
// an empty pipe) may wait for what another request does. The threads end with the process.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bell.hpp"
#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/latch.hpp"
#include "base/result.hpp"
#include "net/net.hpp"

namespace hiroba::abi {

struct CallArguments;

/// What can be done with a stream of another node; numbered behind the kernel's calls.
enum class StreamCall : std::int64_t {
    write = 1 << 20,
    read,
    read_line,  ///< up to words[1] bytes, or up to the character words[2]
    unread,     ///< gives characters back, the last one read first
    seek,
    tell,
    flush,
    close,
    close_child,   ///< pclose()
    get_position,  ///< fgetpos() and fsetpos()
    set_position,
    look,  ///< a StreamQuestion
    number,
    buffer,       ///< setvbuf() with the mode and bytes, and a buffer of the owner's
    reopen,       ///< the words as freopen(): mode and path in the data
    write_wide,   ///< wide characters
    read_wide,    ///< so many, or up to the end of a line; the result counts characters
    unread_wide,  ///< gives one back
    orient,       ///< fwide(), and 1
    path          ///< where the file of descriptor words[0] lies
};

/// What stdio tells of a stream's state, or makes of it: words[1] of StreamCall::look.
enum class StreamQuestion : long {
    at_end,
    has_failed,
    clear_errors,
    pending_bytes,
    reads,
    writes,
    is_readable,
    is_writable,
    is_line_buffered,
    buffer_bytes,
    purge,
    set_locking  ///< words[2]: how
};

/// Instead of a number: a handler of the program has ended the call of this lane.
inline constexpr std::int64_t end_of_call = -1;

/// What carries a call over, in front of the data.
struct FileRequest {
    std::int64_t number;
    std::int64_t words[6];
    std::uint32_t places;  ///< a bit for each word that is a place in the data
    std::uint32_t in_bytes;
    std::uint32_t out_bytes;
    std::uint32_t lane;  ///< of the asking node; goes back with the reply
};
struct FileReply {
    std::int64_t result;
    std::uint64_t lane;
};
/// So many calls of one node are under way at a time; further ones wait for one of these to end.
inline constexpr std::uint32_t file_lanes = 64;

/// The serving side of one node.
class FileService {
public:
    /// Before Endpoint::connect().
    /// @param chunk_bytes  of data that one request or reply has at most
    FileService(net::Endpoint& endpoint, std::size_t chunk_bytes);
    /// Starts the first thread.
    Result<void> start();

private:
    /// A request of one lane of one node; chunk_bytes of data lie behind it. Mapped when it comes
    /// first, and used again.
    struct Slot {
        FileRequest request;
        NodeId from;
        Slot* next;                  ///< of those that wait
        pid_t server;                ///< the thread that carries it out, 0: none; with the latch
        std::atomic<bool> is_ended;  ///< by a handler of the program

        std::byte* data() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
    };

    static void on_request(void* self, NodeId from, Bytes body) noexcept;
    static void* serve(void* self) noexcept;
    Slot& slot_of(NodeId from, std::uint32_t lane) noexcept;
    static std::int64_t carry_out(Slot& slot) noexcept;
    static long call_kernel(const Slot& slot, long number, const CallArguments& words) noexcept;
    static std::int64_t lock_records(Slot& slot, CallArguments& words) noexcept;
    void end_call(NodeId from, std::uint32_t lane) noexcept;
    void put(Slot& slot) noexcept;
    Slot* take() noexcept;
    int start_thread() noexcept;
    void keep_one_free() noexcept;
    void answer(Slot& slot) noexcept;

    net::Endpoint& endpoint_;
    std::size_t chunk_bytes_;
    std::vector<Slot*> slots_;  ///< by node and lane; the progress role's

    Latch latch_;
    Slot* first_ = nullptr;  ///< of those that wait; with the latch, as the next two
    Slot* last_ = nullptr;
    std::uint32_t free_threads_ = 0;
    Bell arrived_;  ///< rung by each request; a free thread sleeps on it
};

}  // namespace hiroba::abi
