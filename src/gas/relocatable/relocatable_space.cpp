// SPDX-License-Identifier: BSD-3-Clause
// Role: see relocatable_space.hpp. First the life, then allocation, then access.
#include "gas/relocatable/relocatable_space.hpp"

#include <algorithm>
#include <bit>
#include <mutex>
#include <string>
#include <vector>

#include "base/settings.hpp"
#include "base/trace.hpp"
#include "gas/relocatable/fault_notes.hpp"
#include "gas/relocatable/message_directory.hpp"
#include "gas/relocatable/message_form.hpp"
#include "gas/relocatable/one_sided_directory.hpp"
#include "gas/relocatable/thread_slots.hpp"
#include "net/all_memory.hpp"

namespace hiroba::gas {
namespace {

constexpr std::uint64_t page_bytes_min = 4096, page_bytes_max = 2 << 20;

Error usage(const char* name, std::uint64_t value, const std::string& wanted) {
    return {ErrorKind::usage,
            std::string(name) + "=" + std::to_string(value) + ": " + wanted + ". Change " + name};
}

}  // namespace

// --- life ----------------------------------------------------------------------------------------

Result<SpaceOptions> SpaceOptions::of_settings(const net::Limits& limits) {
    SpaceOptions options;
    const auto page = setting_number("HIROBA_GAS_PAGE");
    if (!page) return page.error();
    const auto arena = setting_number("HIROBA_GAS");
    if (!arena) return arena.error();
    const auto spare = setting_number("HIROBA_GAS_SPARE");
    if (!spare) return spare.error();
    if (!std::has_single_bit(*page) || *page < page_bytes_min || *page > page_bytes_max) {
        return usage("HIROBA_GAS_PAGE", *page, "a power of two from 4K to 2M");
    }
    options.page_bytes = *page;
    options.arena_bytes = *arena;
    options.spare_bytes_max = *spare;
    const std::string_view directory = setting("HIROBA_GAS_DIRECTORY");
    options.one_sided =
        directory == "one_sided" || (directory == "auto" && limits.completes_inline);
    options.hits = !trace_is_on.load();  // a traced access is one that calls
    return options;
}

Result<std::unique_ptr<RelocatableSpace>> RelocatableSpace::make(net::Async& async,
                                                                 net::Collectives& collectives,
                                                                 const SpaceOptions& options) {
    net::Endpoint& endpoint = async.endpoint();
    SpaceShape shape;
    shape.nodes = endpoint.nodes();
    if (shape.nodes > space_nodes_max) {
        return Error{ErrorKind::usage, "a relocatable space over " + std::to_string(shape.nodes) +
                                           " ranks; there may be " +
                                           std::to_string(space_nodes_max) + ". Change -n"};
    }
    shape.page_shift = static_cast<std::uint32_t>(std::countr_zero(options.page_bytes));
    const std::uint64_t unit = SpaceShape::run_pages * shape.nodes;
    const std::uint64_t pages = options.arena_bytes >> shape.page_shift;
    if (pages < 2 * unit || pages > std::uint64_t{1} << 32) {
        return usage("HIROBA_GAS", options.arena_bytes,
                     "wanted at least " + std::to_string((2 * unit) << shape.page_shift) +
                         " bytes for this many ranks, and at most 2^32 pages");
    }
    shape.arena_pages = pages / unit * unit;
    auto dead = std::make_unique<DeadNodes>();
    auto cache = MetadataCache::make(shape, endpoint.self(), *dead);
    if (!cache) return cache.error();
    const auto frames = async.allocate(shape.pages() << shape.page_shift, true);
    if (!frames) return frames.error();
    const auto words = async.allocate(shape.directory_pages() * shape.entry_words() * 8, true);
    if (!words) return words.error();
    const auto everything = async.register_local(net::all_memory());
    if (!everything) return everything.error();
    return std::unique_ptr<RelocatableSpace>(
        new RelocatableSpace(async, collectives, shape, options, std::move(dead), std::move(*cache),
                             *frames, *words, *everything));
}

RelocatableSpace::RelocatableSpace(net::Async& async, net::Collectives& collectives,
                                   const SpaceShape& shape, const SpaceOptions& options,
                                   std::unique_ptr<DeadNodes> dead,
                                   std::unique_ptr<MetadataCache> cache, net::Handle frames,
                                   net::Handle words, net::Handle everything)
    : async_(async),
      collectives_(collectives),
      shape_(shape),
      options_(options),
      frames_(frames),
      words_(words),
      dead_owner_(std::move(dead)),
      dead_(*dead_owner_),
      cache_(std::move(cache)),
      messages_(async.endpoint(), &RelocatableSpace::receive, this),
      calls_(collectives, messages_),
      station_(shape, async.endpoint().self(), dead_),
      relocator_(shape, async, frames, *cache_, messages_, dead_),
      accessor_(shape, async, frames, everything, *cache_, dead_, messages_),
      // Page 0 stays free: address 0 is the null pointer.
      together_(1, shape.arena_pages),
      own_(shape.first_page(async.endpoint().self().value + 1),
           shape.first_page(async.endpoint().self().value + 2)) {
    if (options.one_sided) {
        directory_ = std::make_unique<OneSidedDirectory>(shape, async, words, everything, *cache_,
                                                         messages_, dead_);
    } else {
        directory_ = std::make_unique<MessageDirectory>(shape, messages_);
    }
    relocator_.use(*directory_);
    accessor_.use(*directory_);
}

RelocatableSpace::~RelocatableSpace() {
    if (leave_) leave_();
}

void RelocatableSpace::attach() {
    net::Endpoint& endpoint = async_.endpoint();
    std::vector<std::byte*> bases(shape_.nodes);
    for (std::uint32_t rank = 0; rank < shape_.nodes; ++rank) {
        bases[rank] = async_.mapped(frames_, NodeId{rank});
    }
    const MutableBytes local = async_.local(frames_);
    bases[endpoint.self().value] = local.data();
    cache_->attach(std::move(bases), options_.spare_bytes_max,
                   endpoint.provider().limits().pins_memory);
    station_.attach(reinterpret_cast<DirectoryWords>(async_.local(words_).data()));
    cached_ = cache_->table();
    pages_ = shape_.pages();
    page_shift_ = shape_.page_shift;
    rank_ = endpoint.self().value;
    ranks_ = shape_.nodes;
    calls_.attach(rank_, ranks_);
    local_ = local.data();
    local_bytes_ = local.size();
    before_ = {};
    before_ = counts();
    collectives_.barrier();
}

void RelocatableSpace::lose(NodeId dead) {
    dead_.add(dead);
    cache_->lose();
    messages_.send_all(station_.lost(dead));
    async_.endpoint().wake_local();
}

void RelocatableSpace::receive(void* context, NodeId from, SpaceMessageKind kind,
                               std::uint64_t token, SpaceMessages::Words words) noexcept {
    auto& self = *static_cast<RelocatableSpace*>(context);
    HIROBA_INVARIANT(is_well_formed(kind, words, self.shape_),
                     "node %u sent a relocation message of kind %u with %lu words, which no node "
                     "writes",
                     from.value, static_cast<unsigned>(kind), words.size());
    switch (kind) {
        case SpaceMessageKind::ask:
            return self.messages_.send_all(self.station_.asked(from, token, words));
        case SpaceMessageKind::claim:
            return self.messages_.send_all(self.station_.claimed(from, token, words));
        case SpaceMessageKind::commit:
            return self.messages_.send_all(self.station_.committed(words));
        case SpaceMessageKind::told:
            for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
                self.cache_->told(page_of(words[i]), static_cast<std::uint16_t>(tag_of(words[i])),
                                  PageWord::unpack(words[i + 1]));
            }
            return;
        case SpaceMessageKind::granted: return self.relocator_.granted(token, words);
        case SpaceMessageKind::ready: return self.relocator_.ready(from, token, words);
        case SpaceMessageKind::join: return self.relocator_.joined(words);
        case SpaceMessageKind::stop:
        case SpaceMessageKind::move:
        case SpaceMessageKind::resume: return self.relocator_.wave(from, kind, token, words);
        case SpaceMessageKind::publish:
            self.station_.publish({words[0], words[1], words[2],
                                   static_cast<std::uint8_t>(words[3]), (words[3] >> 8) != 0,
                                   static_cast<std::uint32_t>(words[4]), words[5]});
            return self.messages_.send(from, SpaceMessageKind::published, token, {});
        case SpaceMessageKind::calling: return self.calls_.announced(from, token, words);
        case SpaceMessageKind::published: return self.published_.add(from.value);
    }
}

