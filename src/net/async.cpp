// SPDX-License-Identifier: BSD-3-Clause
// Role: see async.hpp. First registration, then requests, then what is refused and why.
#include "net/async.hpp"

#include <mutex>
#include <string>

#include "base/fatal.hpp"
#include "base/settings.hpp"
#include "net/provider/apply_atomic.hpp"
#include "net/served_memory.hpp"
#include "net/wire/active_message.hpp"

namespace hiroba::net {
namespace {

using offload::Command;
using offload::run_callback;

constexpr const char* too_early = "a request before connect(): call Network::connect() first";

Error refused(std::string text) { return {ErrorKind::refused, std::move(text)}; }

/// Eight bytes are one store, which no reader sees half of.
void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    if (bytes == 8) {
        std::uint64_t word;
        std::memcpy(&word, from, sizeof word);
        std::memcpy(to, &word, sizeof word);
    } else if (bytes != 0) {
        std::memcpy(to, from, bytes);
    }
    // The copy comes before whatever the callback does; on x86 a word to the compiler alone.
    std::atomic_signal_fence(std::memory_order_release);
}

/// Ends a request on the thread that made it, outside a poll: another may sleep for what the
/// callback makes true.
void end_here(Endpoint& endpoint, ThreadContext& thread, const Completion& callback) noexcept {
    if (callback.function == nullptr) return;
    run_callback(thread, callback, Outcome::done);
    endpoint.wake_local();
}

/// Does a request whose both ends are mapped here: it is complete at once.
template <class Params>
Submission copy_directly(Endpoint& endpoint, std::byte* to, const std::byte* from,
                         const Params& params) noexcept {
    ThreadContext& thread = this_thread();
    if (!offload::may_run_callback(thread)) return Submission::again;
    copy_bytes(to, from, params.bytes);
    end_here(endpoint, thread, params.on_complete);
    return Submission::accepted;
}

template <class Word>
void apply_at(std::byte* target, const AtomicParams& params, std::byte* old) noexcept {
    const Word found =
        apply_atomic(std::atomic_ref<Word>(*reinterpret_cast<Word*>(target)), params.op,
                     static_cast<Word>(params.operand), static_cast<Word>(params.expected));
    if (old != nullptr) std::memcpy(old, &found, sizeof found);
}

bool good_shape(const AtomicParams& params) noexcept {
    return (params.bytes == 4 || params.bytes == 8) && params.at.offset % params.bytes == 0 &&
           params.op <= AtomicOp::compare_swap;
}

}  // namespace

Async::Async(Endpoint& endpoint, offload::Mode mode, std::uint32_t queues, std::uint32_t executors)
    : endpoint_(endpoint),
      nodes_(endpoint.nodes()),
      maps_peers_(endpoint.provider().limits().maps_peers),
      stores_directly_(maps_peers_ && endpoint.provider().limits().parallel &&
                       mode != offload::Mode::always),
      payload_bytes_max_(endpoint.provider().limits().message_bytes_max -
                         sizeof(wire::ActiveWords)),
      engine_(endpoint, mode, queues, executors) {
    endpoint.on(MessageKind::active, &Async::arrived, this);
}

offload::Mode Async::mode_of_setting() noexcept {
    const std::string_view text = setting("HIROBA_OFFLOAD");
    if (text == "always") return offload::Mode::always;
    return text == "never" ? offload::Mode::never : offload::Mode::automatic;
}

// --- registration --------------------------------------------------------------------------------

Async::~Async() {
    // Relaxed: no other thread is left.
    for (const auto& table : tables_) delete[] table.load(std::memory_order_relaxed);
}

