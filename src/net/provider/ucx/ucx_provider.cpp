// SPDX-License-Identifier: BSD-3-Clause
// Role: see ucx_provider.hpp; how nodes meet, then what users post.
#include "net/provider/ucx/ucx_provider.hpp"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <string>
#include <utility>

#include "base/fatal.hpp"
#include "base/own_libraries.hpp"
#include "base/settings.hpp"
#include "base/thread_context.hpp"
#include "net/bootstrap/device.hpp"
#include "net/provider/apply_atomic.hpp"
#include "net/provider/exchange_cards.hpp"
#include "net/provider/store_whole.hpp"

namespace hiroba::net::ucx {
namespace {

constexpr Limits ucx_limits{.name = "ucx",
                            .message_bytes_max = UcxProvider::message_bytes_max,
                            .completes_inline = false,
                            .parallel = true,
                            .maps_peers = false};

Error refused(NodeId self, std::string text) {
    return {ErrorKind::refused, "node " + std::to_string(self.value) + ": " + std::move(text)};
}

ucp_atomic_op_t opcode_of(AtomicOp op) {
    switch (op) {
        case AtomicOp::fetch_add: return UCP_ATOMIC_OP_ADD;
        case AtomicOp::fetch_and: return UCP_ATOMIC_OP_AND;
        case AtomicOp::fetch_or: return UCP_ATOMIC_OP_OR;
        case AtomicOp::fetch_xor: return UCP_ATOMIC_OP_XOR;
        case AtomicOp::swap: return UCP_ATOMIC_OP_SWAP;
        case AtomicOp::compare_swap: return UCP_ATOMIC_OP_CSWAP;
    }
    fatal("atomic operation %u does not exist", static_cast<unsigned>(op));
}

/// The device that bears `address`, by which other hosts reach this one, and all RDMA devices. UCX
/// alone would also take those that lead to no other host: a container's bridge, loopback.
/// Empty: any will do.
std::string devices_towards(const std::string& address) {
    std::string names;
    for (const NetworkDevice& device : network_devices())
        if (!address.empty() && device.address == address) names = device.name;
    if (names.empty()) return names;
    std::error_code none;
    for (const auto& device : std::filesystem::directory_iterator("/sys/class/infiniband", none)) {
        const std::filesystem::path ports = device.path() / "ports";
        for (const auto& port : std::filesystem::directory_iterator(ports, none))
            names +=
                "," + device.path().filename().string() + ":" + port.path().filename().string();
    }
    return names;
}

/// Fields of a card: a length, then the bytes.
void append(std::vector<std::byte>& card, const void* bytes, std::uint64_t count) {
    const auto* const length = reinterpret_cast<const std::byte*>(&count);
    card.insert(card.end(), length, length + sizeof count);
    const auto* const first = static_cast<const std::byte*>(bytes);
    card.insert(card.end(), first, first + count);
}

/// The field at `at`, which moves on; empty where the card ends.
std::span<const std::byte> take_field(std::span<const std::byte>& at) {
    std::uint64_t count = 0;
    if (at.size() < sizeof count) return {};
    std::memcpy(&count, at.data(), sizeof count);
    at = at.subspan(sizeof count);
    const auto field = at.first(std::min<std::size_t>(count, at.size()));
    at = at.subspan(field.size());
    return field;
}

}  // namespace

Result<std::unique_ptr<Provider>> make_ucx_provider(ProviderSetup setup) {
    if (setup.self.value >= setup.nodes)
        return refused(setup.self,
                       "a job of " + std::to_string(setup.nodes) + " nodes has no such rank");
    const auto silence_s = setting_number("HIROBA_PEER_TIMEOUT");
    if (!silence_s) return silence_s.error();
    const auto ucp = UcpLibrary::load();
    if (!ucp) return ucp.error();
    return std::unique_ptr<Provider>(
        std::make_unique<UcxProvider>(std::move(setup), **ucp, *silence_s));
}

UcxProvider::UcxProvider(ProviderSetup setup, const UcpLibrary& ucp, std::uint64_t silence_max_s)
    : setup_(std::move(setup)),
      ucp_(ucp),
      silence_max_s_(std::min<std::uint64_t>(silence_max_s, 1'000'000)) {}

UcxProvider::~UcxProvider() {
    ucp_request_param_t forced{};
    forced.op_attr_mask =
        UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    forced.flags = UCP_EP_CLOSE_FLAG_FORCE;
    forced.cb.send = on_closed;
    forced.user_data = this;
    for (Peer& peer : peers_) {
        for (const ucp_rkey_h key : peer.keys)
            if (key != nullptr) ucp_.rkey_destroy(key);
        if (peer.endpoint != nullptr) ucp_.ep_close_nbx(peer.endpoint, &forced);
    }
    if (worker_ != nullptr) {
        while (ucp_.worker_progress(worker_) != 0) {
        }
        ucp_.worker_destroy(worker_);
    }
    for (const Region& region : regions_) {
        if (region.memory != nullptr) ucp_.mem_unmap(context_, region.memory);
        if (region.own) munmap(region.start, round_up(region.bytes, page_bytes));
    }
    if (context_ != nullptr) ucp_.cleanup(context_);
    while (Message* const message = arrived_.pop()) std::free(message);
}

const Limits& UcxProvider::limits() const noexcept { return ucx_limits; }

Error UcxProvider::wrong(const char* call, ucs_status_t status) const {
    return {ErrorKind::environment, std::string("provider ucx (UCX ") + ucp_.get_version_string() +
                                        "): " + call + ": " + ucp_.status_string(status) +
                                        ". See ucx_info -d, or choose another provider"};
}

// --- meeting -------------------------------------------------------------------------------------

Result<RegionId> UcxProvider::allocate(std::size_t bytes) {
    constexpr std::size_t region_bytes_max = std::size_t{1} << 46;
    HIROBA_INVARIANT(peers_.empty(), "region of %lu bytes allocated after connect()", bytes);
    if (bytes > region_bytes_max)
        return refused(setup_.self, "a region of " + std::to_string(bytes) +
                                        " bytes does not fit the address space; lower HIROBA_HEAP");
    Region region;
    region.bytes = bytes;
    regions_.push_back(region);
    return RegionId{static_cast<std::uint32_t>(regions_.size() - 1)};
}

Result<void> UcxProvider::open_worker() {
    const LoadingOwnLibraries modules{AtExit::leave_usable};  // one for each kind of wire
    ucp_config_t* config = nullptr;
    ucs_status_t status = ucp_.config_read(nullptr, nullptr, &config);
    if (status != UCS_OK) return wrong("ucp_config_read", status);
    // A version that does not know one of these does as it is asked anyway, or says so below.
    ucp_.config_modify(config, "ATOMIC_MODE", "cpu");
    // One rail keeps messages in order.
    ucp_.config_modify(config, "MAX_EAGER_RAILS", "1");
    const std::string silence = silence_max_s_ == 0 ? "inf" : std::to_string(silence_max_s_) + "s";
    ucp_.config_modify(config, "KEEPALIVE_INTERVAL", silence.c_str());
    const std::string ports{setting("HIROBA_PORTS")};
    if (!ports.empty()) ucp_.config_modify(config, "TCP_PORT_RANGE", ports.c_str());
    const std::string devices = devices_towards(setup_.network);
    if (!devices.empty() && std::getenv("UCX_NET_DEVICES") == nullptr)
        ucp_.config_modify(config, "NET_DEVICES", devices.c_str());
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED |
                        UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
    params.features = UCP_FEATURE_RMA | UCP_FEATURE_AMO64 | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
    params.mt_workers_shared = 1;
    params.estimated_num_eps = setup_.nodes;
    status = ucp_.init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context_);
    ucp_.config_release(config);
    if (status != UCS_OK) return wrong("ucp_init", status);

