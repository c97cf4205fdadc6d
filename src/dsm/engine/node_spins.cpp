// SPDX-License-Identifier: BSD-3-Clause
// Role: threads that wait for another node by plain loads. A loop of them is known by its code and
// tells each round (await_write): the block becomes inaccessible, and the next round's fault waits
// a while for what the others write, makes the releases they want meanwhile, and brings it. Waits
// that no code tells of are seen by what the background flusher brings (note_spin).
// Invariant: a block is closed as if a notice had made it stale, which may happen at any time.
// A wait decides when a load begins, never what it reads. It ends by itself, with nothing held.
#include <mutex>

#include "base/clock.hpp"
#include "base/thread_context.hpp"
#include "dsm/engine/node.hpp"
#include "dsm/guess/bounded_wait.hpp"
#include "dsm/messages.hpp"
#include "dsm/thread_part.hpp"

namespace hiroba::dsm {

namespace {
constexpr std::uint64_t wait_ns = 60'000;  ///< more where releases take long
constexpr std::uint8_t waits_max = 8;      ///< halved by each wait in vain
}  // namespace

bool Node::somebody_spins() noexcept { return guess_.spins.are_seen(now_ns()); }

// A block that the background flusher has made stale was read at once, and the very word read had
// changed: a thread waits there for what others write. All background flushers come often for a
// while.
void Node::note_spin(BlockId block) noexcept {
    entries_[block].spin.waits.store(waits_max, std::memory_order_relaxed);
    const std::uint64_t now = now_ns();
    guess_.spins.note_seen(now);
    if (guess_.spins.tells_others(now)) on_runtime_stack([&] { tell_of_spin(); });
}

// A thread flushes again and again and finds nothing: the flag that it waits for may have been
// written without a flush behind it, by a thread that sleeps in a barrier now. On a private stack.
void Node::note_spin_by_flushes() noexcept {
    if (guess_.spins.tells_others(now_ns())) tell_of_spin();
}

void Node::tell_of_spin() noexcept {
    for (std::uint32_t node = 0; node < endpoint_.nodes(); ++node) {
        if (NodeId{node} == self_) continue;
        endpoint_.send(NodeId{node}, message::spin_seen, net::Urgency::wake_service, {});
    }
}

void Node::on_spin_seen(void* self, NodeId, Bytes) noexcept {
    static_cast<Node*>(self)->guess_.spins.note_seen(now_ns());
}

// Before the fault of a load, with nothing held.
void Node::await_written(BlockId block, std::uint64_t offset) noexcept {
    SpinUse& spin = entries_[block].spin;
    const std::uint8_t waits = spin.waits.load(std::memory_order_relaxed);
    if (waits == 0 || is_pinned(offset)) return;
    const std::uint64_t word = word_at(offset);
    // The bytes behind the flag are there at once each time.
    if (is_written_elsewhere(block, offset, word))
        return spin.waits.store(waits - 1, std::memory_order_relaxed);
    bool came = false;
    on_runtime_stack([&] {
        // Another node is about to ask for what this node's last atomic owes.
        pay_own();
        for (BoundedWait wait{now_ns(), guess_.pull_times.longest_wait_ns(wait_ns)};
             !came && !wait.is_over();) {
            wait.pause();
            pay();
            endpoint_.poll();
            came = is_written_elsewhere(block, offset, word);
        }
    });
    spin.waits.store(came ? waits_max : waits / 2, std::memory_order_relaxed);
    spin.in_vain.store(!came, std::memory_order_relaxed);
}

// A loop that comes back tells as much as note_spin() does. Others are told once a wait was in
// vain: what atomics write is found at its home.
void Node::await_write(const void* address) noexcept {
    const auto offset = map().offset_of(reinterpret_cast<std::uintptr_t>(address));
    if (!offset || is_alone_) return;
    // What this thread has written before it waits, another may wait for.
    if (thread_part().begins_to_wait(*offset, word_at(*offset))) {
        on_runtime_stack([&] {
            pay_own();
            if (somebody_spins()) flush_on_runtime_stack(Flusher::background, Others::running);
        });
    }
    const BlockId block = block_at(*offset);
    BlockEntry& entry = entries_[block];
    entry.spin.waits.store(waits_max, std::memory_order_relaxed);
    if (entry.spin.in_vain.load(std::memory_order_relaxed)) note_spin(block);
    if (!entry.latch.try_lock()) return;
    close(block);
    entry.latch.unlock();
}

// Whether the word that the program has last seen there as `word` is another at its home.
bool Node::is_written_elsewhere(BlockId block, std::uint64_t offset, std::uint64_t word) noexcept {
    if (word_at(offset) != word) return true;
    const auto home = lock_.find_home(block, home_guess(entries_[block], self_), nullptr, false);
    if (!home || home->node == self_) return false;
    const std::size_t in_block = space_.offset_in_block(offset) & ~std::size_t{7};
    return copies_.word_of(home->node, block, in_block) != word;
}

// With the latch. As an acquire does with a block that is stale, and in its role: a release under
// way must find it with the engine or on the list (gather_work). What was written here and is not
// merged stays, for the next release. Left as it is where more hangs on it, or somebody has the
// role.
void Node::close(BlockId block) noexcept {
    BlockEntry& entry = entries_[block];
    const bool is_plain = entry.state == BlockState::readonly ||
                          entry.state == BlockState::readonly_dirty ||
                          entry.state == BlockState::writable;
    // A block may have come early and be mapped for no thread: the next fault would be taken for
    // the first access.
    if (!is_plain || races_.is_untouched(block) || entry.held_back || entry.stale.pinned ||
        must_stay(block))
        return;
    const std::unique_lock role{acquire_, std::try_to_lock};
    if (!role) return;
    entry.state = take(entry, BlockEvent::stale).next;
    const AddressRange range = program_range(block);
    engine_->unmap({&range, 1});
    const bool changed = has_changed(block);
    const BlockStep next =
        take(entry, changed ? BlockEvent::found_changed : BlockEvent::found_equal);
    if (has(next.work, BlockWork::remember)) put_on_unmerged(block);
    entry.state = next.next;
}

}  // namespace hiroba::dsm