// A place is used again when many others are free, so that a handle that is gone stays unknown.
Result<Async::Fresh> Async::new_registration(Places& from) {
    const std::scoped_lock guard{registering_};
    std::uint32_t handle = from.next;
    if (from.freed.size() >= reused_behind || from.next == from.end) {
        if (from.freed.empty())
            return refused("more than " + std::to_string(from.end) + " registrations at once");
        handle = from.freed.front() + (1u << place_bits);
        from.freed.pop_front();
    } else {
        ++from.next;
    }
    const std::uint32_t place = handle & place_mask;
    if (place < first_handles) return Fresh{&registrations_[place], Handle{handle}};
    auto& table = tables_[place / first_handles];
    // Relaxed: tables are made under the latch.
    if (table.load(std::memory_order_relaxed) == nullptr)
        table.store(new Registration[first_handles],
                    std::memory_order_release);  // pairs with find()
    return Fresh{table.load(std::memory_order_relaxed) + place % first_handles, Handle{handle}};
}

Result<Handle> Async::allocate(std::size_t bytes, bool processor_atomics) {
    Result<RegionId> region = endpoint_.provider().allocate(bytes);
    if (!region) return region.error();
    if (processor_atomics) endpoint_.provider().processor_atomics(*region);
    const Result<Fresh> made = new_registration(own_);
    if (!made) return made.error();
    Registration& memory = *made->memory;
    if (made->handle.value >= first_handles)
        return refused("more than " + std::to_string(first_handles) +
                       " allocations before connect(); allocate the rest after it");
    memory.bytes = bytes;
    memory.region = *region;
    memory.sort = Sort::of_all;
    memory.own_peers = std::make_unique<std::byte*[]>(nodes_);
    memory.peers = memory.own_peers.get();
    return made->handle;
}

Result<Handle> Async::register_local(MutableBytes local) {
    const Result<Fresh> made = new_registration(own_);
    if (!made) return made.error();
    Registration& memory = *made->memory;
    memory.local = local.data();
    memory.bytes = local.size();
    memory.sort = Sort::local;
    publish(*made);
    return made->handle;
}

Result<Handle> Async::register_later(const Later& later) {
    const Result<Fresh> made = new_registration(later.owner ? own_ : later_);
    if (!made) return made.error();
    Registration& memory = *made->memory;
    memory.local = later.local;
    memory.bytes = later.bytes;
    memory.base = later.base;
    memory.peers = later.peers;
    memory.region = later.region;
    memory.owner = later.owner.value_or(NodeId{});
    memory.sort = later.is_served ? Sort::served : later.owner ? Sort::of_one : Sort::of_all;
    publish(*made);
    return made->handle;
}

// Memory of allocate() keeps its place, which other nodes know.
void Async::deregister(Handle handle) noexcept {
    auto* const memory = const_cast<Registration*>(find(handle));
    if (memory == nullptr) return;
    const std::scoped_lock guard{registering_};
    std::uint32_t tag = handle.value;
    // Relaxed: what it was is not looked at any more; only one of two threads takes it.
    if (!memory->tag.compare_exchange_strong(tag, Handle::none, std::memory_order_relaxed)) return;
    if (memory->own_peers != nullptr) return;
    const bool is_later = (handle.value & place_mask) >= tables_max / 2 * first_handles;
    (is_later ? later_ : own_).freed.push_back(handle.value);
}

void Async::attach() {
    Provider& provider = endpoint_.provider();
    for (std::uint32_t place = 0; place < first_handles; ++place) {
        Registration& memory = registrations_[place];
        if (memory.own_peers == nullptr) continue;
        memory.local = provider.local(memory.region).data();
        for (std::uint32_t rank = 0; maps_peers_ && rank < nodes_; ++rank) {
            memory.own_peers[rank] = provider.mapped(NodeId{rank}, memory.region);
            // A provider over several wires maps only the peers of this host.
            if (memory.own_peers[rank] == nullptr) stores_directly_ = false;
        }
        publish({&memory, Handle{place}});
    }
    reachable_ = nodes_;
    engine_.start_executors();
}

MutableBytes Async::local(Handle handle) const noexcept {
    const Registration* memory = find(handle);
    if (memory == nullptr || memory->local == nullptr) return {};
    return {memory->local, memory->bytes};
}