std::uint64_t RelocatableSpace::broadcast(std::uint64_t value, std::uint32_t from) noexcept {
    if (from >= ranks_) {
        die(exit_program, "gas::space::broadcast() from rank %u: the job has %u ranks", from,
            ranks_);
    }
    CollectiveCall call;
    call.kind = CollectiveCall::Kind::broadcast;
    call.value = value;
    call.root = from;
    (void)calls_.meet(call);
    return calls_.of(from).value;
}

void RelocatableSpace::leave_together() noexcept {
    CollectiveCall call;
    call.kind = CollectiveCall::Kind::leave;
    (void)calls_.meet(call);
}

std::uint32_t RelocatableSpace::owner_hint(std::uint64_t address) const noexcept {
    const std::uint64_t page = address >> shape_.page_shift;
    if (page >= shape_.pages()) return none;
    const CacheWord word = cache_->word(page);
    return word.is_readable() ? word.owner : none;
}

void RelocatableSpace::forget(std::uint64_t first, std::uint64_t bytes) noexcept {
    if (bytes == 0 || !check_range(first, bytes)) return;
    const std::uint64_t last = (first + bytes - 1) >> shape_.page_shift;
    for (std::uint64_t page = first >> shape_.page_shift; page <= last; ++page) {
        cache_->forget(page);
    }
}

