// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/files/remote_files.hpp"

#include <fcntl.h>
#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/files/descriptors.hpp"
#include "abi/libc/process/exit_handlers.hpp"
#include "abi/messages.hpp"
#include "base/fatal.hpp"
#include "base/own_descriptors.hpp"
#include "base/service_thread.hpp"
#include "base/thread_context.hpp"

namespace hiroba::abi {
namespace {

constexpr std::size_t chunk_bytes_max = std::size_t{32} << 10;

FILE* stream_of(const CallArguments& words) noexcept {
    return reinterpret_cast<FILE*>(static_cast<std::uintptr_t>(words.word[0]));
}

/// -1 and errno as one number.
std::int64_t outcome(std::int64_t result) noexcept { return result < 0 ? -errno : result; }

/// `texts`: the mode and, unless the stream keeps its file, the path, each with its zero.
std::int64_t reopen(FILE* stream, const char* texts, std::size_t bytes) noexcept {
    const char* const mode = texts;
    const char* const path = std::strlen(mode) + 1 < bytes ? mode + std::strlen(mode) + 1 : nullptr;
    return freopen(path, mode, stream) != nullptr ? 0 : -errno;
}

bool makes_descriptor(std::int64_t number, const CallArguments& words) noexcept {
    return number == SYS_dup ||
           (number == SYS_fcntl && (words.word[1] == F_DUPFD || words.word[1] == F_DUPFD_CLOEXEC));
}

/// On the stream's own node. libc's own functions: our library's calls are not interposed.
std::int64_t call_stream(StreamCall call, const CallArguments& words, std::byte* data,
                         std::size_t in_bytes, std::size_t out_bytes) noexcept {
    FILE* const stream = stream_of(words);
    errno = 0;
    switch (call) {
        case StreamCall::write: {
            const std::size_t written = fwrite(data, 1, in_bytes, stream);
            return written == 0 && errno != 0 ? -errno : static_cast<std::int64_t>(written);
        }
        case StreamCall::read: {
            const std::size_t got = fread(data, 1, out_bytes, stream);
            return got == 0 && ferror(stream) != 0 && errno != 0 ? -errno
                                                                 : static_cast<std::int64_t>(got);
        }
        case StreamCall::unread:
            for (std::size_t i = 0; i < in_bytes; ++i) {
                const int c = static_cast<unsigned char>(data[i]);
                if (ungetc(c, stream) == EOF) return -EIO;
            }
            return 0;
        case StreamCall::seek:
            return outcome(fseeko(stream, words.word[1], static_cast<int>(words.word[2])));
        case StreamCall::tell: return outcome(ftello(stream));
        case StreamCall::flush: return outcome(fflush(stream));
        case StreamCall::close: return outcome(fclose(stream));
        case StreamCall::number: return outcome(fileno(stream));
        case StreamCall::buffer:
            return outcome(setvbuf(stream, nullptr, static_cast<int>(words.word[1]),
                                   static_cast<std::size_t>(words.word[2])));
        case StreamCall::reopen: return reopen(stream, reinterpret_cast<char*>(data), in_bytes);
    }
    return -ENOSYS;
}

}  // namespace

RemoteFiles::RemoteFiles(net::Endpoint& endpoint)
    : endpoint_(endpoint),
      chunk_bytes_(std::min(chunk_bytes_max,
                            endpoint.provider().limits().message_bytes_max - sizeof(Request))),
      sent_(chunk_bytes_),
      received_(chunk_bytes_) {
    for (std::uint32_t node = 0; node < endpoint.nodes(); ++node) {
        slots_.push_back(std::make_unique<Slot>());
        slots_.back()->data.resize(chunk_bytes_);
    }
    endpoint.on(message::file_request, &on_request, this);
    endpoint.on(message::file_reply, &on_reply, this);
}

Result<void> RemoteFiles::start() {
    pthread_t thread;
    const int failure = pthread_create(&thread, nullptr, &serve, this);
    if (failure == 0) return {};
    return Error{ErrorKind::environment,
                 std::string("the thread that serves files did not start: ") +
                     std::strerror(failure) + ". " + thread_advice(failure)};
}

void RemoteFiles::on_request(void* self, NodeId from, Bytes body) noexcept {
    auto& files = *static_cast<RemoteFiles*>(self);
    Slot& slot = *files.slots_[from.value];
    HIROBA_INVARIANT(!slot.waiting.load() && body.size() >= sizeof(Request) &&
                         body.size() <= sizeof(Request) + files.chunk_bytes_,
                     "file request of %lu bytes from node %u", body.size(), from.value);
    std::memcpy(&slot.request, body.data(), sizeof slot.request);
    std::memcpy(slot.data.data(), body.data() + sizeof(Request), body.size() - sizeof(Request));
    slot.waiting.store(true);
    files.arrived_.fetch_add(1);
    files.arrived_.notify_one();
}

void RemoteFiles::on_reply(void* self, NodeId, Bytes body) noexcept {
    auto& files = *static_cast<RemoteFiles*>(self);
    HIROBA_INVARIANT(body.size() >= 8 && body.size() <= 8 + files.chunk_bytes_,
                     "file reply of %lu bytes", body.size());
    std::memcpy(&files.result_, body.data(), 8);
    files.received_bytes_ = body.size() - 8;
    std::memcpy(files.received_.data(), body.data() + 8, files.received_bytes_);
    files.replied_.store(true, std::memory_order_release);  // pairs with the wait in call()
}

void* RemoteFiles::serve(void* self) noexcept {
    auto& files = *static_cast<RemoteFiles*>(self);
    for (;;) {
        const std::uint32_t seen = files.arrived_.load();
        for (std::uint32_t node = 0; node < files.slots_.size(); ++node) {
            if (files.slots_[node]->waiting.load()) files.answer(NodeId{node});
        }
        files.arrived_.wait(seen);
    }
}

void RemoteFiles::answer(NodeId to) noexcept {
    Slot& slot = *slots_[to.value];
    Request& request = slot.request;
    CallArguments words;
    for (int i = 0; i < 6; ++i) words.word[i] = request.words[i];
    std::int64_t result;
    if (request.number >= static_cast<std::int64_t>(HandlerCall::at_exit)) {
        result = register_handler(static_cast<HandlerCall>(request.number), words);
    } else if (request.number >= static_cast<std::int64_t>(StreamCall::write)) {
        result = call_stream(static_cast<StreamCall>(request.number), words, slot.data.data(),
                             request.in_bytes, request.out_bytes);
    } else if (is_kept_descriptor(static_cast<int>(words.word[0]))) {
        result = -EBADF;
    } else {
        if (request.data_at >= 0)
            words.word[request.data_at] = dsm::kernel::as_word(slot.data.data());
        const long* const w = words.word;
        result = dsm::kernel_call(request.number, w[0], w[1], w[2], w[3], w[4], w[5]);
        if (makes_descriptor(request.number, words)) result = number_new_descriptor(result);
    }
    const std::size_t out = result < 0 ? 0 : request.out_bytes;
    const Bytes parts[] = {std::as_bytes(std::span(&result, 1)), {slot.data.data(), out}};
    slot.waiting.store(false);  // before the reply: it lets the next request come
    endpoint_.send(to, message::file_reply, net::Urgency::wake_service, parts);
}

std::int64_t RemoteFiles::call(NodeId owner, std::int64_t number, const CallArguments& words,
                               int data_at, Bytes in, MutableBytes out) noexcept {
    const int errno_before = errno;
    const RuntimeScope here;
    endpoint_.wait_until([&] { return !busy_.exchange(true); });
    // The program's bytes may be invalid pages, and a message is built under a latch: copied first.
    std::memcpy(sent_.data(), in.data(), in.size());
    Request request{number,
                    {},
                    data_at,
                    static_cast<std::uint32_t>(in.size()),
                    static_cast<std::uint32_t>(out.size()),
                    0};
    for (int i = 0; i < 6; ++i) request.words[i] = words.word[i];
    replied_.store(false);
    const Bytes parts[] = {std::as_bytes(std::span(&request, 1)), {sent_.data(), in.size()}};
    endpoint_.send(owner, message::file_request, net::Urgency::wake_service, parts);
    // Ends with the owner's answer, or with the job if the owner dies.
    endpoint_.wait_until([&] { return replied_.load(std::memory_order_acquire); });
    const std::int64_t result = result_;
    std::memcpy(out.data(), received_.data(), std::min(out.size(), received_bytes_));
    busy_.store(false);
    endpoint_.wake_local();
    errno = errno_before;
    return result;
}

}  // namespace hiroba::abi