std::optional<Async::Place> Async::find_place(NodeId node, RemoteAddress at,
                                              std::uint64_t bytes) const {
    const Registration* memory = remote(node, at, bytes);
    if (memory == nullptr) return {};
    Place place{.region = memory->region, .is_later = memory->own_peers == nullptr};
    if (memory->sort == Sort::served) {
        place.number = memory->base;
        place.offset = at.offset;
        place.is_served = true;
        return place;
    }
    place.offset = memory->base + at.offset;
    std::byte* const start = memory->mapped(node);
    if (start != nullptr) place.mapped = start + at.offset;
    return place;
}

void Async::on(ActiveId id, ActiveHandler handler, void* context) noexcept {
    HIROBA_INVARIANT(id.value < active_.size(), "active message %u of %u", id.value,
                     ActiveId::count);
    active_[id.value] = {handler, context};
}

// --- requests ------------------------------------------------------------------------------------

/// A read (get) or a write (put) between `there`, memory of `peer`, and `here`. Inlined: both calls
/// are counted in nanoseconds.
template <Work::Kind kind, class Params>
[[gnu::always_inline]] inline Submission Async::try_copy(const Params& params, NodeId peer,
                                                         RemoteAddress there,
                                                         LocalAddress here) noexcept {
    const Registration* memory = remote(peer, there, params.bytes);
    std::byte* local = place(here, params.bytes);
    if (memory == nullptr || local == nullptr) [[unlikely]]
        return Submission::refused;
    if (memory->sort == Sort::served) [[unlikely]]
        return served_->try_copy(kind == Work::Kind::get, peer, {memory->base, there.offset}, local,
                                 params.bytes, params.on_complete);
    if (stores_directly_) {
        std::byte* const mapped = memory->mapped(peer) + there.offset;
        return kind == Work::Kind::get ? copy_directly(endpoint_, local, mapped, params)
                                       : copy_directly(endpoint_, mapped, local, params);
    }
    const auto write = [&](Command& command) {
        command.kind = kind;
        command.peer = peer;
        command.region = memory->region;
        command.offset = memory->base + there.offset;
        command.local = local;
        command.bytes = params.bytes;
        command.on_complete = params.on_complete;
    };
    return submit(write, is_far(*memory, peer));
}

Submission Async::try_read(const ReadParams& params) noexcept {
    return try_copy<Work::Kind::get>(params, params.source, params.from, params.to);
}

Submission Async::try_write(const WriteParams& params) noexcept {
    return try_copy<Work::Kind::put>(params, params.target, params.to, params.from);
}

Submission Async::try_atomic(const AtomicParams& params) noexcept {
    if (!good_shape(params)) [[unlikely]]
        return Submission::refused;
    const Registration* target = remote(params.target, params.at, params.bytes);
    std::byte* old = place(params.old, params.bytes);
    const bool lacks_old = old == nullptr && params.old.handle.value != Handle::none;
    if (target == nullptr || lacks_old) [[unlikely]]
        return Submission::refused;
    if (target->sort == Sort::served) [[unlikely]]
        return served_->try_atomic(params, {target->base, params.at.offset}, old);
    if (stores_directly_) {
        ThreadContext& thread = this_thread();
        if (!offload::may_run_callback(thread)) return Submission::again;
        std::byte* at = target->mapped(params.target) + params.at.offset;
        if (params.bytes == 8) {
            apply_at<std::uint64_t>(at, params, old);
        } else {
            apply_at<std::uint32_t>(at, params, old);
        }
        end_here(endpoint_, thread, params.on_complete);
        return Submission::accepted;
    }
    const auto write = [&](Command& command) {
        command.kind = Work::Kind::atomic;
        command.op = params.op;
        command.width = static_cast<std::uint8_t>(params.bytes);
        command.peer = params.target;
        command.region = target->region;
        command.offset = target->base + params.at.offset;
        command.local = old;
        command.bytes = params.bytes;
        command.on_complete = params.on_complete;
        command.arguments[0] = params.operand;
        command.arguments[1] = params.expected;
    };
    return submit(write, is_far(*target, params.target));
}