Counts RelocatableSpace::counts() const noexcept {
    const Accessor::Sums slow = accessor_.sums();
    Counts sum{
        slow.hits,       slow.misses,          relocator_.pages_moved(),
        slow.bytes_here, slow.bytes_elsewhere, relocator_.pages_moved() << shape_.page_shift};
    constexpr auto relaxed = std::memory_order_relaxed;  // statistics
    for (const ThreadSlot& slot : thread_slots()) {
        sum.hits += slot.hits.load(relaxed);
        sum.misses += slot.misses.load(relaxed);
        sum.bytes_here += slot.bytes_here.load(relaxed);
        sum.bytes_elsewhere += slot.bytes_elsewhere.load(relaxed);
    }
    sum.hits -= before_.hits;
    sum.misses -= before_.misses;
    sum.bytes_here -= before_.bytes_here;
    sum.bytes_elsewhere -= before_.bytes_elsewhere;
    return sum;
}

// --- allocation ----------------------------------------------------------------------------------

/// Tells every directory node and waits until it has noted it, or died.
void RelocatableSpace::publish(const PublishedRun& run) {
    const std::scoped_lock one_at_a_time{publishing_};
    published_.clear();
    const std::uint64_t words[] = {run.first, run.pages,
                                   run.bytes, run.kind | std::uint64_t{run.fixed} << 8,
                                   run.rank,  run.block_pages};
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
        messages_.send(NodeId{rank}, SpaceMessageKind::publish, 0, words);
    }
    async_.endpoint().wait_until([&] {
        if (published_.count() + dead_.count() < ranks_) return false;
        for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
            if (!published_.contains(rank) && !dead_.contains(rank)) return false;
        }
        return true;
    });
}

Status RelocatableSpace::no_room(std::uint64_t count, std::uint64_t element_bytes) const noexcept {
    if (count == 0) {
        return noted(Fault::no_room, 0, "an allocation of 0 elements: ask for at least one");
    }
    return noted(Fault::no_room, 0,
                 "no room in a row for %lu elements of %lu bytes: each rank's allocations have %lu "
                 "bytes of addresses, and so have those together (HIROBA_GAS)",
                 count, element_bytes, shape_.arena_pages << shape_.page_shift);
}

