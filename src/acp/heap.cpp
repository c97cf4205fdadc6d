// SPDX-License-Identifier: BSD-3-Clause
#include "acp/heap.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "acp/messages.hpp"
#include "acp/refusal.hpp"
#include "base/fatal.hpp"

namespace hiroba::acp {
namespace {

/// Address space that an area takes at least; pages are used as touched.
constexpr std::uint64_t area_bytes_min = std::uint64_t{64} << 20;

}  // namespace

struct Heap::Message {
    enum class Kind : std::uint32_t { allocate, release, answer };
    Kind kind = Kind::allocate;
    std::uint32_t token = 0;
    std::uint64_t value = 0;  ///< bytes, an address, or the answer
};

Heap::Heap(net::Endpoint& endpoint, gas::GlobalMemory& memory)
    : endpoint_(endpoint), memory_(memory) {
    endpoint.on(message::heap, &Heap::on_message, this);
}

Heap::~Heap() {
    for (const Area& area : areas_) ::munmap(area.first, area.bytes);
}

Result<std::uint64_t> Heap::allocate(NodeId at, std::uint64_t bytes) {
    const Message wanted{Message::Kind::allocate, 0, bytes};
    const std::uint64_t address = at == endpoint_.self() ? carry_out(wanted) : ask(at, wanted);
    if (address != 0) return address;
    return Error{ErrorKind::environment, "node " + std::to_string(at.value) +
                                             " has no memory left for " + std::to_string(bytes) +
                                             " bytes"};
}

Result<void> Heap::release(NodeId at, std::uint64_t address) {
    const Message wanted{Message::Kind::release, 0, address};
    const std::uint64_t done = at == endpoint_.self() ? carry_out(wanted) : ask(at, wanted);
    if (done != 0) return {};
    return refused("no block that is allocated begins at global address " + hexadecimal(address));
}

Result<Heap::Scratch> Heap::borrow_scratch() {
    {
        const std::scoped_lock guard{latch_};
        if (!scratch_.empty()) {
            const Scratch one = scratch_.back();
            scratch_.pop_back();
            return one;
        }
    }
    const auto address = allocate(endpoint_.self(), Scratch::bytes);
    if (!address) return address.error();
    const std::scoped_lock guard{latch_};
    return Scratch{*address, local(*address)};
}

void Heap::give_back(Scratch scratch) {
    const std::scoped_lock guard{latch_};
    scratch_.push_back(scratch);
}

// --- asking --------------------------------------------------------------------------------------

std::uint64_t Heap::ask(NodeId at, Message question) {
    Asked asked;
    {
        const std::scoped_lock guard{latch_};
        const auto unused = std::find(asked_.begin(), asked_.end(), nullptr);
        question.token = static_cast<std::uint32_t>(unused - asked_.begin());
        if (unused == asked_.end()) {
            asked_.push_back(&asked);
        } else {
            *unused = &asked;
        }
    }
    const Bytes part = std::as_bytes(std::span(&question, 1));
    endpoint_.send(at, message::heap, net::Urgency::wake_service, std::span(&part, 1));
    // Acquire, pairs with on_message(). A node that is lost ends the job.
    endpoint_.wait_until([&] { return asked.is_answered.load(std::memory_order_acquire); });
    return asked.value;
}

void Heap::on_message(void* self, NodeId from, Bytes body) noexcept {
    auto& heap = *static_cast<Heap*>(self);
    Message message;
    HIROBA_INVARIANT(body.size() == sizeof message,
                     "node %u asks of the heap in %lu bytes, not %lu", from.value, body.size(),
                     sizeof message);
    std::memcpy(&message, body.data(), sizeof message);
    if (message.kind == Message::Kind::answer) {
        const std::scoped_lock guard{heap.latch_};
        const bool is_asked =
            message.token < heap.asked_.size() && heap.asked_[message.token] != nullptr;
        HIROBA_INVARIANT(is_asked, "node %u answers question %u of the heap, which nobody asked",
                         from.value, message.token);
        Asked& asked = *std::exchange(heap.asked_[message.token], nullptr);
        asked.value = message.value;
        asked.is_answered.store(true, std::memory_order_release);  // pairs with ask()
        return;
    }
    const Message answer{Message::Kind::answer, message.token, heap.carry_out(message)};
    const Bytes part = std::as_bytes(std::span(&answer, 1));
    heap.endpoint_.send(from, message::heap, net::Urgency::wake_service, std::span(&part, 1));
}

// --- this node's heap ----------------------------------------------------------------------------

std::uint64_t Heap::carry_out(const Message& asked) {
    const std::scoped_lock guard{latch_};
    if (asked.kind == Message::Kind::release) return blocks_.give(asked.value) ? 1 : 0;
    return take(asked.value);
}

std::uint64_t Heap::take(std::uint64_t bytes) {
    const std::uint64_t address = blocks_.take(bytes);
    if (address != 0) return address;
    return add_area(HeapBlocks::rounded(bytes)) ? blocks_.take(bytes) : 0;
}

bool Heap::add_area(std::uint64_t bytes) {
    if (bytes >= memory_.layout().place_end()) return false;
    // A block's worth is left out behind the blocks, so that areas never adjoin.
    const std::uint64_t size =
        std::max(area_bytes_min, round_up(bytes + HeapBlocks::alignment, page_bytes));
    void* const mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) return false;
    const auto key = memory_.table().add(mapped, size, 0);
    if (!key) {
        ::munmap(mapped, size);
        return false;
    }
    const std::uint64_t address = memory_.table().address_of(*key, mapped);
    areas_.push_back({static_cast<std::byte*>(mapped), size, address});
    blocks_.add(address, size - HeapBlocks::alignment);
    return true;
}

std::byte* Heap::local(std::uint64_t address) const noexcept {
    for (const Area& area : areas_) {
        if (address - area.address < area.bytes) return area.first + (address - area.address);
    }
    return nullptr;
}

}  // namespace hiroba::acp