    ucp_worker_params_t worker{};
    worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    status = ucp_.worker_create(context_, &worker, &worker_);
    if (status != UCS_OK) return wrong("ucp_worker_create", status);
    status = ucp_.worker_get_efd(worker_, &event_fd_);
    if (status != UCS_OK) return wrong("ucp_worker_get_efd", status);
    ucp_am_handler_param_t handler{};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                         UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = message_id;
    handler.cb = on_message;
    handler.arg = this;
    status = ucp_.worker_set_am_recv_handler(worker_, &handler);
    if (status != UCS_OK) return wrong("ucp_worker_set_am_recv_handler", status);
    return {};
}

// Registered without being touched where the device pages on demand; other devices pin all of it.
Result<void> UcxProvider::take_memory() {
    for (std::size_t i = 0; i < regions_.size(); ++i) {
        Region& region = regions_[i];
        if (setup_.memory) {
            region.start = setup_.memory(static_cast<std::uint32_t>(i)).data();
        } else {
            void* const start =
                mmap(nullptr, round_up(region.bytes, page_bytes), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (start == MAP_FAILED)
                return Error{ErrorKind::environment,
                             "mmap of " + std::to_string(region.bytes) +
                                 " bytes: " + strerror(errno) +
                                 "; see ulimit -v and vm.max_map_count, or lower HIROBA_HEAP"};
            madvise(start, region.bytes, MADV_DONTDUMP);
            region.start = static_cast<std::byte*>(start);
            region.own = true;
        }
        if (region.bytes == 0) continue;
        ucp_mem_map_params_t params{};
        params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                            UCP_MEM_MAP_PARAM_FIELD_FLAGS;
        params.address = region.start;
        params.length = round_up(region.bytes, page_bytes);
        params.flags = UCP_MEM_MAP_NONBLOCK;
        const ucs_status_t status = ucp_.mem_map(context_, &params, &region.memory);
        if (status != UCS_OK) return wrong("ucp_mem_map", status);
    }
    return {};
}

/// The worker's address, then of each region where it starts and its packed key.
Result<std::vector<std::byte>> UcxProvider::make_card() {
    std::vector<std::byte> card;
    ucp_address_t* address = nullptr;
    std::size_t bytes = 0;
    ucs_status_t status = ucp_.worker_get_address(worker_, &address, &bytes);
    if (status != UCS_OK) return wrong("ucp_worker_get_address", status);
    append(card, &setup_.job_key, sizeof setup_.job_key);
    append(card, address, bytes);
    ucp_.worker_release_address(worker_, address);
    for (const Region& region : regions_) {
        append(card, &region.start, sizeof region.start);
        append(card, &region.bytes, sizeof region.bytes);
        void* key = nullptr;
        bytes = 0;
        if (region.memory != nullptr) {
            status = ucp_.rkey_pack(context_, region.memory, &key, &bytes);
            if (status != UCS_OK) return wrong("ucp_rkey_pack", status);
        }
        append(card, key, bytes);
        if (key != nullptr) ucp_.rkey_buffer_release(key);
    }
    return card;
}

Result<void> UcxProvider::learn(Peer& peer, std::uint32_t rank) {
    std::span<const std::byte> at = peer.card;
    const auto number = [&at] {
        std::uint64_t value = 0;
        const auto field = take_field(at);
        if (field.size() == sizeof value) std::memcpy(&value, field.data(), sizeof value);
        return value;
    };
    if (number() != setup_.job_key)
        return refused(setup_.self, "node " + std::to_string(rank) + " has another job key");
    peer.address = take_field(at);
    for (const Region& region : regions_) {
        peer.starts.push_back(number());
        const std::uint64_t bytes = number();
        if (bytes != region.bytes)
            return refused(setup_.self, "sizes of regions: node " + std::to_string(rank) + " has " +
                                            std::to_string(bytes) + " bytes where this node has " +
                                            std::to_string(region.bytes));
        peer.packed_keys.push_back(take_field(at));
    }
    peer.keys.resize(regions_.size());
    return {};
}

Result<void> UcxProvider::connect() {
    HIROBA_INVARIANT(peers_.empty(), "connect() called twice on node %u", setup_.self.value);
    if (auto opened = open_worker(); !opened) return opened;
    if (auto taken = take_memory(); !taken) return taken;
    ops_ = std::make_unique<Op[]>(ops_max);
    for (std::size_t i = 0; i < ops_max; ++i) {
        ops_[i].provider = this;
        ops_[i].next = std::exchange(free_ops_, &ops_[i]);
    }
    auto mine = make_card();
    if (!mine) return mine.error();
    peers_.resize(setup_.nodes);
    for (Peer& peer : peers_) peer.provider = this;
    auto cards = exchange_cards(setup_, *mine);
    if (!cards) return cards.error();
    for (std::uint32_t rank = 0; rank < setup_.nodes; ++rank) {
        peers_[rank].card = std::move((*cards)[rank]);
        if (auto learned = learn(peers_[rank], rank); !learned) return learned;
    }
    return {};
}

// --- posting -------------------------------------------------------------------------------------

MutableBytes UcxProvider::local(RegionId region) noexcept {
    HIROBA_INVARIANT(region.value < regions_.size(), "region %u of %lu", region.value,
                     regions_.size());
    return {regions_[region.value].start, regions_[region.value].bytes};
}

std::byte* UcxProvider::mapped(NodeId node, RegionId region) noexcept {
    return node == setup_.self ? local(region).data() : nullptr;
}

/// False: there is no way to the peer; it may just have died, of which the launcher tells.
bool UcxProvider::open_endpoint(Peer& peer) noexcept {
    if (peer.endpoint != nullptr) return true;
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                        UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = reinterpret_cast<const ucp_address_t*>(peer.address.data());
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler = {on_error, &peer};
    ucs_status_t status = ucp_.ep_create(worker_, &params, &peer.endpoint);
    if (status == UCS_ERR_UNREACHABLE) {
        // UCX's shared memory tells of no peer's death. Within a host the launcher does.
        params.err_mode = UCP_ERR_HANDLING_MODE_NONE;
        status = ucp_.ep_create(worker_, &params, &peer.endpoint);
        peer.dies_untold = status == UCS_OK;
    }
    if (status == UCS_OK) return true;
    peer.endpoint = nullptr;
    say("provider ucx: no way to node %lu: %s. If it lives, see ucx_info -d; UCX_TLS or "
        "UCX_NET_DEVICES may exclude what leads there",
        static_cast<unsigned long>(&peer - peers_.data()), ucp_.status_string(status));
    peer.broken = true;
    any_broken_ = true;
    return false;
}

ucp_rkey_h UcxProvider::key_of(Peer& peer, std::uint32_t region) noexcept {
    ucp_rkey_h& key = peer.keys[region];
    if (key != nullptr) return key;
    const ucs_status_t status =
        ucp_.ep_rkey_unpack(peer.endpoint, peer.packed_keys[region].data(), &key);
    HIROBA_INVARIANT(status == UCS_OK, "ucp_ep_rkey_unpack of region %u: %s", region,
                     ucp_.status_string(status));
    return key;
}

UcxProvider::Op* UcxProvider::take_op(OpId id, NodeId peer) noexcept {
    Op* const op = free_ops_;
    if (op == nullptr) return nullptr;
    free_ops_ = op->next;
    *op = Op{};
    op->provider = this;
    op->id = id;
    op->peer = peer;
    op->in_use = true;
    return op;
}

void UcxProvider::give_op(Op* op) noexcept {
    op->in_use = false;
    op->next = std::exchange(free_ops_, op);
}

std::byte* UcxProvider::own_place(RegionId region, std::uint64_t offset,
                                  std::size_t bytes) noexcept {
    const MutableBytes memory = local(region);
    HIROBA_INVARIANT(offset <= memory.size() && bytes <= memory.size() - offset,
                     "%lu bytes at %lu of region %u, which has %lu", bytes, offset, region.value,
                     memory.size());
    return memory.data() + offset;
}

template <class Start>
Post UcxProvider::post_op(OpId id, NodeId to, RegionId region, std::uint64_t offset,
                          std::size_t bytes, Start&& start) noexcept {
    own_place(region, offset, bytes);  // Regions have one size on all nodes.
    HIROBA_INVARIANT(to.value < setup_.nodes, "node %u of %u", to.value, setup_.nodes);
    const std::scoped_lock guard{latch_};
    Peer& peer = peers_[to.value];
    Op* const op = take_op(id, to);
    if (op == nullptr) return Post::again;
    if (peer.lost) {
        op->failed = true;
        finished_.push(op);
        return Post::posted;
    }
    if (peer.gone) {
        op->parked = true;
        return Post::posted;
    }
    const CallsOfOwnLibrary of_ucx;
    if (!open_endpoint(peer)) {
        op->parked = true;
        return Post::posted;
    }
    op->pending = true;
    const ucs_status_t status =
        start(peer, key_of(peer, region.value), peer.starts[region.value] + offset, *op);
    if (status != UCS_INPROGRESS) {
        op->pending = false;
        finish(op, status);
    }
    return Post::posted;
}

namespace {

ucp_request_param_t with_callback(ucp_send_nbx_callback_t callback, void* data) noexcept {
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param.cb.send = callback;
    param.user_data = data;
    return param;
}

/// UCS_INPROGRESS: a callback will tell.
ucs_status_t status_of(ucs_status_ptr_t request) noexcept {
    if (request == nullptr) return UCS_OK;
    return UCS_PTR_IS_ERR(request) ? UCS_PTR_STATUS(request) : UCS_INPROGRESS;
}

/// The request that has a callback of its own releases itself there; this one is before a flush.
void release_request(const UcpLibrary& ucp, ucs_status_ptr_t request) noexcept {
    if (request != nullptr && !UCS_PTR_IS_ERR(request)) ucp.request_free(request);
}

}  // namespace

/// Unless a flush is under way, at whose end this is called again.
void UcxProvider::flush_puts(Peer& peer) noexcept {
    if (peer.flushing_puts || peer.puts.empty()) return;
    peer.flushing_puts = true;
    peer.puts_before.swap(peer.puts);
    ucs_status_t status = UCS_ERR_CONNECTION_RESET;  // closed meanwhile
    if (peer.endpoint != nullptr) {
        const ucp_request_param_t param = with_callback(on_puts_flushed, &peer);
        status = status_of(ucp_.ep_flush_nbx(peer.endpoint, &param));
    }
    if (status != UCS_INPROGRESS) end_puts(peer, status);
}

Post UcxProvider::put(OpId id, NodeId to, RegionId region, std::uint64_t offset,
                      Bytes from) noexcept {
    if (to == setup_.self) {
        std::byte* const place = own_place(region, offset, from.size());
        if (reinterpret_cast<std::uintptr_t>(place) % std::max<std::size_t>(from.size(), 1) != 0 ||
            !store_whole(place, from))
            std::memcpy(place, from.data(), from.size());
        return Post::done;
    }
    return post_op(id, to, region, offset, from.size(),
                   [&](Peer& peer, ucp_rkey_h key, std::uint64_t at, Op& op) {
                       ucp_request_param_t param{};
                       const ucs_status_ptr_t request =
                           ucp_.put_nbx(peer.endpoint, from.data(), from.size(), at, key, &param);
                       if (UCS_PTR_IS_ERR(request)) return UCS_PTR_STATUS(request);
                       release_request(ucp_, request);
                       peer.puts.push_back(&op);
                       flush_puts(peer);
                       return UCS_INPROGRESS;
                   });
}

Post UcxProvider::get(OpId id, MutableBytes to, NodeId from, RegionId region,
                      std::uint64_t offset) noexcept {
    if (from == setup_.self) {
        std::memcpy(to.data(), own_place(region, offset, to.size()), to.size());
        return Post::done;
    }
    return post_op(
        id, from, region, offset, to.size(),
        [&](Peer& peer, ucp_rkey_h key, std::uint64_t at, Op& op) {
            const ucp_request_param_t param = with_callback(on_op_done, &op);
            return status_of(ucp_.get_nbx(peer.endpoint, to.data(), to.size(), at, key, &param));
        });
}

Post UcxProvider::atomic(OpId id, AtomicOp op, NodeId at, RegionId region, std::uint64_t offset,
                         std::uint64_t operand, std::uint64_t expected,
                         std::uint64_t* old) noexcept {
    const bool aligned = offset % sizeof(std::uint64_t) == 0;
    HIROBA_INVARIANT(aligned, "atomic at offset %lu", offset);
    if (at == setup_.self) {
        std::byte* const place = own_place(region, offset, sizeof(std::uint64_t));
        const std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(place));
        *old = apply_atomic(word, op, operand, expected);
        return Post::done;
    }
    return post_op(id, at, region, offset, sizeof(std::uint64_t),
                   [&](Peer& peer, ucp_rkey_h key, std::uint64_t place, Op& posted) {
                       posted.old = old;
                       // compare_swap: the buffer is compared with, the result holds what goes in.
                       posted.operand = op == AtomicOp::compare_swap ? expected : operand;
                       posted.result = operand;
                       ucp_request_param_t param = with_callback(on_op_done, &posted);
                       param.op_attr_mask |=
                           UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER;
                       param.datatype = ucp_dt_make_contig(sizeof(std::uint64_t));
                       param.reply_buffer = &posted.result;
                       return status_of(ucp_.atomic_op_nbx(peer.endpoint, opcode_of(op),
                                                           &posted.operand, 1, place, key, &param));
                   });
}

