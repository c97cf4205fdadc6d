// SPDX-License-Identifier: BSD-3-Clause
// Role: makes a runtime, and answers what a thread may ask about where it stands.
// Invariant: nothing here synchronizes.
#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "base/fatal.hpp"
#include "base/record.hpp"
#include "base/thread_context.hpp"
#include "dsm/dsm.hpp"
#include "dsm/sync/lock_table.hpp"
#include "omp/runtime_core.hpp"
#include "omp/thread_part.hpp"

namespace hiroba::omp {

namespace {

std::uint32_t usable_processors() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    return std::max(1, CPU_COUNT(&set));
}

/// A look costs about 40 cycles; a yield, when no other thread wants the processor, little more. So
/// a thread that waits for one on another processor hardly loses by yielding early, and one that
/// waits for a thread on its own processor gains a time slice.
Patience patience_for(WaitPolicy policy, std::uint32_t threads, std::uint32_t processors) {
    Patience patience;
    const bool crowded = threads > processors;
    patience.spins = policy == WaitPolicy::active ? 10'000'000 : crowded ? 50 : 1000;
    patience.yields = policy == WaitPolicy::passive ? 0 : crowded ? 100 : 2000;
    return patience;
}

}  // namespace

Result<std::unique_ptr<Runtime>> Runtime::create(const Parts& parts) {
    if (parts.memory == nullptr)
        return std::unique_ptr<Runtime>(new RuntimeCore(parts, nullptr, nullptr, nullptr));
    HIROBA_INVARIANT(parts.endpoint != nullptr && parts.locks != nullptr && parts.heap != nullptr &&
                         parts.threads_per_node > 0,
                     "parts of a runtime of several nodes are missing");
    auto segment = gas::Segment::allocate(*parts.endpoint, store_words * 8);
    if (!segment) return segment.error();
    auto words = std::make_unique<SegmentWords>(*parts.endpoint, std::move(*segment));
    auto more = gas::Segment::allocate(*parts.endpoint, Doacross::words * 8);
    if (!more) return more.error();
    auto progress = std::make_unique<SegmentWords>(*parts.endpoint, std::move(*more));
    auto link = TeamLink::create(parts);
    if (!link) return link.error();
    return std::unique_ptr<Runtime>(
        new RuntimeCore(parts, std::move(*link), std::move(words), std::move(progress)));
}

RuntimeCore::RuntimeCore(const Parts& parts, std::unique_ptr<TeamLink> link,
                         std::unique_ptr<SegmentWords> segment_words,
                         std::unique_ptr<SegmentWords> segment_progress)
    : parts_(parts),
      link_(std::move(link)),
      segment_words_(std::move(segment_words)),
      segment_progress_(std::move(segment_progress)),
      tasks_(parts),
      leading_{{false}, BusyTime{usable_processors(), parts.board != nullptr}} {
    if (parts.endpoint != nullptr) node_ = parts.endpoint->self().value;
    environment_ = read_environment(node_ == 0);
    everywhere_.tasks = &tasks_.everywhere();
    if (link_ != nullptr)
        link_->set_cancellation(everywhere_.cancellation, environment_.cancellation);
    if (link_ != nullptr) {
        parts.locks->release_by({&release_for_lock, this});
        parts.memory->flush_alone_by({&begin_standstill, &end_standstill, this});
        parts.memory->learn_unread_by({&learn_unread, link_.get()});
        nodes_ = parts.endpoint->nodes();
        everywhere_.terms = &link_->terms();
        everywhere_.words = segment_words_.get();
        everywhere_.progress = segment_progress_.get();
        everywhere_.pools = std::make_unique<std::array<ChunkPool, Workshare::slots>>();
        processors_ = nodes_ * parts.threads_per_node;
        parts_.threads_per_node_max = std::max(parts.threads_per_node, parts.threads_per_node_max);
    } else {
        everywhere_.own_words = std::make_unique<LocalWords>(store_words);
        everywhere_.words = everywhere_.own_words.get();
        everywhere_.own_progress = std::make_unique<LocalWords>(Doacross::words);
        everywhere_.progress = everywhere_.own_progress.get();
        processors_ = usable_processors();
        if (parts_.threads_per_node == 0) parts_.threads_per_node = processors_;
    }
    Icvs& initial = environment_.initial;
    if (environment_.levels == 0) initial.threads = nodes_ * parts_.threads_per_node;
    initial.threads = std::min(initial.threads, environment_.thread_limit);
    if (link_ != nullptr)
        initial.threads = std::min(initial.threads, nodes_ * parts_.threads_per_node_max);
    static_cast<Patience&>(patience_) = patience_for(
        environment_.wait_policy, std::max(initial.threads / nodes_, parts_.threads_per_node),
        usable_processors());
    patience_.of_crowd = patience_for(environment_.wait_policy, 2, 1);
    if (link_ != nullptr) patience_.endpoint = parts.endpoint;
    // Other threads look into the vector while the leader adds threads, so it must not move.
    threads_.reserve(std::max(parts_.threads_per_node, threads_max_here()));
    add_thread_states(parts_.threads_per_node);
    if (node_ == 0 && environment_.display != Environment::Display::off) {
        const bool verbose = environment_.display == Environment::Display::verbose;
        const std::string text = display_text(environment_, initial, verbose);
        if (write(2, text.data(), text.size()) < 0) say("OMP_DISPLAY_ENV: stderr takes nothing");
    }
}

