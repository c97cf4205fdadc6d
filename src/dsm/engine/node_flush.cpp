// SPDX-License-Identifier: BSD-3-Clause
// Role: flush: a release and an acquire in one critical section on one job-wide object, so that
// all flushes are totally ordered (design page omp.md section 5).
// Layout of the object, in node 0's part of flush_object_: word 0 lock, word 8 version, word 16
// bytes of news, each on its own line; the news follow on the next page boundary.
#include <mutex>

#include "base/thread_context.hpp"
#include "dsm/engine/node.hpp"

namespace hiroba::dsm {

namespace {
constexpr gas::GlobalAddress lock_word{NodeId{0}, 0};
constexpr gas::GlobalAddress version_word{NodeId{0}, 64};
constexpr gas::GlobalAddress size_word{NodeId{0}, 128};
constexpr gas::GlobalAddress news{NodeId{0}, page_bytes};
}  // namespace

void Node::flush() noexcept {
    count(&PlaceCounters::flushes);
    on_runtime_stack([&] { flush_on_runtime_stack(); });
}

bool Node::publish() noexcept {
    bool found = false;
    on_runtime_stack([&] { found = flush_on_runtime_stack(); });
    return found;
}

// The merges happen inside the object's critical section: whoever finds a page newer than it was
// told (catch_up) takes the lock and then finds the news that belong to it.
bool Node::flush_on_runtime_stack() noexcept {
    const std::scoped_lock guard{flush_latch_};
    const std::scoped_lock role{release_};
    gather_work();
    drop_unchanged_work();
    const bool untold = work_count_ > 0 || last_sequence() != flush_sequence_;
    if (!untold && flush_object_.load(version_word) == flush_seen_) return false;

    lock_flush_object();
    merge_work(Others::running);
    std::uint64_t version = learn_flushed();
    if (untold) {
        const std::size_t bytes = news_for_anyone(flush_buffer_);
        flush_object_.put(news, {flush_buffer_.data(), bytes});
        flush_object_.store(size_word, bytes);
        flush_object_.store(version_word, ++version);
    }
    flush_seen_ = version;
    flush_sequence_ = last_sequence();
    flush_object_.store(lock_word, 0);
    return true;
}

void Node::lock_flush_object() noexcept {
    Backoff backoff;
    while (flush_object_.compare_swap(lock_word, 0, self_.value + 1) != 0) backoff.pause();
}

// With the object's lock: acquires what others have flushed; returns the version.
std::uint64_t Node::learn_flushed() noexcept {
    const std::uint64_t version = flush_object_.load(version_word);
    if (version != flush_seen_) {
        const std::size_t bytes = flush_object_.load(size_word);
        flush_object_.get(news, {flush_buffer_.data(), bytes});
        learn(NodeId{~0u}, {flush_buffer_.data(), bytes});
        acquire_on_runtime_stack();
    }
    return version;
}

NewsSequence Node::last_sequence() noexcept {
    const std::scoped_lock guard{signature_latch_};
    return signature_.last_sequence();
}

// Programs that spin on a flag with a flush in the loop and none behind it (NPB LU) rely on memory
// becoming visible in order. A fault that brings a page newer than any notice told would show the
// flag before the data written ahead of it; so the rest of that flush is acquired too.
void Node::catch_up() noexcept {
    if (flush_object_.load(version_word) == 0) return;  // nobody has ever flushed
    on_runtime_stack([&] {
        const std::scoped_lock guard{flush_latch_};
        lock_flush_object();
        flush_seen_ = learn_flushed();
        flush_object_.store(lock_word, 0);
    });
}

}  // namespace hiroba::dsm