Submission Async::try_message(const MessageParams& params) noexcept {
    std::byte* payload = nullptr;
    if (params.payload_bytes != 0) payload = place(params.payload, params.payload_bytes);
    const bool wrong = params.target.value >= reachable_ || params.id.value >= ActiveId::count ||
                       params.arguments.size() > MessageParams::arguments_max ||
                       params.payload_bytes > payload_bytes_max_ ||
                       (params.payload_bytes != 0 && payload == nullptr);
    if (wrong) [[unlikely]]
        return Submission::refused;
    if (stores_directly_) return send_directly(params, payload);
    const auto write = [&](Command& command) {
        command.kind = Work::Kind::send;
        command.message = params.id.value;
        command.arguments_count = static_cast<std::uint8_t>(params.arguments.size());
        command.urgency = params.urgency;
        command.peer = params.target;
        command.local = payload;
        command.bytes = params.payload_bytes;
        command.on_complete = params.on_complete;
        if (!params.arguments.empty()) {
            std::memcpy(command.arguments, params.arguments.data(), params.arguments.size_bytes());
        }
    };
    return submit(write, false);
}

/// The provider copies and is done at once: nothing of the request need be kept.
Submission Async::send_directly(const MessageParams& params, const std::byte* payload) noexcept {
    ThreadContext& thread = this_thread();
    if (!offload::may_run_callback(thread) || !endpoint_.may_send(params.target)) {
        return Submission::again;
    }
    wire::ActiveWords words;
    const wire::ActiveHeader header{params.id.value,
                                    static_cast<std::uint8_t>(params.arguments.size())};
    const std::array<Bytes, 2> parts{wire::encode_active(header, params.arguments.data(), words),
                                     Bytes{payload, params.payload_bytes}};
    const Post sent =
        endpoint_.provider().send(params.target, MessageKind::active, params.urgency, parts);
    if (sent == Post::again) return Submission::again;
    end_here(endpoint_, thread, params.on_complete);
    return Submission::accepted;
}

void Async::send_inner(NodeId to, ActiveId id, std::span<const std::uint64_t> words,
                       Bytes payload) noexcept {
    wire::ActiveWords head;
    const wire::ActiveHeader header{id.value, static_cast<std::uint8_t>(words.size())};
    const std::array<Bytes, 2> parts{wire::encode_active(header, words.data(), head), payload};
    endpoint_.send(to, MessageKind::active, Urgency::wake_service, parts);
}

Submission Async::try_call(const CallParams& params) noexcept {
    if (params.function == nullptr || reachable_ == 0) [[unlikely]]
        return Submission::refused;
    return engine_.submit_call(params) ? Submission::accepted : Submission::again;
}

void Async::arrived(void* context, NodeId from, Bytes body) noexcept {
    auto& self = *static_cast<Async*>(context);
    wire::ActiveHeader header;
    wire::ActiveWords arguments;
    Bytes payload;
    const bool understood = wire::decode_active(body, header, arguments, payload);
    HIROBA_INVARIANT(understood, "node %u sent an active message of %lu bytes that no node writes",
                     from.value, body.size());
    const bool known =
        header.handler < self.active_.size() && self.active_[header.handler].handler != nullptr;
    HIROBA_INVARIANT(known,
                     "no handler for active message %u, sent by node %u: call on(ActiveId{%u}, "
                     "...) on every node, before connect()",
                     header.handler, from.value, header.handler);
    const Registered& registered = self.active_[header.handler];
    registered.handler(registered.context, from, std::span(arguments).first(header.arguments),
                       payload);
}

// --- what is refused -----------------------------------------------------------------------------

Result<void> Async::check_node(NodeId node) const {
    if (reachable_ == 0) return refused(too_early);
    if (node.value >= nodes_) {
        return refused("node " + std::to_string(node.value) + " of a job of " +
                       std::to_string(nodes_));
    }
    return {};
}

