// SPDX-License-Identifier: BSD-3-Clause
// Role: the inbox: two arrays that are swapped, so that neither side waits for the other's work.
#include "omp/task/task_mail.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/fatal.hpp"

namespace hiroba::omp {

namespace {
constexpr std::size_t first_capacity = std::size_t{256} << 10;

struct Stored {
    std::uint32_t from;
    std::uint32_t body_bytes;
};
}  // namespace

void TaskInbox::Store::make_room(std::size_t wanted) noexcept {
    if (wanted <= capacity) return;
    const std::size_t next = round_up(std::max({wanted, 2 * capacity, first_capacity}), page_bytes);
    void* const place = bytes != nullptr ? mremap(bytes, capacity, next, MREMAP_MAYMOVE)
                                         : mmap(nullptr, next, PROT_READ | PROT_WRITE,
                                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    HIROBA_INVARIANT(place != MAP_FAILED, "no memory for %lu bytes of mails about tasks", next);
    bytes = static_cast<std::byte*>(place);
    capacity = next;
}

TaskInbox::~TaskInbox() {
    for (const Store& store : {arrived_, taken_})
        if (store.bytes != nullptr) munmap(store.bytes, store.capacity);
}

void TaskInbox::add(NodeId from, Bytes body) noexcept {
    TaskMailHeader header;
    HIROBA_INVARIANT(body.size() >= sizeof header, "a mail about tasks of %lu bytes from node %u",
                     static_cast<unsigned long>(body.size()), from.value);
    std::memcpy(&header, body.data(), sizeof header);
    HIROBA_INVARIANT(
        body.size() == sizeof header + std::size_t{header.record_bytes} + header.news_bytes,
        "a mail about tasks of %lu bytes from node %u says %u and %u",
        static_cast<unsigned long>(body.size()), from.value, header.record_bytes,
        header.news_bytes);
    const Stored stored{from.value, static_cast<std::uint32_t>(body.size())};
    const std::scoped_lock guard{latch_};
    const std::size_t at = arrived_bytes_.load(std::memory_order_relaxed);
    const std::size_t end = at + sizeof stored + round_up(body.size(), 8);
    arrived_.make_room(end);
    std::memcpy(arrived_.bytes + at, &stored, sizeof stored);
    std::memcpy(arrived_.bytes + at + sizeof stored, body.data(), body.size());
    arrived_bytes_.store(end, std::memory_order_release);  // pairs with empty()
}

void TaskInbox::take() noexcept {
    const std::scoped_lock guard{latch_};
    std::swap(arrived_, taken_);
    taken_bytes_ = arrived_bytes_.exchange(0, std::memory_order_acq_rel);
    at_ = 0;
}

std::optional<TaskInbox::Mail> TaskInbox::next() noexcept {
    if (at_ == taken_bytes_) return std::nullopt;
    Stored stored;
    std::memcpy(&stored, taken_.bytes + at_, sizeof stored);
    const std::byte* const body = taken_.bytes + at_ + sizeof stored;
    at_ += sizeof stored + round_up(stored.body_bytes, 8);
    Mail mail{NodeId{stored.from}, {}, {}, {}, {body, stored.body_bytes}};
    std::memcpy(&mail.header, body, sizeof mail.header);
    mail.records = {body + sizeof mail.header, mail.header.record_bytes};
    mail.news = {body + sizeof mail.header + mail.header.record_bytes, mail.header.news_bytes};
    return mail;
}

}  // namespace hiroba::omp