Post UcxProvider::send(NodeId to, MessageKind kind, Urgency urgency,
                       std::span<const Bytes> parts) noexcept {
    HIROBA_INVARIANT(to.value < setup_.nodes, "node %u of %u", to.value, setup_.nodes);
    std::size_t bytes = sizeof(Header);
    for (const Bytes& part : parts) bytes += part.size();
    HIROBA_INVARIANT(bytes - sizeof(Header) <= message_bytes_max,
                     "message of %lu bytes; at most %lu", bytes - sizeof(Header),
                     message_bytes_max);
    auto* const message = static_cast<Message*>(std::malloc(sizeof(Message) + bytes));
    HIROBA_INVARIANT(message != nullptr, "no memory for a message of %lu bytes", bytes);
    Peer& peer = peers_[to.value];
    *message = {nullptr, this, &peer, bytes};
    const Header header{setup_.self.value, static_cast<std::uint8_t>(kind),
                        static_cast<std::uint8_t>(urgency), 0};
    std::memcpy(message->data(), &header, sizeof header);
    std::size_t at = sizeof header;
    for (const Bytes& part : parts) {
        if (!part.empty()) std::memcpy(message->data() + at, part.data(), part.size());
        at += part.size();
    }
    const std::scoped_lock guard{latch_};
    if (to == setup_.self) {
        if (peer.sends >= sends_max) {
            std::free(message);
            return Post::again;
        }
        ++peer.sends;
        arrived_.push(message);
        sleepers_[static_cast<std::size_t>(Sleeper::waiter)].ring();
        if (urgency == Urgency::wake_service)
            sleepers_[static_cast<std::size_t>(Sleeper::service)].ring();
        return Post::done;
    }
    return send_bytes(peer, message);
}

