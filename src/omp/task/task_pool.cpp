// SPDX-License-Identifier: BSD-3-Clause
#include "omp/task/task_pool.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/fatal.hpp"
#include "dsm/heap/heap.hpp"
#include "net/net.hpp"

namespace hiroba::omp {

namespace {
/// Tasks that wait on a node, per thread.
constexpr std::size_t ready_per_thread_max = 256;
/// All tasks of a node, most of them waiting for others.
constexpr std::size_t used_max = std::size_t{1} << 20;

/// LLVM's runtime has a setting by which its tasks wait however many there are.
bool throttles() noexcept {
    const char* const set = std::getenv("KMP_ENABLE_TASK_THROTTLING");
    return set == nullptr || (std::strcmp(set, "0") != 0 && std::strcmp(set, "false") != 0);
}
}  // namespace

TaskPool::TaskPool(const Parts& parts)
    : parts_(parts),
      book_(parts.endpoint != nullptr ? parts.endpoint->self() : NodeId{0}, parts.observer) {
    patience_.endpoint = parts.endpoint;
    const std::size_t per_thread = std::max(parts_.threads_per_node, 1u);
    ready_max_ = throttles() ? ready_per_thread_max * per_thread : used_max;
    if (parts.memory != nullptr) exchange_ = std::make_unique<TaskExchange>(parts, *this);
}

void TaskPool::attach() {
    if (exchange_ != nullptr) exchange_->attach();
}

void TaskPool::end_change(bool attends) noexcept {
    const bool enough = book_.ready() >= ready_max_ || book_.used() >= used_max;
    if (enough != has_enough()) has_enough_.store(enough, std::memory_order_relaxed);
    const bool moved = book_.events() != events_.load(std::memory_order_relaxed);
    // Under the latch, so the newest value stays.
    if (moved) events_.store(book_.events(), std::memory_order_seq_cst);  // before has_waiting()
    const std::uint64_t offers = book_.offers();
    latch_.unlock();
    if (!moved) return;
    if (exchange_ != nullptr) exchange_->see_offers(offers, attends);
    if (has_waiting()) ring();
}

void TaskPool::ring() noexcept {
    if (patience_.endpoint != nullptr)
        patience_.endpoint->wake_local();
    else
        bell_.advance(patience_);
}

TaskPool::Waiting::~Waiting() {
    pool_.waiting_.fetch_sub(1);
    // The clerk reads mails that came for a waiting thread when none waits any more.
    if (!will_attend_ && pool_.exchange_ != nullptr && pool_.exchange_->has_work())
        pool_.exchange_->call_clerk();
}

void* TaskPool::allocate_argument(std::size_t bytes, std::size_t alignment) noexcept {
    const RuntimeScope here;
    void* block = nullptr;
    if (alignment < alignof(std::max_align_t)) alignment = alignof(std::max_align_t);
    if (parts_.heap != nullptr) {
        bool zeroed = false;
        block = parts_.heap->allocate(bytes, alignment, &zeroed);
    } else if (alignment == alignof(std::max_align_t)) {
        block = std::malloc(bytes);
    } else {
        block = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    }
    if (block == nullptr)
        die(exit_environment, "no memory for a task's %lu bytes of arguments; set HIROBA_HEAP",
            static_cast<unsigned long>(bytes));
    return block;
}

void TaskPool::free_argument(void* argument) noexcept {
    const RuntimeScope here;
    if (parts_.heap != nullptr)
        parts_.heap->deallocate(argument);
    else
        std::free(argument);
}

}  // namespace hiroba::omp