Result<void> Async::check_remote(NodeId node, RemoteAddress at, std::uint64_t bytes) const {
    if (auto good = check_node(node); !good) return good;
    if (at.handle.value == Handle::none) return refused("no remote handle is given");
    const Registration* memory = find(at.handle);
    if (memory == nullptr || memory->sort == Sort::local) {
        return refused("the remote handle " + std::to_string(at.handle.value) +
                       (memory == nullptr ? " is not registered" : " is of local memory alone"));
    }
    if (!memory->is_of(node)) {
        return refused("the remote handle " + std::to_string(at.handle.value) +
                       " is of memory of node " + std::to_string(memory->owner.value) +
                       ", not of node " + std::to_string(node.value));
    }
    if (!fits(*memory, at.offset, bytes)) {
        return refused("remote bytes " + std::to_string(at.offset) + " + " + std::to_string(bytes) +
                       " of handle " + std::to_string(at.handle.value) + ", which has " +
                       std::to_string(memory->bytes));
    }
    return {};
}

Result<void> Async::check_local(const char* argument, LocalAddress at, std::uint64_t bytes) const {
    if (at.handle.value == Handle::none)
        return refused(std::string("no local handle is given as `") + argument + "`");
    const Registration* memory = find(at.handle);
    const std::string name = std::string("the local handle ") + std::to_string(at.handle.value) +
                             " of `" + argument + "`";
    if (memory == nullptr) return refused(name + " is not registered");
    if (memory->local == nullptr)
        return refused(name + " is of memory of node " + std::to_string(memory->owner.value));
    if (!fits(*memory, at.offset, bytes)) {
        return refused("bytes " + std::to_string(at.offset) + " + " + std::to_string(bytes) +
                       " of " + name + ", which has " + std::to_string(memory->bytes));
    }
    return {};
}

Result<void> Async::check(const ReadParams& params) const {
    if (auto good = check_remote(params.source, params.from, params.bytes); !good) return good;
    return check_local("to", params.to, params.bytes);
}

Result<void> Async::check(const WriteParams& params) const {
    if (auto good = check_remote(params.target, params.to, params.bytes); !good) return good;
    return check_local("from", params.from, params.bytes);
}

Result<void> Async::check(const AtomicParams& params) const {
    if (params.bytes != 4 && params.bytes != 8) {
        return refused("an atomic of " + std::to_string(params.bytes) +
                       " bytes; there are 4 and 8");
    }
    if (params.op > AtomicOp::compare_swap) {
        return refused("atomic operation " + std::to_string(static_cast<unsigned>(params.op)) +
                       " does not exist");
    }
    if (params.at.offset % params.bytes != 0) {
        return refused("an atomic of " + std::to_string(params.bytes) + " bytes at offset " +
                       std::to_string(params.at.offset) + ", which is no multiple");
    }
    if (auto good = check_remote(params.target, params.at, params.bytes); !good) return good;
    if (params.old.handle.value == Handle::none) return {};  // the old value is dropped
    return check_local("old", params.old, params.bytes);
}

Result<void> Async::check(const MessageParams& params) const {
    if (auto good = check_node(params.target); !good) return good;
    if (params.id.value >= ActiveId::count) {
        return refused("active message " + std::to_string(params.id.value) + "; there are " +
                       std::to_string(ActiveId::count));
    }
    if (params.arguments.size() > MessageParams::arguments_max) {
        return refused(std::to_string(params.arguments.size()) + " arguments; at most " +
                       std::to_string(MessageParams::arguments_max));
    }
    if (params.payload_bytes > payload_bytes_max_) {
        return refused("a payload of " + std::to_string(params.payload_bytes) + " bytes; at most " +
                       std::to_string(payload_bytes_max_));
    }
    if (params.payload_bytes == 0) return {};
    return check_local("payload", params.payload, params.payload_bytes);
}

Result<void> Async::check(const CallParams& params) const {
    if (params.function == nullptr) return refused("a call of no function");
    if (reachable_ == 0) return refused(too_early);
    return {};
}

}  // namespace hiroba::net
