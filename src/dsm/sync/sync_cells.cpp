// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/sync/sync_cells.hpp"

#include <cstddef>
#include <cstring>
#include <mutex>

#include "base/clock.hpp"
#include "base/fatal.hpp"
#include "base/thread_context.hpp"
#include "dsm/messages.hpp"

namespace hiroba::dsm {

namespace {

constexpr std::uint32_t buckets_per_node = 1u << 14;
constexpr std::uint32_t cells_per_node = 1u << 18;
constexpr std::uint32_t waiters_per_node = 1u << 14;
constexpr std::size_t line = cache_line_bytes;

// Parts of every node's segment: buckets, cells, waiters, one line of counts, news.
constexpr std::size_t cells_at = buckets_per_node * line;
constexpr std::size_t waiters_at = cells_at + cells_per_node * line;
constexpr std::size_t counts_at = waiters_at + waiters_per_node * line;
constexpr std::size_t news_at = counts_at + line;

// Words of a bucket. `owing` is a node plus one.
constexpr std::size_t held = 0, first_cell = 8, version = 16, news_bytes = 24, owing = 32,
                      eager = 40;
// Words of a cell. The key is stored as it is: no object lies at address 0.
constexpr std::size_t key_of = 0, next_cell = 8, kind_of = 16, state_of = 24, amount_of = 32,
                      head_of = 40, tail_of = 48;
// Words of a waiter.
constexpr std::size_t granted = 0, next_waiter = 8, mode_of = 16, thread_of = 24;

/// How many releases are made at once, rather than owed, after the object came from another node.
constexpr std::uint64_t eager_releases = 16;

struct DebtRequest {
    std::uint32_t node, index;
};

std::size_t stride_of(const SharedMemory& memory) {
    return round_up(memory.news_bytes_max(), line);
}

}  // namespace

std::size_t SyncCells::segment_bytes(const SharedMemory& memory) {
    return news_at + buckets_per_node * stride_of(memory);
}

SyncCells::SyncCells(net::Endpoint& endpoint, SharedMemory& memory, DebtPayer& payer,
                     gas::Segment segment)
    : endpoint_(endpoint),
      memory_(memory),
      segment_(std::move(segment)),
      news_stride_(stride_of(memory)),
      payer_(payer),
      seen_(std::size_t{endpoint.nodes()} * buckets_per_node),
      free_waiters_(waiters_per_node),
      free_waiter_count_(waiters_per_node),
      buffer_(news_stride_) {
    for (std::uint32_t i = 0; i < waiters_per_node; ++i) {
        free_waiters_[i] = waiters_per_node - 1 - i;
    }
    endpoint.on(message::release_wanted, &on_debt, this);
}

SyncThread SyncCells::self() const noexcept {
    constexpr unsigned address_bits = 48;
    const auto context = reinterpret_cast<std::uintptr_t>(&this_thread());
    return std::uint64_t{endpoint_.self().value + 1} << address_bits | context;
}

// --- places --------------------------------------------------------------------------------------

gas::GlobalAddress SyncCells::at(Bucket bucket, std::size_t word) const noexcept {
    return {bucket.node, bucket.index * line + word};
}
gas::GlobalAddress SyncCells::at(Cell cell, std::size_t word) const noexcept {
    return {cell.node, cells_at + (cell.index - 1) * line + word};
}
gas::GlobalAddress SyncCells::at(SyncWaiter waiter, std::size_t word) const noexcept {
    return {waiter.node(), waiters_at + waiter.index() * line + word};
}
gas::GlobalAddress SyncCells::used_cells(NodeId node) const noexcept { return {node, counts_at}; }
gas::GlobalAddress SyncCells::news_of(Bucket bucket) const noexcept {
    return {bucket.node, news_at + bucket.index * news_stride_};
}

SyncCells::Bucket SyncCells::bucket_of(SyncKey key) const noexcept {
    const std::uint64_t hash = key * 0x9E37'79B9'7F4A'7C15u;
    return {NodeId{static_cast<std::uint32_t>((hash >> 48) % endpoint_.nodes())},
            static_cast<std::uint32_t>(hash >> 20) % buckets_per_node};
}

std::atomic<std::uint64_t>& SyncCells::seen(Bucket bucket) noexcept {
    return seen_[std::size_t{bucket.node.value} * buckets_per_node + bucket.index];
}

SyncCells::Cell SyncCells::new_cell(NodeId node) noexcept {
    const std::uint64_t used = segment_.fetch_add(used_cells(node), 1);
    if (used >= cells_per_node) {
        die(exit_environment,
            "more than %u synchronization objects in use that hash to node %u; destroy semaphores "
            "that are no longer used",
            cells_per_node, node.value);
    }
    return {node, static_cast<std::uint32_t>(used) + 1};
}

SyncWaiter SyncCells::take_waiter() noexcept {
    const std::scoped_lock guard{waiters_latch_};
    HIROBA_INVARIANT(free_waiter_count_ > 0, "%u threads wait on one node", waiters_per_node);
    return SyncWaiter::make(endpoint_.self(), free_waiters_[--free_waiter_count_]);
}

void SyncCells::give_back(SyncWaiter waiter) noexcept {
    const std::scoped_lock guard{waiters_latch_};
    free_waiters_[free_waiter_count_++] = waiter.index();
}

// --- waiting -------------------------------------------------------------------------------------

bool SyncCells::await(SyncWaiter waiter, const Deadline* deadline) noexcept {
    return await_until(waiter, deadline, nullptr);
}

bool SyncCells::await(SyncWaiter waiter, const Deadline& deadline, bool* interrupted) noexcept {
    return await_until(waiter, &deadline, interrupted);
}

/// Goes on after a handler of the program where `handled` is null.
bool SyncCells::await_until(SyncWaiter waiter, const Deadline* deadline, bool* handled) noexcept {
    const auto is_granted = [&] { return segment_.load(at(waiter, granted)) != 0; };
    const auto interrupted = [&] { return interruptions_.are_pending(); };
    for (;;) {
        const std::uint64_t left_ns = deadline == nullptr ? ~0ull : deadline->left_ns();
        const std::uint64_t until_ns = left_ns == ~0ull ? ~0ull : now_ns() + left_ns;
        on_runtime_stack(
            [&] { endpoint_.wait_until([&] { return is_granted() || interrupted(); }, until_ns); });
        if (is_granted()) return true;
        if (deadline != nullptr && deadline->left_ns() == 0) return false;
        if (!interrupted()) continue;
        interruptions_.serve();
        if (handled != nullptr) return *handled = true, is_granted();
    }
}

// --- news ----------------------------------------------------------------------------------------

void SyncCells::put_news(Bucket bucket) noexcept {
    const std::scoped_lock guard{buffer_latch_};
    const std::size_t bytes = memory_.news_for_anyone(buffer_.span());
    segment_.put(news_of(bucket), {buffer_.data(), bytes});
    segment_.store(at(bucket, news_bytes), bytes);
    const std::uint64_t next = segment_.load(at(bucket, version)) + 1;
    segment_.store(at(bucket, version), next);
    seen(bucket).store(next, std::memory_order_release);  // pairs with is_caught_up()
}

void SyncCells::take_news(Bucket bucket) noexcept {
    {
        const std::scoped_lock guard{buffer_latch_};
        const std::size_t bytes = segment_.load(at(bucket, news_bytes));
        segment_.get(news_of(bucket), {buffer_.data(), bytes});
        memory_.learn(NodeId{~0u}, {buffer_.data(), bytes});
    }
    memory_.acquire(Others::running);
}

bool SyncCells::is_caught_up(SyncKey key) noexcept {
    const Bucket bucket = bucket_of(key);
    // The debt first: its payment makes a version, and ends it then.
    std::array<std::uint64_t, 1> owes{}, newest{};
    std::array<gas::Segment::Access, 2> look{
        gas::Segment::Access::get(segment_, at(bucket, owing).offset,
                                  std::as_writable_bytes(std::span(owes))),
        gas::Segment::Access::get(segment_, at(bucket, version).offset,
                                  std::as_writable_bytes(std::span(newest)))};
    gas::Segment::in_order(bucket.node, look);
    // Acquire: pairs with the release in put_news() and catch_up(): what the thread of this node
    // had acquired that stored it is visible here.
    return (owes[0] == 0 || owes[0] == endpoint_.self().value + 1) &&
           seen(bucket).load(std::memory_order_acquire) == newest[0];
}

// The creditor holds the bucket until the debt is paid, so there is one request for it at most.
void SyncCells::on_debt(void* cells, NodeId from, Bytes body) noexcept {
    auto* const self = static_cast<SyncCells*>(cells);
    DebtRequest request;
    HIROBA_INVARIANT(body.size() == sizeof request, "a request of %lu bytes", body.size());
    std::memcpy(&request, body.data(), sizeof request);
    const std::uint64_t bucket = std::uint64_t{request.node} << 32 | request.index;
    self->payer_.add({&pay_debt, self, bucket, from});
}

void SyncCells::pay_debt(void* cells, std::uint64_t bucket_raw, NodeId creditor) noexcept {
    auto* const self = static_cast<SyncCells*>(cells);
    const Bucket bucket{NodeId{static_cast<std::uint32_t>(bucket_raw >> 32)},
                        static_cast<std::uint32_t>(bucket_raw)};
    self->memory_.release(Others::running);
    self->put_news(bucket);
    self->segment_.store(self->at(bucket, owing), 0);
    self->endpoint_.wake(creditor);
}

// --- visits --------------------------------------------------------------------------------------

SyncCells::Visit::Visit(SyncCells& cells, SyncKey key, CellKind kind, Find find) noexcept
    : cells_(cells), bucket_(cells.bucket_of(key)) {
    const std::uint64_t mine = cells.endpoint_.self().value + 1;
    for (Backoff backoff;; backoff.pause()) {
        std::array<Access, 2> enter{
            Access::compare_swap(cells.segment_, cells.at(bucket_, held).offset, 0, mine),
            Access::get(cells.segment_, cells.at(bucket_, 0).offset,
                        std::as_writable_bytes(std::span(bucket_words_)))};
        gas::Segment::in_order(bucket_.node, enter);
        if (enter[0].found == 0) break;
    }
    if (find != Find::nothing) find_cell(key, kind, find);
}

SyncCells::Visit::~Visit() {
    if (cell_changed_ || bucket_changed_)
        write_back();
    else
        cells_.segment_.store(cells_.at(bucket_, held), 0);
}

/// What has changed, and then opens the bucket. The bucket's other words are of put_news(), and
/// stand as it left them.
void SyncCells::Visit::write_back() noexcept {
    gas::Segment& segment = cells_.segment_;
    const auto place = [this](std::size_t word) { return cells_.at(bucket_, word).offset; };
    static_assert(eager == owing + sizeof(Line::value_type));
    const std::span debt = std::span{bucket_words_}.subspan(owing / sizeof(Line::value_type), 2);
    std::array<Access, 4> leave{
        Access::put(segment, cells_.at(cell_, 0).offset,
                    std::as_writable_bytes(std::span(cell_words_))),
        Access::store(segment, place(first_cell), get_of_bucket(first_cell)),
        Access::put(segment, place(owing), std::as_writable_bytes(debt)),
        Access::store(segment, place(held), 0)};
    gas::Segment::in_order(bucket_.node, std::span(leave).subspan(has_cell() ? 0 : 1));
}

std::uint64_t SyncCells::Visit::get(std::size_t word) const noexcept {
    return cell_words_[word / sizeof(std::uint64_t)];
}
void SyncCells::Visit::set(std::size_t word, std::uint64_t value) noexcept {
    cell_words_[word / sizeof(std::uint64_t)] = value;
    cell_changed_ = true;
}
std::uint64_t SyncCells::Visit::get_of_bucket(std::size_t word) const noexcept {
    return bucket_words_[word / sizeof(std::uint64_t)];
}
void SyncCells::Visit::set_of_bucket(std::size_t word, std::uint64_t value) noexcept {
    bucket_words_[word / sizeof(std::uint64_t)] = value;
    bucket_changed_ = true;
}
void SyncCells::Visit::get_cell(Cell cell) noexcept {
    cells_.segment_.get(cells_.at(cell, 0), std::as_writable_bytes(std::span(cell_words_)));
}
std::uint64_t SyncCells::Visit::state() const noexcept { return get(state_of); }
void SyncCells::Visit::set_state(std::uint64_t value) noexcept { set(state_of, value); }
std::uint64_t SyncCells::Visit::amount() const noexcept { return get(amount_of); }
void SyncCells::Visit::set_amount(std::uint64_t value) noexcept { set(amount_of, value); }

bool SyncCells::Visit::is_idle() const noexcept {
    return get(state_of) == 0 && get(amount_of) == 0 && get(head_of) == 0;
}

void SyncCells::Visit::find_cell(SyncKey key, CellKind kind, Find find) noexcept {
    Cell idle{bucket_.node, 0};
    Cell cell = idle;
    std::uint64_t next_of_idle = 0;
    for (std::uint64_t raw = get_of_bucket(first_cell); raw != 0; raw = get(next_cell)) {
        cell.index = static_cast<std::uint32_t>(raw);
        get_cell(cell);
        if (get(key_of) == key) {
            if (get(kind_of) == static_cast<std::uint64_t>(kind)) {
                cell_ = cell;
                return;
            }
            // Memory that was another kind of object, which no thread uses any more.
            if (find != Find::existing) take_cell(cell, key, kind, get(next_cell));
            return;
        }
        if (idle.index == 0 && is_idle()) {
            idle = cell;
            next_of_idle = get(next_cell);
        }
    }
    if (find == Find::existing) return;
    if (idle.index == 0) {
        idle = cells_.new_cell(bucket_.node);
        next_of_idle = get_of_bucket(first_cell);
        set_of_bucket(first_cell, idle.index);
    }
    take_cell(idle, key, kind, next_of_idle);
}

void SyncCells::Visit::take_cell(Cell cell, SyncKey key, CellKind kind,
                                 std::uint64_t next) noexcept {
    cell_ = cell;
    fresh_ = true;
    cell_words_ = {};
    set(key_of, key);
    set(next_cell, next);
    set(kind_of, static_cast<std::uint64_t>(kind));
}

SyncWaiter SyncCells::Visit::enqueue(std::uint64_t mode) noexcept {
    gas::Segment& segment = cells_.segment_;
    const SyncWaiter waiter = cells_.take_waiter();
    segment.store(cells_.at(waiter, granted), 0);
    segment.store(cells_.at(waiter, next_waiter), 0);
    segment.store(cells_.at(waiter, mode_of), mode);
    segment.store(cells_.at(waiter, thread_of), cells_.self());
    const SyncWaiter last{get(tail_of)};
    if (last)
        segment.store(cells_.at(last, next_waiter), waiter.raw);
    else
        set(head_of, waiter.raw);
    set(tail_of, waiter.raw);
    return waiter;
}

bool SyncCells::Visit::has_waiters() const noexcept { return get(head_of) != 0; }
NodeId SyncCells::Visit::next_node() const noexcept { return SyncWaiter{get(head_of)}.node(); }
std::uint64_t SyncCells::Visit::next_mode() const noexcept {
    return cells_.segment_.load(cells_.at(SyncWaiter{get(head_of)}, mode_of));
}

SyncThread SyncCells::Visit::grant_next() noexcept {
    gas::Segment& segment = cells_.segment_;
    const SyncWaiter waiter{get(head_of)};
    const SyncThread thread = segment.load(cells_.at(waiter, thread_of));
    const std::uint64_t next = segment.load(cells_.at(waiter, next_waiter));
    set(head_of, next);
    if (next == 0) set(tail_of, 0);
    // From here on the waiter belongs to its thread again.
    segment.store(cells_.at(waiter, granted), 1);
    cells_.endpoint_.wake(waiter.node());
    return thread;
}

void SyncCells::Visit::grant_all() noexcept {
    while (has_waiters()) grant_next();
}

std::uint32_t SyncCells::Visit::grant_some(std::uint64_t bits, std::uint32_t at_most) noexcept {
    gas::Segment& segment = cells_.segment_;
    std::uint32_t count = 0;
    SyncWaiter before{}, next{};
    for (SyncWaiter w{get(head_of)}; w && count < at_most; w = next) {
        next = SyncWaiter{segment.load(cells_.at(w, next_waiter))};
        if ((segment.load(cells_.at(w, mode_of)) & bits) == 0) {
            before = w;
            continue;
        }
        take_out(w, before);
        ++count;
        segment.store(cells_.at(w, granted), 1);  // as in grant_next()
        cells_.endpoint_.wake(w.node());
    }
    return count;
}

/// @param before  in the list in front of it; none: it is the first
void SyncCells::Visit::take_out(SyncWaiter waiter, SyncWaiter before) noexcept {
    gas::Segment& segment = cells_.segment_;
    const std::uint64_t next = segment.load(cells_.at(waiter, next_waiter));
    if (before)
        segment.store(cells_.at(before, next_waiter), next);
    else
        set(head_of, next);
    if (next == 0) set(tail_of, before.raw);
}

bool SyncCells::Visit::withdraw(SyncWaiter waiter) noexcept {
    gas::Segment& segment = cells_.segment_;
    if (segment.load(cells_.at(waiter, granted)) != 0) return false;
    SyncWaiter before{};
    for (SyncWaiter w{get(head_of)}; w; w = SyncWaiter{segment.load(cells_.at(w, next_waiter))}) {
        if (w.raw != waiter.raw) {
            before = w;
            continue;
        }
        take_out(w, before);
        return true;
    }
    fatal("waiter 0x%lx is neither granted nor in the list of its object", waiter.raw);
}

void SyncCells::Visit::catch_up() noexcept {
    gas::Segment& segment = cells_.segment_;
    const std::uint64_t self = cells_.endpoint_.self().value + 1;
    const std::uint64_t owes = get_of_bucket(owing);
    if (owes == self) return;
    if (owes != 0) {
        const DebtRequest request{bucket_.node.value, bucket_.index};
        const Bytes body = std::as_bytes(std::span(&request, 1));
        cells_.endpoint_.send(NodeId{static_cast<std::uint32_t>(owes - 1)}, message::release_wanted,
                              net::Urgency::wake_service, {&body, 1});
        cells_.endpoint_.wait_until([&] { return segment.load(cells_.at(bucket_, owing)) == 0; });
        bucket_words_[owing / sizeof(Line::value_type)] = 0;
        bucket_words_[version / sizeof(Line::value_type)] =
            segment.load(cells_.at(bucket_, version));
    }
    const std::uint64_t newest = get_of_bucket(version);
    // Relaxed: written under the bucket only.
    if (newest == cells_.seen(bucket_).load(std::memory_order_relaxed)) return;
    cells_.take_news(bucket_);
    cells_.seen(bucket_).store(newest, std::memory_order_release);  // pairs with is_caught_up()
    set_of_bucket(eager, eager_releases);
}

void SyncCells::Visit::publish() noexcept {
    set_of_bucket(owing, 0);
    cells_.put_news(bucket_);
}

bool SyncCells::Visit::owe_release() noexcept {
    const NodeId self = cells_.endpoint_.self();
    const std::uint64_t owes = get_of_bucket(owing);
    // A node that owes must have all news of the bucket: paying the debt replaces them.
    if (owes == 0 && get_of_bucket(version) != cells_.seen(bucket_).load(std::memory_order_relaxed))
        return false;
    if (owes != 0 && owes != self.value + 1) return false;
    const std::uint64_t soon = get_of_bucket(eager);
    if (has_waiters()) {
        if (next_node() != self) return false;
    } else if (soon > 0) {
        set_of_bucket(eager, soon - 1);
        return false;
    }
    set_of_bucket(owing, self.value + 1);
    // Threads of other nodes may be let go on with the first one, and look before this visit ends.
    if (has_waiters()) cells_.segment_.store(cells_.at(bucket_, owing), self.value + 1);
    return true;
}

}  // namespace hiroba::dsm