RuntimeCore::~RuntimeCore() {
    over_.store(true);
    if (watch_.joinable()) watch_.join();
    for (auto& thread : threads_) thread->start.advance(patience_);
    tasks_.ring();
    for (const pthread_t thread : pool_) pthread_join(thread, nullptr);
    if (thread_part().state != nullptr && self().runtime == this) thread_part().state = nullptr;
}

void RuntimeCore::attach() {
    if (segment_words_ != nullptr) segment_words_->attach();
    if (segment_progress_ != nullptr) segment_progress_->attach();
    if (link_ != nullptr) {
        link_->attach();
        tasks_.exchange()->answer_singles_of(everywhere_.singles);
    }
    tasks_.attach();
    start_watch();
}

void RuntimeCore::become_initial_thread() noexcept {
    ThreadState& thread = *threads_[0];
    thread.initial = true;
    thread_part().state = &thread;
    record(RecordKind::member, this_thread().global_thread);
    record(RecordKind::program, 1);
    if (environment_.places.empty()) return;
    thread.base.binding = {0, 0, static_cast<std::uint32_t>(environment_.places.size())};
    bind(thread);
}

ThreadState& RuntimeCore::self() noexcept {
    ThreadContext& thread = this_thread();
    end_going_first(thread);
    auto* const state = thread_part(thread).state;
    return state != nullptr && state->runtime == this ? *state : meet_foreign_thread();
}

ThreadState& RuntimeCore::meet_foreign_thread() noexcept {
    auto* const state = new ThreadState;
    state->runtime = this;
    state->foreign = true;
    state->base.icvs = environment_.initial;
    thread_part().state = state;
    return *state;
}

void RuntimeCore::forget_thread() noexcept {
    auto* const state = thread_part().state;
    if (state == nullptr || state->runtime != this || !state->foreign) return;
    release_implicit(state->base);
    thread_part().state = nullptr;
    delete state;
}

void RuntimeCore::count_program_threads(int change) noexcept {
    if (link_ == nullptr) return;
    link_->count_program_threads(change);
    if (change > 0) link_->tell_of_work_between_regions();
}

std::uint32_t RuntimeCore::thread_limit() noexcept {
    const std::uint32_t there_are =
        link_ != nullptr ? nodes_ * parts_.threads_per_node_max : thread_limit_none;
    const std::uint32_t own = icvs().thread_limit;
    return std::min({environment_.thread_limit, there_are, own != 0 ? own : thread_limit_none});
}

namespace {

bool has_level(const TeamPosition& place, int level) noexcept {
    return level >= 0 && static_cast<std::uint32_t>(level) <= place.level;
}

/// The place at `level`, which the innermost frame has. A worker knows no frames above its
/// region's: those have one thread, number 0.
TeamPosition place_at(const Frame* innermost, int level) noexcept {
    const auto wanted = static_cast<std::uint32_t>(level);
    const Frame* frame = innermost;
    while (frame != nullptr && frame->place.level > wanted) frame = frame->parent;
    return frame != nullptr && frame->place.level == wanted ? frame->place : TeamPosition{};
}

}  // namespace

int RuntimeCore::ancestor_thread(int level) noexcept {
    const Frame* const frame = self().frame;
    return has_level(frame->place, level) ? static_cast<int>(place_at(frame, level).thread) : -1;
}

int RuntimeCore::team_size_at(int level) noexcept {
    const Frame* const frame = self().frame;
    return has_level(frame->place, level) ? static_cast<int>(place_at(frame, level).team_size) : -1;
}

}  // namespace hiroba::omp
