// SPDX-License-Identifier: BSD-3-Clause
#include "gas/relocatable/accessor.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "base/trace.hpp"
#include "gas/relocatable/fault_notes.hpp"
#include "gas/relocatable/thread_slots.hpp"
#include "net/all_memory.hpp"
#include "net/provider/apply_atomic.hpp"

namespace hiroba::gas {
namespace {

net::AtomicOp op_of(Operation operation) noexcept {
    switch (operation) {
        case Operation::add: return net::AtomicOp::fetch_add;
        case Operation::bit_and: return net::AtomicOp::fetch_and;
        case Operation::bit_or: return net::AtomicOp::fetch_or;
        case Operation::bit_xor: return net::AtomicOp::fetch_xor;
        case Operation::swap: return net::AtomicOp::swap;
        case Operation::compare_swap: break;
    }
    return net::AtomicOp::compare_swap;
}

std::uint64_t apply_here(std::byte* at, net::AtomicOp op, std::uint32_t bytes,
                         std::uint64_t operand, std::uint64_t expected) noexcept {
    if (bytes == 8) {
        return net::apply_atomic(std::atomic_ref(*reinterpret_cast<std::uint64_t*>(at)), op,
                                 operand, expected);
    }
    return net::apply_atomic(std::atomic_ref(*reinterpret_cast<std::uint32_t*>(at)), op,
                             static_cast<std::uint32_t>(operand),
                             static_cast<std::uint32_t>(expected));
}

}  // namespace

// --- metadata ------------------------------------------------------------------------------------

Status Accessor::wait_for_answers(std::uint64_t first, std::uint64_t last) noexcept {
    for (std::uint64_t page = first; page <= last; ++page) {
        const auto is_open = [&] {
            const PageState state = cache_.word(page).state;
            return state == PageState::asking || state == PageState::unknown;
        };
        if (!is_open()) continue;
        const std::uint32_t directory = shape_.directory_of(page).value;
        const auto answered = [&] {
            return cache_.word(page).state != PageState::asking || dead_.contains(directory);
        };
        if (!answered()) messages_.wait_until(answered, RankSet::of(directory));
        // Unknown again: forgotten meanwhile, or no directory node is left to answer.
        if (!is_open() || !dead_.contains(directory)) continue;
        for (std::uint64_t rest = page; rest <= last; ++rest) {
            if (dead_.contains(shape_.directory_of(rest).value)) cache_.abandon(rest);
        }
        return {Fault::peer_lost, directory, page};
    }
    return {};
}

/// Asks for the pages [first, last] that are unknown here and waits for the answers.
Status Accessor::fetch(std::uint64_t first, std::uint64_t last, bool* missed) noexcept {
    if (first == last) {
        const auto token = cache_.begin_ask(first);
        if (token) {
            const AskedPage asked[] = {{first, *token}};
            ask(asked, missed);
        }
        return wait_for_answers(first, last);
    }
    for (std::uint64_t part = first; part <= last; part += pages_together_) {
        const std::uint64_t part_last = std::min(last, part + pages_together_ - 1);
        std::vector<AskedPage> asked;
        for (std::uint64_t page = part; page <= part_last; ++page) {
            if (const auto token = cache_.begin_ask(page)) asked.push_back({page, *token});
        }
        if (!asked.empty()) ask(asked, missed);
        if (Status status = wait_for_answers(part, part_last); !status) return status;
    }
    return {};
}

void Accessor::ask(std::span<const AskedPage> pages, bool* missed) noexcept {
    misses_.fetch_add(pages.size(), std::memory_order_relaxed);
    if (missed != nullptr) *missed = true;
    trace("gas.miss", pages.front().page, pages.size());
    directory_->ask(pages);
}

/// Whether all of the range is allocated, as far as is known here.
Status Accessor::check(std::uint64_t at, std::uint64_t bytes) noexcept {
    const std::uint64_t first = page_of_address(at);
    std::uint64_t offset = offset_in_page(at);
    for (std::uint64_t page = first; true; ++page) {
        const CacheWord word = cache_.word(page);
        if (word.state == PageState::lost) return {Fault::peer_lost, word.owner, page};
        const bool is_gone = word.state == PageState::refused || word.state == PageState::leaving;
        if (is_gone) return {page == first ? Fault::not_allocated : Fault::past_end, 0, page};
        const std::uint64_t here = std::min(bytes, shape_.page_bytes() - offset);
        // A page that is unknown again was moved or forgotten meanwhile; the access asks once more.
        if (word.is_readable() && offset + here > cache_.limit(page)) {
            return noted(Fault::past_end, page,
                         "page %lu: %lu bytes at its byte %lu go past the end of the allocation, "
                         "which has %u bytes there",
                         page, bytes, offset, cache_.limit(page));
        }
        bytes -= here;
        offset = 0;
        if (bytes == 0) return {};
    }
}

Status Accessor::prepare(std::uint64_t at, std::uint64_t bytes, bool* missed) noexcept {
    const std::uint64_t last = page_of_address(at + std::max<std::uint64_t>(bytes, 1) - 1);
    if (Status status = fetch(page_of_address(at), last, missed); !status) return status;
    return check(at, bytes);
}

/// Waits until the mover's next wave changes the page; if the mover dies, MetadataCache::lose()
/// changes it.
void Accessor::wait_for_change(std::uint64_t page, const CacheWord& seen) noexcept {
    async_.endpoint().wait_until([&] { return cache_.word(page) != seen; });
}

// --- get and put ---------------------------------------------------------------------------------

/// Pages that one request reads or writes, counted as under way until it is complete.
struct Accessor::Piece {
    Accessor* of;
    Pending* pending;
    std::uint64_t first;
    std::uint64_t pages;
    std::uint32_t version;
    std::uint32_t owner;
    bool is_put;
};

void Accessor::finished(void* data, net::Outcome outcome) noexcept {
    const std::unique_ptr<Piece> piece{static_cast<Piece*>(data)};
    for (std::uint64_t page = piece->first; page < piece->first + piece->pages; ++page) {
        if (piece->is_put) {
            piece->of->cache_.end_write(page);
        } else {
            piece->of->cache_.end_read(page, piece->version);
        }
    }
    if (outcome != net::Outcome::done) {
        SpaceParts::fail(*piece->pending, {Fault::peer_lost, piece->owner, piece->first});
    }
    SpaceParts::end(*piece->pending);
}

void Accessor::post(Piece& piece, const Transfer& part) noexcept {
    const net::Callback done{&Accessor::finished, &piece};
    const NodeId owner{piece.owner};
    const net::RemoteAddress there{frames_, part.at};
    const net::LocalAddress here = net::in_all_memory(everything_, part.local);
    if (piece.is_put) {
        submit(async_, [&] { return async_.try_write({owner, here, there, part.bytes, done}); });
    } else {
        submit(async_, [&] { return async_.try_read({owner, there, here, part.bytes, done}); });
    }
}

/// Begins with the first page of `rest` and as many more as follow it in the same node's memory.
/// @return the bytes that are under way; 0: the first page, now `word`, does not allow it
std::size_t Accessor::post_run(const Transfer& rest, Pending& pending, CacheWord& word) noexcept {
    const std::uint64_t first = page_of_address(rest.at);
    const auto begin = [&](std::uint64_t page, CacheWord& now) {
        return rest.is_put ? cache_.begin_write(page, now) : cache_.begin_read(page, now);
    };
    if (!begin(first, word)) return 0;
    Transfer part = rest;
    part.bytes = std::min(rest.bytes, shape_.page_bytes() - offset_in_page(rest.at));
    std::uint64_t pages = 1;
    while (part.bytes < rest.bytes) {
        CacheWord next = cache_.word(first + pages);
        if (next.owner != word.owner || next.version % 2 != word.version % 2) break;
        if (!begin(first + pages, next)) break;
        const bool fits_on = next.owner == word.owner && next.version % 2 == word.version % 2;
        if (!fits_on) {
            if (rest.is_put) cache_.end_write(first + pages);
            if (!rest.is_put) cache_.end_read(first + pages, next.version);
            break;
        }
        part.bytes += std::min(rest.bytes - part.bytes, shape_.page_bytes());
        ++pages;
    }
    SpaceParts::add(pending);
    post(*new Piece{this, &pending, first, pages, word.version, word.owner, rest.is_put}, part);
    count(part, word.owner);
    return part.bytes;
}

/// A part of one page that this process can reach by loads and stores. False: not now.
bool Accessor::access_mapped(const Transfer& part) noexcept {
    const std::uint64_t page = page_of_address(part.at);
    CacheWord word;
    const bool begun = part.is_put ? cache_.begin_write(page, word) : cache_.begin_read(page, word);
    if (!begun) return false;
    std::byte* const base = cache_.reach(page, word.owner);
    if (base != nullptr) {
        std::byte* const there = base + offset_in_page(part.at);
        if (part.is_put) {
            copy_page_bytes(there, part.local, part.bytes, there);
        } else {
            copy_page_bytes(part.local, there, part.bytes, there);
        }
        count(part, word.owner);
    }
    if (part.is_put) {
        cache_.end_write(page);
    } else {
        cache_.end_read(page, word.version);
    }
    return base != nullptr;
}

void Accessor::count(const Transfer& part, std::uint32_t owner) noexcept {
    constexpr auto relaxed = std::memory_order_relaxed;  // a statistic
    if (!part.missed) hits_.fetch_add(1, relaxed);
    (owner == self_.value ? bytes_here_ : bytes_elsewhere_).fetch_add(part.bytes, relaxed);
    trace("gas.hit", part.at, part.bytes);
}

Status Accessor::start(const Transfer& transfer, Pending& pending) noexcept {
    Transfer rest = transfer;
    if (Status status = prepare(rest.at, rest.bytes, &rest.missed); !status) return status;
    while (rest.bytes != 0) {
        const std::uint64_t page = page_of_address(rest.at);
        Transfer part = rest;
        part.bytes = std::min(rest.bytes, shape_.page_bytes() - offset_in_page(rest.at));
        std::size_t done = 0;
        CacheWord word = cache_.word(page);
        if (word.is_readable() && cache_.reach(page, word.owner) != nullptr) {
            if (access_mapped(part)) done = part.bytes;
            word = cache_.word(page);
        } else if (word.is_readable()) {
            done = post_run(rest, pending, word);
        }
        rest.at += done;
        rest.local += done;
        rest.bytes -= done;
        if (done != 0) continue;
        const bool is_held = word.state == PageState::stopped || word.state == PageState::moved;
        if (is_held && rest.is_put) {
            trace("gas.held", page, word.mover);
            wait_for_change(page, word);
        } else if (Status status = prepare(rest.at, rest.bytes, &rest.missed); !status) {
            return status;
        }
    }
    return {};
}

Status Accessor::wait(Pending& pending) noexcept {
    async_.wait_until([&] { return pending.done(); });
    return SpaceParts::take_fault(pending);
}

// --- atomics -------------------------------------------------------------------------------------

Status Accessor::atomic(Operation operation, std::uint64_t at, std::uint32_t bytes,
                        std::uint64_t operand, std::uint64_t expected,
                        std::uint64_t& old) noexcept {
    const std::uint64_t page = page_of_address(at);
    if (at % bytes != 0) return {Fault::misaligned, 0, page};
    CacheWord word;
    bool missed = false;
    while (true) {
        if (Status status = prepare(at, bytes, &missed); !status) return status;
        if (cache_.begin_write(page, word)) break;
        const bool is_held = word.state == PageState::stopped || word.state == PageState::moved;
        if (is_held) wait_for_change(page, word);
    }
    bool good = true;
    if (std::byte* const base = cache_.reach(page, word.owner)) {
        old = apply_here(base + offset_in_page(at), op_of(operation), bytes, operand, expected);
    } else {
        std::uint64_t found = 0;
        Request request;
        request.issue(async_, [&](net::Callback done) {
            return async_.try_atomic({NodeId{word.owner},
                                      {frames_, at},
                                      op_of(operation),
                                      bytes,
                                      operand,
                                      expected,
                                      net::in_all_memory(everything_, &found),
                                      done});
        });
        good = request.wait(async_);
        old = found;
    }
    cache_.end_write(page);
    count({at, nullptr, bytes, true, missed}, word.owner);
    return good ? Status{} : Status{Fault::peer_lost, word.owner, page};
}

// --- guards --------------------------------------------------------------------------------------

std::byte* Accessor::pin(std::uint64_t at, std::uint64_t bytes) noexcept {
    if (bytes == 0 || !prepare(at, bytes)) return nullptr;
    const std::uint64_t first = page_of_address(at), last = page_of_address(at + bytes - 1);
    for (std::uint64_t page = first; page <= last; ++page) {
        CacheWord word;
        const bool begun = cache_.begin_write(page, word);
        if (begun && word.owner == self_.value) continue;
        if (begun) cache_.end_write(page);
        for (std::uint64_t before = first; before < page; ++before) cache_.end_write(before);
        return nullptr;
    }
    // A view of one page is counted by the program's own code (space::pin_any()).
    for (std::uint64_t page = first; first != last && page <= last; ++page) cache_.make_view(page);
    return cache_.reach(first, self_.value) + offset_in_page(at);
}

void Accessor::unpin(std::uint64_t at, std::uint64_t bytes) noexcept {
    const std::uint64_t last = page_of_address(at + bytes - 1);
    for (std::uint64_t page = page_of_address(at); page <= last; ++page) cache_.end_view(page);
}

}  // namespace hiroba::gas
