// SPDX-License-Identifier: BSD-3-Clause
// Role: the virtual clock and what happens when: threads get their turns, packets arrive.
// Invariant: everything that happens is an event with a time; events happen in the order of their
// times, equal times in the order scheduled, so equal seeds give equal runs. While nothing waits
// for the machine's clock, its speed has no influence.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/random.hpp"
#include "base/turns.hpp"
#include "net/provider/sim/fiber.hpp"
#include "net/simulation.hpp"

namespace hiroba::net::sim {

/// Holds events back: how test/sim explores orders that times alone would not give.
class Delays {
public:
    virtual ~Delays() = default;
    /// Asked for each event that is about to happen, with what told it apart in the trace: 0 lets
    /// it happen, otherwise it happens so many nanoseconds later (and is asked for again).
    virtual std::uint64_t delay_ns(std::uint64_t what) = 0;
};

/// Says which thread goes on, instead of the clock: how test/sim explores every order.
class Chooser {
public:
    virtual ~Chooser() = default;
    /// Asked before every step. One of `ready`, which is not empty and in the order in which the
    /// threads were made; nullptr: the run stops here. Threads that wait are among them: only
    /// whoever knows the state can tell that a look changes nothing. A look of several steps may
    /// have begun before what it waits for, and end behind it.
    virtual Fiber* choose(std::span<Fiber* const> ready) = 0;
};

struct SchedulerOptions {
    std::uint64_t seed = 1;
    std::uint64_t turn_min_ns = 50;              ///< how long a thread that passes stays away,
    std::uint64_t turn_max_ns = 1000;            ///< drawn anew each time
    std::uint64_t clock_ns = 20;                 ///< reading the clock takes this long
    std::uint64_t limit_ns = ~std::uint64_t{0};  ///< virtual time after which a run is given up
    Delays* delays = nullptr;
    NodeMemory* memory = nullptr;  ///< brought with each turn
    Chooser* chooser = nullptr;    ///< from begin_choice() on; the clock starts at 0 then,
    std::uint64_t chosen_ns = 0;   ///< and each step chosen takes this long
};

class Scheduler final : public Turns {
public:
    enum class Outcome : std::uint8_t {
        ended,        ///< every thread came to its end
        stuck,        ///< threads are parked and nothing will wake them
        out_of_time,  ///< the limit came first
        stopped,      ///< by stop()
    };

    Scheduler(FiberStacks& stacks, const SchedulerOptions& options);
    Scheduler(const Scheduler&) = delete;
    ~Scheduler() override;

    /// A new thread of `node`, which gets its first turn soon. From anywhere.
    Fiber& spawn(NodeId node, std::function<void()> body);
    /// Runs until every thread has ended, or cannot. Threads that have not ended are dropped where
    /// they stand: nothing on their stacks is destroyed.
    Outcome run();
    /// The scheduler of the calling thread, or nullptr.
    static Scheduler* current() noexcept;

    /// Has run() return as soon as the calling thread gives its turn away. From anywhere.
    void stop() noexcept { stopping_ = true; }

    // --- by threads of this scheduler ------------------------------------------------------------

    void pass() noexcept override;
    std::uint64_t now_ns() noexcept override;
    /// Takes `ns` of the calling thread's time; others run meanwhile.
    void work(std::uint64_t ns) noexcept;
    /// Sleeps until wake() or `deadline_ns`.
    void park(std::uint64_t deadline_ns) noexcept;
    void join(Fiber& fiber) noexcept;
    /// Between two steps that others must be able to come between. Nothing without a chooser.
    void step() noexcept;
    /// Waits until `threads` threads have come here; from then on the chooser decides among them,
    /// until all of them have ended.
    void begin_choice(std::uint32_t threads) noexcept;
    Fiber& running() noexcept { return *running_; }
    /// Where the running thread's bytes at `at` are also while it has no turn.
    std::byte* lasting(std::byte* at) noexcept {
        if (options_.memory == nullptr) return at;
        return options_.memory->lasting(running_->node, at);
    }
    const std::byte* lasting(const std::byte* at) noexcept {
        return lasting(const_cast<std::byte*>(at));
    }

    // --- by threads and events -------------------------------------------------------------------

    Fiber& fiber(std::uint32_t index) noexcept { return *fibers_[index]; }
    /// Gives a parked thread a turn; one that is not parked stays as it is.
    void wake(Fiber& fiber) noexcept;
    /// Ends every thread of `node` where it stands.
    void crash(NodeId node) noexcept;

    using Fire = void (*)(void* context, std::uint64_t argument);
    /// Has fire(context, argument) called at `time_ns`, or now if that is over.
    /// @param what  tells the event apart in the trace: equal in equal runs
    void at(std::uint64_t time_ns, std::uint64_t what, Fire fire, void* context,
            std::uint64_t argument) noexcept;
    /// The time, without taking any.
    std::uint64_t time_ns() const noexcept { return time_ns_; }
    Random& random() noexcept { return random_; }

    /// How many events happened, and a hash over which and when: the trace of the run.
    std::uint64_t events() const noexcept { return events_; }
    std::uint64_t trace_hash() const noexcept { return trace_hash_; }

private:
    struct Event {
        std::uint64_t time_ns;
        std::uint64_t order;
        std::uint64_t what;
        Fire fire;
        void* context;
        std::uint64_t argument;
        bool operator<(const Event& other) const noexcept {  // std::push_heap: the least on top
            return time_ns != other.time_ns ? time_ns > other.time_ns : order > other.order;
        }
    };
    static void enter(void* self) noexcept;
    static void turn(void* self, std::uint64_t argument) noexcept;
    void turn_at(std::uint64_t time_ns, Fiber& fiber) noexcept;
    void make_ready(Fiber& fiber) noexcept;
    bool let_choose() noexcept;
    void switch_away() noexcept;
    void resume(Fiber& fiber) noexcept;
    bool is_stale(const Event& event) const noexcept;
    void drop_stale() noexcept;
    void happen(const Event& event);

    FiberStacks& stacks_;
    SchedulerOptions options_;
    Random random_;
    std::uint64_t time_ns_ = 0;
    std::uint64_t chosen_time_ns_ = 0;
    std::uint64_t order_ = 0;
    std::vector<Event> queue_;    ///< a heap
    std::size_t queue_max_ = 64;  ///< so many: stale ones are dropped
    std::vector<std::unique_ptr<Fiber>> fibers_;
    std::uint32_t live_ = 0;
    bool stopping_ = false;
    std::vector<Fiber*> ready_;  ///< the chooser's, in the order made
    std::uint32_t choice_begins_with_ = 0;
    bool choosing_ = false;
    Fiber* running_ = nullptr;
    void* main_stack_pointer_ = nullptr;
    std::uint64_t events_ = 0;
    std::uint64_t trace_hash_ = 0;
};

}  // namespace hiroba::net::sim
