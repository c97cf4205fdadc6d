// SPDX-License-Identifier: BSD-3-Clause
// Role: what nodes send each other about tasks, as bytes, and where it lies until a thread that may
// acquire looks at it.
// Invariant: a mail is a header, `count` records of the kind's type, and the news of the sender's
// memory, complete ones. A TaskInbox holds exact copies of mails, in the order they came; adding to
// it neither waits nor uses the heap, because handlers run wherever a thread polls.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/latch.hpp"

namespace hiroba::omp {

struct TaskMailHeader {
    enum class Kind : std::uint32_t {
        here,       ///< the sender has tasks in this region; no records
        wanted,     ///< any task; no records
        wanted_of,  ///< tasks that descend from these of the sender, TaskHandle; answered by tasks
        given,      ///< GivenTask; none: there is nothing now, and the request is remembered
        told,       ///< GuestReport
        fulfilled,  ///< TaskHandle of the receiver's tasks whose events are
        group_cancelled,   ///< TaskHandle of the receiver's tasks in whose groups a guest cancelled
        guests_cancelled,  ///< TaskHandle of the sender's tasks that are away and are cancelled
        single_wanted,     ///< a number: what the receiver's threads stored in singles from it on
        single_told,       ///< the answer; no records, and no news if they got none
    } kind{};
    std::uint32_t count = 0;
    std::uint64_t region = 0;
    std::uint64_t barriers = 0;      ///< of the region that the sender has passed
    std::uint32_t record_bytes = 0;  ///< of all, together
    std::uint32_t news_bytes = 0;
};

/// Thread: add() and empty() any; the rest one at a time.
class TaskInbox {
public:
    struct Mail {
        NodeId from;
        TaskMailHeader header;
        Bytes records;  ///< aligned to 8
        Bytes news;
        Bytes body;  ///< all of it, as it was added
        template <class Record>
        Record record(std::size_t index) const noexcept;
    };

    TaskInbox() = default;
    TaskInbox(const TaskInbox&) = delete;
    TaskInbox& operator=(const TaskInbox&) = delete;
    ~TaskInbox();

    bool empty() const noexcept { return arrived_bytes_.load(std::memory_order_acquire) == 0; }
    /// A body that is no mail is fatal.
    void add(NodeId from, Bytes body) noexcept;
    /// Takes all mails out for next(); forgets those taken before.
    void take() noexcept;
    /// Reads the taken ones from the start again.
    void rewind() noexcept { at_ = 0; }
    std::optional<Mail> next() noexcept;

private:
    /// Anonymous memory that grows, never by malloc.
    struct Store {
        std::byte* bytes = nullptr;
        std::size_t capacity = 0;
        void make_room(std::size_t wanted) noexcept;
    };
    Latch latch_;
    std::atomic<std::size_t> arrived_bytes_{0};  // written under latch_
    Store arrived_, taken_;
    std::size_t taken_bytes_ = 0, at_ = 0;
};

template <class Record>
Record TaskInbox::Mail::record(std::size_t index) const noexcept {
    Record record;
    __builtin_memcpy(static_cast<void*>(&record), records.data() + index * sizeof record,
                     sizeof record);
    return record;
}

}  // namespace hiroba::omp