std::uint64_t RelocatableSpace::make(std::uint64_t count, std::uint64_t element_bytes,
                                     const Distribution& where, bool together, Status* why) {
    const auto refuse = [&](const Status& status) {
        if (why != nullptr) *why = status;
        return std::uint64_t{0};
    };
    if (why != nullptr) *why = {};
    if (together) {
        const Status met = calls_.meet(CollectiveCall::allocate(count, element_bytes, where));
        if (!met) return refuse(met);
    }
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(count, element_bytes, &bytes) || bytes == 0) {
        return refuse(no_room(count, element_bytes));
    }
    if (where.kind == Distribution::Kind::one_rank && where.rank >= ranks_) {
        return refuse({Fault::outside, where.rank, 0});
    }
    PublishedRun run;
    run.pages = (bytes - 1) / shape_.page_bytes() + 1;
    run.bytes = bytes;
    run.kind = static_cast<std::uint8_t>(where.kind);
    run.fixed = !where.relocatable;
    run.rank = where.rank;
    run.block_pages =
        where.block_bytes == 0 ? 1 : (where.block_bytes - 1) / shape_.page_bytes() + 1;
    {
        const std::scoped_lock guard{numbers_latch_};
        run.first = numbers(together).take({0, run.pages, bytes, run.fixed});
    }
    if (run.first == 0) return refuse(no_room(count, element_bytes));
    if (together) {
        station_.publish(run);
        barrier();
    } else {
        publish(run);
    }
    return run.first << shape_.page_shift;
}

/// Whether no view of this rank is open on the allocation; for one made together, of no rank, and
/// all ranks free the same. Those that free one together have met then: none uses it any more.
Status RelocatableSpace::may_free(const PageRun& run, bool together) noexcept {
    CollectiveCall call;
    call.kind = CollectiveCall::Kind::free;
    call.value = run.first << shape_.page_shift;
    for (std::uint64_t page = run.first; page < run.first + run.pages; ++page) {
        if (cache_->has_view(page)) call.open_page = page;
    }
    if (together) {
        if (Status met = calls_.meet(call); !met) return met;
    }
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
        const std::uint64_t page = together ? calls_.of(rank).open_page : call.open_page;
        const std::uint32_t whose = together ? rank : rank_;
        if (page == 0) continue;
        if (whose != rank_) {
            return noted(Fault::view_open, page, "page %lu: a LocalView of rank %u is open", page,
                         whose);
        }
        return noted(Fault::view_open, page,
                     "page %lu: a LocalView of this rank is open: end it before free()", page);
    }
    return {};
}

Status RelocatableSpace::release(std::uint64_t first) {
    if (Status status = check_range(first, 1); !status) return status;
    const std::uint64_t page = first >> shape_.page_shift;
    const std::uint64_t arena = shape_.arena_of(page);
    const bool together = arena == 0;
    if (!together && arena != rank_ + 1) {
        return {Fault::not_mine, static_cast<std::uint32_t>(arena - 1), page};
    }
    PageRun run;
    {
        const std::scoped_lock guard{numbers_latch_};
        const PageRun* const found = numbers(together).find(page);
        const bool is_start = found != nullptr && (first & (shape_.page_bytes() - 1)) == 0;
        if (!is_start) return {Fault::not_allocated, 0, page};
        run = *found;
    }
    if (Status status = may_free(run, together); !status) return status;
    Status status;
    if (!together || rank_ == 0) status = move(page, page + run.pages - 1, Relocator::Goal::free);
    if (together) barrier();
    const std::scoped_lock guard{numbers_latch_};
    numbers(together).give_back(page);
    return status;
}

// --- what is refused before anything is sent -----------------------------------------------------

Status RelocatableSpace::check_range(std::uint64_t at, std::uint64_t bytes) noexcept {
    const std::uint64_t end = shape_.pages() << shape_.page_shift;
    const std::uint64_t page = at >> shape_.page_shift;
    if (at == 0) return {Fault::null_pointer, 0, 0};
    if (at >= end) return {Fault::outside, 0, page};
    if (bytes <= end - at) return {};
    return noted(Fault::past_end, page,
                 "page %lu: %lu bytes go past the end of every allocation (HIROBA_GAS)", page,
                 bytes);
}

/// Checks the range against the allocations that this rank took part in: it knows where those end.
Status RelocatableSpace::check_known(std::uint64_t at, std::uint64_t bytes) noexcept {
    const Status in_space = check_range(at, bytes);
    if (!in_space && in_space.fault != Fault::past_end) return in_space;
    const std::uint64_t page = at >> shape_.page_shift;
    const bool together = shape_.arena_of(page) == 0;
    if (!together && !own_.contains(page)) return in_space;
    const std::scoped_lock guard{numbers_latch_};
    const PageRun* const run = numbers(together).around(page);
    if (run == nullptr) return {Fault::not_allocated, 0, page};
    const std::uint64_t offset = at - (run->first << shape_.page_shift);
    if (offset <= run->bytes && bytes <= run->bytes - offset) return {};
    return noted(Fault::past_end, page,
                 "page %lu: %lu bytes at offset %lu go past the end of an allocation of %lu bytes",
                 page, bytes, offset, run->bytes);
}

