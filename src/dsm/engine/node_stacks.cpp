// SPDX-License-Identifier: BSD-3-Clause
// Role: stacks of threads that the program makes: memory of the heap that must not become
// inaccessible while a thread stands on it.
// Invariant: what the kernel writes without asking (the word that tells of a thread's end, signal
// frames, buffers on the stack) finds a page that was touched once mapped and writable.
#include <algorithm>
#include <atomic>

#include "base/thread_context.hpp"
#include "dsm/engine/node.hpp"
#include "dsm/memory/kernel_calls.hpp"
#include "dsm/memory/own_tls.hpp"

namespace hiroba::dsm {

namespace {
/// The part of such a stack that goes into a core file: its upper end.
constexpr std::size_t core_bytes_max = std::size_t{256} << 10;

AddressRange part_for_core(AddressRange stack) noexcept {
    const std::size_t bytes = std::min(stack.bytes, core_bytes_max);
    return {(stack.end() - bytes) & ~(page_bytes - 1), bytes};
}
}  // namespace

void Node::hold_stack(AddressRange stack, std::size_t guard_bytes) noexcept {
    if (guard_bytes > 0) on_runtime_stack([&] { close_guard({stack.address, guard_bytes}); });
    const RuntimeScope latches;
    space_.for_blocks(reinterpret_cast<const void*>(stack.address + guard_bytes),
                      stack.bytes - guard_bytes, [&](BlockId block) {
                          let_writes(block);
                          BlockEntry& entry = entries_[block];
                          const std::scoped_lock guard{entry.latch};
                          stop_keeping(block);
                          HIROBA_INVARIANT(entry.pins < UINT16_MAX, "block %u: %u pins", block,
                                           entry.pins);
                          ++entry.pins;
                      });
    const AddressRange core = part_for_core(stack);
    kernel_call(SYS_madvise, core.address, core.bytes, MADV_DODUMP);
}

void Node::drop_stack(AddressRange stack, std::size_t guard_bytes) noexcept {
    const RuntimeScope latches;
    space_.for_blocks(reinterpret_cast<const void*>(stack.address), guard_bytes,
                      [&](BlockId block) {
                          const std::scoped_lock guard{entries_[block].latch};
                          entries_[block].guards_stack = false;
                      });
    unpin(reinterpret_cast<const void*>(stack.address + guard_bytes), stack.bytes - guard_bytes);
    const AddressRange core = part_for_core(stack);
    kernel_call(SYS_madvise, core.address, core.bytes, MADV_DONTDUMP);
}

void Node::allow_execution(AddressRange range) noexcept {
    const RuntimeScope latches;
    space_.for_blocks(reinterpret_cast<const void*>(range.address), range.bytes,
                      [&](BlockId block) { let_writes(block); });
    engine_->allow_execution(range);
}

// The heap may have used the memory before, so it may be mapped.
void Node::close_guard(AddressRange guard) noexcept {
    const std::scoped_lock role{acquire_};
    space_.for_blocks(reinterpret_cast<const void*>(guard.address), guard.bytes,
                      [&](BlockId block) {
                          if (acquire_.invalidation().is_full()) finish_invalidations();
                          BlockEntry& entry = entries_[block];
                          entry.latch.lock();
                          entry.guards_stack = true;
                          stop_keeping(block);
                          if (readable(entry.state))
                              make_stale(block);
                          else
                              entry.latch.unlock();
                      });
    finish_invalidations();
}

// Stacks and TLS of this node's threads never become inaccessible (invariant 8), so that no latch
// is needed. Of other memory that stays only the thread's own TLS: what else is pinned need not be
// for ever. Their first touch is an ordinary fault.
bool Node::restore(std::uintptr_t address) noexcept {
    const auto offset = map().offset_of(address);
    if (!offset) return false;
    const BlockId block = block_at(*offset);
    if (!is_pinned(*offset) && (entries_[block].pins == 0 || !is_own_tls(address))) return false;
    const BlockState state = std::atomic_ref{entries_[block].state}.load(std::memory_order_relaxed);
    if (state != BlockState::pinned && !keeps_lock(state)) return false;
    if (entries_[block].guards_stack) return false;
    engine_->map(program_range(block), Access::write);
    return true;
}

}  // namespace hiroba::dsm
