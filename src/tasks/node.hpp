// SPDX-License-Identifier: BSD-3-Clause
// Role: a node's part of a scheduler: its workers, what is ready to go on, what other nodes send,
// and when a run is over.
//
// A run is over when the first tasks of all nodes have ended: each task is waited for by the one
// that started it, so no other is left then. Node 0 counts them and tells the others.
// Thread: any, but for run_root().
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "hiroba/tasks.hpp"
#include "tasks/worker.hpp"

namespace hiroba::tasks {

/// Continuations that are ready to go on, oldest first. Any thread.
class ReadyList {
public:
    void push(Continuation* each) noexcept {
        const std::lock_guard lock(mutex_);
        each->next = nullptr;
        *last_ = each;
        last_ = &each->next;
        count_.fetch_add(1, std::memory_order_release);  // pairs with is_empty()
        if (!each->has_yielded) can_act_.fetch_add(1, std::memory_order_release);
    }
    Continuation* pop() noexcept {
        if (is_empty()) return nullptr;
        const std::lock_guard lock(mutex_);
        Continuation* const found = first_;
        if (found == nullptr) return nullptr;
        first_ = found->next;
        if (first_ == nullptr) last_ = &first_;
        count_.fetch_sub(1, std::memory_order_relaxed);  // a hint until the lock is held
        if (!found->has_yielded) can_act_.fetch_sub(1, std::memory_order_relaxed);
        return found;
    }
    bool is_empty() const noexcept { return count_.load(std::memory_order_acquire) == 0; }
    /// Whether there is one that did not just yield.
    bool has_news() const noexcept { return can_act_.load(std::memory_order_acquire) != 0; }

private:
    std::mutex mutex_;
    Continuation* first_ = nullptr;
    Continuation** last_ = &first_;
    std::atomic<std::uint32_t> count_{0}, can_act_{0};
};

/// Tasks that other nodes have sent here. Any thread.
class Inbox {
public:
    void push(const Entry& entry) {
        const std::lock_guard lock(mutex_);
        entries_.push_back(entry);
        count_.fetch_add(1, std::memory_order_release);  // pairs with is_empty()
    }
    bool pop(Entry& to) {
        if (is_empty()) return false;
        const std::lock_guard lock(mutex_);
        if (entries_.empty()) return false;
        to = entries_.front();
        entries_.pop_front();
        count_.fetch_sub(1, std::memory_order_relaxed);  // a hint until the lock is held
        return true;
    }
    bool is_empty() const noexcept { return count_.load(std::memory_order_acquire) == 0; }

private:
    std::mutex mutex_;
    std::deque<Entry> entries_;
    std::atomic<std::uint32_t> count_{0};
};

class Node final : public Scheduler {
public:
    Node(net::Network* network, const Options& options);
    ~Node() override;
    /// Reserves memory and handlers of the network. @return false, and `why`
    bool prepare(std::string* why);

    Counts counts() const noexcept override;

    const Options& options() const noexcept { return options_; }
    net::Network* network() noexcept { return network_; }
    NodeId self() const noexcept { return self_; }
    std::uint32_t nodes() const noexcept { return nodes_; }
    ReadyList& ready() noexcept { return ready_; }
    Inbox& inbox() noexcept { return inbox_; }
    std::uint32_t workers() const noexcept { return static_cast<std::uint32_t>(workers_.size()); }
    Worker& worker(std::uint32_t index) noexcept { return *workers_[index]; }
    bool is_to_tell_over() const noexcept { return tell_over_.load(std::memory_order_acquire); }
    bool is_over() const noexcept {
        return over_.load(std::memory_order_acquire);  // pairs with end_run()
    }
    /// The first task, once: its stack. nullptr: none, or it has begun.
    Stack* take_root() noexcept { return root_.exchange(nullptr); }
    void root_ended() noexcept;
    /// On node 0: tells the others that the run is over, once it is. A worker, between tasks.
    void tell_over() noexcept;

    /// The type that `entry` names; ends the process where this program has none such.
    const detail::TaskType& type_of(const Entry& entry) const;
    /// Calls the task. Its result goes to its Join, here or to its home.
    /// @return a continuation that may go on now
    Continuation* run(const Entry& entry);
    void send_task(NodeId to, const Entry& entry, const void* closure);

    /// Whether all nodes' offers are mapped, and where.
    bool maps_all() const noexcept { return !mapped_.empty(); }
    Offers mapped_offers(NodeId node, std::uint32_t worker) const noexcept;
    net::RemoteAddress offers_at(std::uint32_t worker) const noexcept {
        return {handle_, worker * Offers::bytes_of(options_.offers)};
    }
    /// Wakes workers that rest.
    void wake() noexcept {
        if (network_ != nullptr) network_->wake();
    }

protected:
    void run_root(void (*enter)(void*), void* argument) override;
    bool is_first() const noexcept override { return self_.value == 0; }
    void share(std::span<std::byte> result) noexcept override;

private:
    void make_workers();
    void check_programs();
    void count_root() noexcept;
    void end_run() noexcept;
    void message(NodeId to, std::uint8_t id, std::span<const std::uint64_t> arguments,
                 net::Urgency urgency) noexcept;
    static void on_ended(void* node, NodeId from, std::span<const std::uint64_t> arguments,
                         std::span<const std::byte> payload) noexcept;
    static void on_task(void* node, NodeId from, std::span<const std::uint64_t> arguments,
                        std::span<const std::byte> payload) noexcept;
    static void on_control(void* node, NodeId from, std::span<const std::uint64_t> arguments,
                           std::span<const std::byte> payload) noexcept;

    net::Network* const network_;
    const Options options_;
    NodeId self_{};
    std::uint32_t nodes_ = 1;
    net::Handle handle_{};
    std::unique_ptr<std::byte, decltype(&std::free)> own_memory_;  ///< of offers, without a network
    std::vector<std::byte*> mapped_;
    std::vector<const detail::TaskType*> types_;
    std::vector<std::unique_ptr<Worker>> workers_;
    ReadyList ready_;
    Inbox inbox_;
    std::atomic<Stack*> root_{nullptr};
    std::atomic<bool> over_{false}, tell_over_{false};
    std::atomic<std::uint32_t> roots_ended_{0};
};

/// The types of tasks of this program that may move, in the order of their numbers.
std::vector<const detail::TaskType*> task_types();
/// A task of `join` has ended elsewhere than where it is waited for. @return who waited, if that
/// was the last
Continuation* complete(detail::Join& join) noexcept;

}  // namespace hiroba::tasks