// --- access --------------------------------------------------------------------------------------

void RelocatableSpace::take_slot() noexcept {
    if (this_slot == nullptr && options_.hits) this_slot = slot_of_this_thread();
}

/// Whether a miss within one page has become a hit without asking any node: nothing is waited for
/// and nothing sent, so what is allocated need not be checked before (the hit checks).
bool RelocatableSpace::learn(std::uint64_t at, std::uint64_t bytes) noexcept {
    const std::uint64_t page = at >> shape_.page_shift;
    const std::uint64_t offset = at & (shape_.page_bytes() - 1);
    const bool is_one = page < pages_ && bytes <= shape_.page_bytes() - offset;
    return is_one && this_slot != nullptr && cache_->learn(page, *directory_);
}

Status RelocatableSpace::start(std::uint64_t at, void* local, std::size_t bytes, bool is_put,
                               Pending& pending) noexcept {
    if (Status status = check_known(at, bytes); !status) return status;
    take_slot();
    return accessor_.start({at, static_cast<std::byte*>(local), bytes, is_put}, pending);
}

Status RelocatableSpace::transfer(std::uint64_t at, std::byte* local, std::size_t bytes,
                                  bool is_put) noexcept {
    Pending pending;
    const Status started = start(at, local, bytes, is_put, pending);
    const Status ended = accessor_.wait(pending);
    return started ? ended : started;
}

/// Pages in a row that can all be reached by hits: one look at each before the first byte moves,
/// since a refused access does nothing. `done` bytes are copied; the rest, if a page moved
/// meanwhile, is the caller's.
bool RelocatableSpace::run_of_hits(std::uint64_t at, std::byte* local, std::size_t bytes,
                                   bool is_put, std::size_t& done) noexcept {
    const std::uint64_t first = at >> page_shift_;
    if (this_slot == nullptr || bytes == 0 || bytes > (pages_ << page_shift_) - at) return false;
    const std::uint64_t last = (at + bytes - 1) >> page_shift_;
    if (first == last) return false;
    for (std::uint64_t page = first; page <= last; ++page) {
        const CachedPage& known = cached_[page];
        const auto& base = is_put ? known.writes : known.reads;
        const std::uint64_t end = std::min((page + 1) << page_shift_, at + bytes);
        const bool is_there =
            base.load(std::memory_order_acquire) != nullptr &&
            end - (page << page_shift_) <= known.limit.load(std::memory_order_relaxed);
        if (!is_there) return false;
    }
    while (done != bytes) {
        const std::uint64_t here = at + done;
        const std::size_t part = std::min(bytes - done, page_bytes() - (here & (page_bytes() - 1)));
        const bool hit =
            is_put ? put_hit(here, local + done, part) : get_hit(here, local + done, part);
        if (!hit) break;
        done += part;
    }
    return true;
}

Status RelocatableSpace::get_slowly(std::uint64_t from, std::byte* to, std::size_t bytes) noexcept {
    std::size_t done = 0;
    if (run_of_hits(from, to, bytes, false, done)) {
        return done == bytes ? Status{} : transfer(from + done, to + done, bytes - done, false);
    }
    if (learn(from, bytes) && get_hit(from, to, bytes)) {
        this_slot->hit_was_miss();
        return {};
    }
    return transfer(from, to, bytes, false);
}

Status RelocatableSpace::put_slowly(std::uint64_t to, const std::byte* from,
                                    std::size_t bytes) noexcept {
    auto* const local = const_cast<std::byte*>(from);
    std::size_t done = 0;
    if (run_of_hits(to, local, bytes, true, done)) {
        return done == bytes ? Status{} : transfer(to + done, local + done, bytes - done, true);
    }
    if (learn(to, bytes) && put_hit(to, from, bytes)) {
        this_slot->hit_was_miss();
        return {};
    }
    return transfer(to, const_cast<std::byte*>(from), bytes, true);
}