/// Takes `message` over.
Post UcxProvider::send_bytes(Peer& peer, Message* message) noexcept {
    if (peer.gone || peer.sends >= sends_max) {
        std::free(message);
        return peer.gone ? Post::done : Post::again;
    }
    const CallsOfOwnLibrary of_ucx;
    if (!open_endpoint(peer)) {
        std::free(message);
        return Post::done;
    }
    ucp_request_param_t param = with_callback(on_sent, message);
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_AM_SEND_FLAG_EAGER;
    const ucs_status_ptr_t request = ucp_.am_send_nbx(peer.endpoint, message_id, nullptr, 0,
                                                      message->data(), message->bytes, &param);
    peer.unflushed = true;
    if (request == nullptr || UCS_PTR_IS_ERR(request)) {
        // An error is told of by on_error(), and the message vanishes as all to a lost node do.
        std::free(message);
    } else {
        ++peer.sends;
    }
    return Post::done;
}

bool UcxProvider::drained() noexcept {
    const std::scoped_lock guard{latch_};
    const CallsOfOwnLibrary of_ucx;
    bool all = finished_.empty();
    for (Peer& peer : peers_) {
        if (peer.gone || peer.endpoint == nullptr) continue;
        if (!peer.flushing && peer.unflushed) {
            peer.unflushed = false;
            const ucp_request_param_t param = with_callback(on_flushed, &peer);
            const ucs_status_ptr_t request = ucp_.ep_flush_nbx(peer.endpoint, &param);
            peer.flushing = request != nullptr && !UCS_PTR_IS_ERR(request);
        }
        all = all && !peer.flushing && peer.sends == 0;
    }
    for (std::size_t i = 0; i < ops_max && all; ++i)
        all = !ops_[i].in_use || peers_[ops_[i].peer.value].gone;
    return all;
}

}  // namespace hiroba::net::ucx
