// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/files/remote_files.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "abi/libc/calls/interruptions.hpp"
#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/process/signals.hpp"
#include "abi/messages.hpp"
#include "base/clock.hpp"
#include "base/fatal.hpp"
#include "base/thread_context.hpp"

namespace hiroba::abi {
namespace {

constexpr std::size_t chunk_bytes_max = std::size_t{32} << 10;
/// A wait looks so often for handlers of the program that are held back: more and more rarely.
constexpr std::uint64_t first_look_ns = 2'000'000, rare_look_ns = 50'000'000;

}  // namespace

RemoteFiles::RemoteFiles(net::Endpoint& endpoint)
    : endpoint_(endpoint),
      chunk_bytes_(std::min(chunk_bytes_max,
                            endpoint.provider().limits().message_bytes_max - sizeof(FileRequest))),
      service_(endpoint, chunk_bytes_),
      lanes_(std::make_unique<Lane[]>(file_lanes)) {
    endpoint.on(message::file_reply, &on_reply, this);
}

void RemoteFiles::on_reply(void* self, NodeId from, Bytes body) noexcept {
    auto& files = *static_cast<RemoteFiles*>(self);
    FileReply reply;
    HIROBA_INVARIANT(
        body.size() >= sizeof reply && body.size() <= sizeof reply + files.chunk_bytes_,
        "file reply of %lu bytes", body.size());
    std::memcpy(&reply, body.data(), sizeof reply);
    HIROBA_INVARIANT(reply.lane < file_lanes, "file reply of node %u in lane %lu", from.value,
                     reply.lane);
    Lane& lane = files.lanes_[reply.lane];
    lane.result = reply.result;
    lane.received_bytes = body.size() - sizeof reply;
    std::memcpy(lane.received.data(), body.data() + sizeof reply, lane.received_bytes);
    lane.replied.store(true, std::memory_order_release);  // pairs with the wait in call()
}

std::uint32_t RemoteFiles::take_lane() noexcept {
    std::uint32_t lane = 0;
    endpoint_.wait_until([&] {
        for (lane = 0; lane < file_lanes; ++lane) {
            std::atomic<bool>& taken = lanes_[lane].taken;
            if (!taken.load(std::memory_order_relaxed) && !taken.exchange(true)) return true;
        }
        return false;
    });
    return lane;
}

/// The owner answers with -EINTR, if the call waits in its kernel. Its thread may not have begun
/// to: said again until there is an answer.
void RemoteFiles::interrupt(NodeId owner, const FileRequest& asked) noexcept {
    const RuntimeScope here;
    FileRequest request{};
    request.number = end_of_call;
    request.lane = asked.lane;
    const Bytes parts[] = {std::as_bytes(std::span(&request, 1))};
    endpoint_.send(owner, message::file_request, net::Urgency::wake_service, parts);
}

// Ends with the owner's answer, or with the job if the owner dies.
void RemoteFiles::await_reply(NodeId owner, const FileRequest& asked) noexcept {
    Lane& lane = lanes_[asked.lane];
    const Interruption interruption{asked.number};
    const auto came = [&] { return lane.replied.load(std::memory_order_acquire); };
    std::uint64_t look_ns = first_look_ns;
    for (bool told = false; !told;) {
        {
            const RuntimeScope here;
            told = endpoint_.wait_until(came, now_ns() + look_ns);
        }
        look_ns = std::min(2 * look_ns, rare_look_ns);
        if (!told && is_signal_deferred()) let_signals_in();
        if (!told && interruption.has_come()) {
            interrupt(owner, asked);
            look_ns = first_look_ns;
        }
    }
}

std::int64_t RemoteFiles::call(NodeId owner, std::int64_t number, const CallArguments& words,
                               int data_at, Bytes in, MutableBytes out) noexcept {
    FileRequest request{};
    request.number = number;
    for (int i = 0; i < 6; ++i) request.words[i] = words.word[i];
    if (data_at >= 0) {
        request.words[data_at] = 0;
        request.places = 1u << data_at;
    }
    return exchange(owner, request, in, out);
}

std::int64_t RemoteFiles::call_packed(NodeId owner, std::int64_t number, const CallArguments& words,
                                      std::uint32_t places, MutableBytes data) noexcept {
    FileRequest request{};
    request.number = number;
    for (int i = 0; i < 6; ++i) request.words[i] = words.word[i];
    request.places = places;
    return exchange(owner, request, data, data);
}

std::int64_t RemoteFiles::exchange(NodeId owner, FileRequest& request, Bytes in,
                                   MutableBytes out) noexcept {
    const int errno_before = errno;
    std::uint32_t number_of_lane = 0;
    {
        const RuntimeScope here;
        number_of_lane = take_lane();
        Lane& lane = lanes_[number_of_lane];
        lane.sent.resize(chunk_bytes_);
        lane.received.resize(chunk_bytes_);
        // The program's bytes may be invalid pages, and a message is built under a latch: copied
        // first.
        std::memcpy(lane.sent.data(), in.data(), in.size());
        request.in_bytes = static_cast<std::uint32_t>(in.size());
        request.out_bytes = static_cast<std::uint32_t>(out.size());
        request.lane = number_of_lane;
        lane.replied.store(false);
        const Bytes parts[] = {std::as_bytes(std::span(&request, 1)),
                               {lane.sent.data(), in.size()}};
        endpoint_.send(owner, message::file_request, net::Urgency::wake_service, parts);
    }
    Lane& lane = lanes_[number_of_lane];
    await_reply(owner, request);
    const RuntimeScope here;
    const std::int64_t result = lane.result;
    std::memcpy(out.data(), lane.received.data(), std::min(out.size(), lane.received_bytes));
    lane.taken.store(false);
    endpoint_.wake_local();
    errno = errno_before;
    return result;
}

}  // namespace hiroba::abi