/// Elements that are here, or mapped, are accessed at once; accesses to the rest start together, so
/// that those to one owner share datagrams (net/offload/engine.hpp).
template <class PlaceOf>
Status RelocatableSpace::scattered(PlaceOf&& place_of, std::size_t count, std::size_t bytes,
                                   void* local, bool is_put) noexcept {
    Pending pending;
    auto* const first = static_cast<std::byte*>(local);
    Status started;
    for (std::size_t i = 0; started && i < count; ++i) {
        const std::uint64_t at = place_of(i);
        std::byte* const here = first + i * bytes;
        if (is_put ? put_hit(at, here, bytes) : get_hit(at, here, bytes)) continue;
        started = start(at, here, bytes, is_put, pending);
    }
    const Status ended = accessor_.wait(pending);
    return started ? ended : started;
}

Status RelocatableSpace::strided(std::uint64_t at, std::int64_t stride, std::size_t bytes,
                                 std::size_t count, void* local, bool is_put) noexcept {
    const __int128 steps = count == 0 ? 0 : static_cast<__int128>(count - 1);
    const __int128 last = __int128{at} + __int128{stride} * steps;
    if (bytes != 0 && (last < 0 || last >> 63 != 0)) {  // would wrap around into the space
        const std::uint64_t page = at >> shape_.page_shift;
        return noted(Fault::past_end, page,
                     "page %lu: %lu pieces %ld bytes apart go past the end of every allocation",
                     page, count, stride);
    }
    const auto place_of = [=](std::size_t i) {
        return at + static_cast<std::uint64_t>(stride) * i;
    };
    return scattered(place_of, count, bytes, local, is_put);
}

Status RelocatableSpace::list(const std::uint64_t* places, std::size_t count, std::size_t bytes,
                              void* local, bool is_put) noexcept {
    return scattered([=](std::size_t i) { return places[i]; }, count, bytes, local, is_put);
}

Status RelocatableSpace::atomic_slowly(Operation operation, std::uint64_t at, std::uint32_t bytes,
                                       std::uint64_t operand, std::uint64_t expected,
                                       std::uint64_t& old) noexcept {
    if (learn(at, bytes) && atomic_hit(operation, at, bytes, operand, expected, old)) {
        this_slot->hit_was_miss();
        return {};
    }
    if (Status status = check_known(at, bytes); !status) return status;
    take_slot();
    return accessor_.atomic(operation, at, bytes, operand, expected, old);
}

Status RelocatableSpace::prefetch_bytes(std::uint64_t first, std::uint64_t bytes) noexcept {
    if (Status status = check_known(first, bytes); !status) return status;
    return accessor_.prepare(first, bytes);
}

std::byte* RelocatableSpace::pin(std::uint64_t first, std::uint64_t bytes) noexcept {
    return check_known(first, bytes) ? accessor_.pin(first, bytes) : nullptr;
}

// --- relocation ----------------------------------------------------------------------------------

Status RelocatableSpace::move(std::uint64_t first, std::uint64_t last,
                              Relocator::Goal goal) noexcept {
    Status status;
    std::vector<std::uint64_t> pages;
    for (std::uint64_t page = first; page <= last; ++page) {
        const CacheWord word = cache_->word(page);
        const bool is_here =
            goal == Relocator::Goal::own && word.state == PageState::live && word.owner == rank_;
        if (!is_here) pages.push_back(page);
        if (pages.empty() || (pages.size() < messages_.pages_max() && page != last)) continue;
        const Status part = relocator_.move(pages, goal);
        if (status) status = part;
        pages.clear();
    }
    return status;
}

Status RelocatableSpace::own_bytes(std::uint64_t first, std::uint64_t bytes) noexcept {
    if (Status status = check_known(first, bytes); !status) return status;
    if (bytes == 0) return {};
    const std::uint64_t page = first >> shape_.page_shift;
    const bool together = shape_.arena_of(page) == 0;
    if (together || own_.contains(page)) {
        const std::scoped_lock guard{numbers_latch_};
        const PageRun* const run = numbers(together).around(page);
        if (run != nullptr && run->fixed) return {Fault::not_relocatable, 0, page};
    } else if (Status status = accessor_.prepare(first, bytes); !status) {
        return status;  // of another rank's allocation the directory nodes know the end
    }
    return move(page, (first + bytes - 1) >> shape_.page_shift, Relocator::Goal::own);
}

}  // namespace hiroba::gas
