// SPDX-License-Identifier: BSD-3-Clause
// Role: the C++ face of the communication layer: requests from any thread to any node's memory,
// each with a callback; active messages; collectives; foreign calls; waits that sleep.
// Source: Endo & Taura, low-level communication layer, sections 3.1 to 3.4.
//
// A program that uses it is started with `hiroba run --spmd -n N ./program`: every node enters
// main. Link with hiroba::net (CMake) or hiroba_net (pkg-config). First pages:
// docs/tutorials/net.md; examples/net_*.cpp; what is promised: docs/layers/async.md. C++20.
#pragma once

#if __cplusplus < 202002L
#error "hiroba needs C++20: compile with -std=c++20 (pkg-config and find_package say so)"
#endif

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include "hiroba/net_requests.hpp"

namespace hiroba::net {

/// How a request reaches the device. `as_set`: as HIROBA_OFFLOAD says, else automatic.
/// `always`: through the command queue, which the communication thread empties; `never`: on the
/// caller's thread; `automatic`: on the caller's thread unless another has the device, else through
/// the queue. Source: sections 3.3 and 5, with and without offloading.
enum class Offload : std::uint8_t { as_set, automatic, always, never };

struct Options {
    Offload offload = Offload::as_set;
    /// Command queues, 1 to 16. A thread always uses the same one; more of them keep threads that
    /// enqueue at the same time out of each other's cache lines. 128 KiB each.
    std::uint32_t queues = 1;
    /// Threads that empty the queues, 1 to `queues`: the communication thread and further ones. As
    /// many as the transport has queues for (verbs: HIROBA_VERBS_QUEUES; shm: 16; else 1), so that
    /// a program need not know it: Network::executors().
    std::uint32_t executors = 1;
};

/// How a blocking call ended. `refused`: nothing was done. `peer_lost`: whether it happened is
/// unknown.
enum class Ended : std::uint8_t { done, refused, peer_lost };

/// What Network::write_signal() does to 8 bytes of the target when the data are there.
struct Signal {
    enum class Kind : std::uint8_t { set, add };
    RemoteAddress at{};  ///< `offset` a multiple of 8
    std::uint64_t value = 1;
    Kind kind = Kind::set;
};

/// Memory that one node has exposed after connect(): a plain value, for those who are to reach it.
struct Exposed {
    NodeId node{};
    std::uint32_t kind = 0;    ///< Network's own
    std::uint64_t number = 0;  ///< Network's own
    std::uint64_t bytes = 0;
};

/// The 16 bytes of Network::compare_swap(), `low` at the lower address.
struct Wide {
    std::uint64_t low = 0, high = 0;
    bool operator==(const Wide&) const = default;
};

/// A call of Network::try_procedure_async(); hiroba/net_procedures.hpp makes them.
struct ProcedureParams {
    NodeId target{};
    std::uint64_t id = 0;
    std::span<const std::byte> fixed{};  ///< arguments, copied
    std::span<const std::byte> bytes{};  ///< behind them, copied
    std::span<std::byte> result{};       ///< of the very size; borrowed until the callback
    Callback on_complete{};
};
class Team;

/// Ends the process with a line: a Pending is destroyed while `requests` count in it.
[[noreturn]] __attribute__((visibility("default"))) void end_with_requests(
    std::uint32_t requests) noexcept;

/// Counts requests under way: give callback() to each, then Network::wait(). It outlives them:
/// destroying it earlier ends the process with a line, since they would write to freed memory.
/// Thread: any.
class Pending {
public:
    Pending() = default;
    Pending(const Pending&) = delete;
    Pending& operator=(const Pending&) = delete;
    ~Pending() {
        // Acquire, pairs with ended(): its last request no longer touches this object.
        const std::uint32_t left = under_way_.load(std::memory_order_acquire);
        if (left != 0) [[unlikely]]
            end_with_requests(left);
    }
    /// For on_complete of any number of requests. Each is counted once it is accepted: those that
    /// find a queue full, or are refused, are not waited for.
    Callback callback() noexcept { return {&Pending::ended, this, &under_way_}; }
    bool done() const noexcept {
        return under_way_.load(std::memory_order_acquire) == 0;  // pairs with ended()
    }
    /// How many of those that are over ended with Outcome::peer_lost.
    std::uint32_t lost() const noexcept { return lost_.load(std::memory_order_relaxed); }

private:
    static void ended(void* data, Outcome outcome) noexcept {
        auto& self = *static_cast<Pending*>(data);
        if (outcome == Outcome::peer_lost) self.lost_.fetch_add(1, std::memory_order_relaxed);
        self.under_way_.fetch_sub(1, std::memory_order_release);  // pairs with done()
    }
    std::atomic<std::uint32_t> under_way_{0};
    std::atomic<std::uint32_t> lost_{0};
};

/// This process's end of the job's communication.
///
/// Life: open(); allocate() and on(), the same on every node; connect(); requests, and memory that
/// comes and goes; destruction, which is collective. Both ends of a request are a handle and an
/// offset. Nothing is promised about the order of requests or of their callbacks. The program need
/// not poll: a thread that waits here polls, else the node's communication thread, which sleeps
/// while there is nothing to do. Thread: any, at once, unless said otherwise; not in signal
/// handlers.
///
/// A call that breaks the contract (a rank outside the job in a collective, collectives that differ
/// between nodes, a message without a handler, a wait in a handler or before connect()) ends the
/// process with one line, and with it the job. So does a node that ends with another status than 0.
/// One that ends with status 0 and has not destroyed its Network ends the job with status 1 if
/// others run on for a second. A node that dies ends the job, unless HIROBA_LOSS_GRACE gives the
/// others time: then requests to it end with
/// Outcome::peer_lost. Where its memory is mapped (mapped(); over shm) it stays mapped: reads,
/// writes and atomics there still succeed, and messages vanish.
class __attribute__((visibility("default"))) Network {
public:
    /// Joins the job; before any other thread starts. A process that no launcher started is a
    /// job of one node; processes of mpirun or srun that cannot join end with status 78. On
    /// failure: nullptr, and `*why`, which may be nullptr, is one line that says what to change. So
    /// it is with every `why` below. One at a time; after its end all nodes may open another.
    static std::unique_ptr<Network> open(std::string* why, const Options& options = {});
    Network(const Network&) = delete;
    Network& operator=(const Network&) = delete;
    /// Collective once connected: waits for what this node requested, then until every node
    /// destroys its network; until then this node answers the others. It ends no other node's
    /// barrier(). As a local variable of main it is destroyed before main's status is known, so a
    /// node that gives up while others wait for it calls std::exit(status), which ends the job.
    virtual ~Network() = default;

    NodeId self() const noexcept { return self_; }
    std::uint32_t nodes() const noexcept { return nodes_; }
    /// The transport: "shm", "udp", ...
    virtual const char* provider() const noexcept = 0;
    /// Threads that empty the command queues; Options::executors at most.
    virtual std::uint32_t executors() const noexcept = 0;

    // --- before connect(): the same calls in the same order on every node ------------------------

    /// Zeroed memory of `bytes` bytes on every node, both ends of requests, aligned to a page; it
    /// lives as long as the network, or until free(). `bytes`: from 1, the same on every node,
    /// which connect() checks. Untouched pages cost nothing. Nothing on failure, and `*why` says
    /// why. After connect() too: then it is a collective, which checks by itself, and fails on all
    /// nodes or on none. At most 1,024 pieces before connect(); after it 16 GiB, less on more than
    /// 128 nodes or with a limit of addresses (ulimit -v).
    virtual std::optional<Handle> allocate(std::size_t bytes, std::string* why = nullptr) = 0;
    /// Registers the handler of an active message, in place of one that was there. `context` is
    /// the handler's first argument, borrowed until the network's end. An id that no node sends
    /// may have no handler; a message without one ends its target. Not after connect(): messages
    /// may be coming in.
    virtual void on(ActiveId id, ActiveHandler handler, void* context) noexcept = 0;
    /// Collective: opens the way to every node, and waits for each to call it, however long. Once.
    /// @return false, and `*why`: another node allocated or reserved something else, or a way to a
    /// node does not open. Then the network is of no more use.
    virtual bool connect(std::string* why) = 0;

    // --- memory, after connect() -----------------------------------------------------------------

    /// Lets this node's own memory, of any size and alignment, be the local end of requests; it
    /// must outlive them. At most 2 million handles at once; nothing beyond that, and one line in
    /// `*why`.
    virtual std::optional<Handle> register_local(std::span<std::byte> memory,
                                                 std::string* why = nullptr) = 0;
    template <class T, std::size_t count>
    std::optional<Handle> register_local(std::span<T, count> memory, std::string* why = nullptr) {
        static_assert(std::is_trivially_copyable_v<T>);
        return register_local(std::span<std::byte>(std::as_writable_bytes(memory)), why);
    }
    /// The handle, also one of attach(), is refused from now on, by this node alone: others still
    /// reach memory of allocate(). Not while requests use it. One that is not registered is passed
    /// over. The handle comes again a million registrations later.
    virtual void deregister(Handle handle) noexcept = 0;
    /// Collective: gives memory of allocate() after connect() back. No node's requests use it any
    /// more. @return false, and `*why`: nothing was done
    bool free(Handle handle, std::string* why = nullptr) { return free_together(handle, why); }
    /// Zeroed memory, aligned to a page, of this node alone, which others reach once they attach()
    /// to what this returns, and which this node reaches so too. Its half of the room is 16 GiB, as
    /// with allocate(). Any thread.
    std::optional<Exposed> expose(std::size_t bytes, std::string* why = nullptr) {
        return expose_memory({static_cast<std::byte*>(nullptr), bytes}, why);
    }
    /// Lets others reach memory of the program, of any size and alignment, private to this process
    /// (no page of dsm.hpp). It is not mapped(): handlers of this node carry out what others ask,
    /// in pieces of payload_bytes_max(), over any transport. It must live until withdraw().
    template <class T, std::size_t count>
    requires(!std::is_const_v<T>) std::optional<Exposed> expose(std::span<T, count> own,
                                                                std::string* why = nullptr) {
        static_assert(std::is_trivially_copyable_v<T>);
        if (own.data() == nullptr) return expose_memory({}, why);
        return expose_memory(std::as_writable_bytes(own), why);
    }
    /// Ends what expose() began, by the node that exposed. No node's requests use it any more: one
    /// that comes to own memory afterwards ends its target with a line; one that comes to the other
    /// sort finds zeros, or what was exposed in its place. @return false, and `*why`
    bool withdraw(const Exposed& memory, std::string* why = nullptr) {
        return withdraw_memory(memory, why);
    }
    /// A handle of this node for the memory that `memory.node`, and no other node, has exposed: the
    /// remote end of requests, at the node itself the local end too. It asks nobody. Any thread.
    std::optional<Handle> attach(const Exposed& memory, std::string* why = nullptr) {
        return attach_memory(memory, why);
    }
    /// This node's memory of `handle`; empty when it is not registered, or before connect().
    virtual std::span<std::byte> local(Handle handle) const noexcept = 0;
    /// As above, as values of T; a rest that holds no T is left out. T's alignment is the caller's
    /// affair with register_local().
    template <class T>
    std::span<T> local(Handle handle) const noexcept {
        static_assert(std::is_trivially_copyable_v<T>);
        const std::span<std::byte> bytes = local(handle);
        return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
    }
    /// `node`'s part of allocated memory for loads and stores; nullptr where nothing is mapped
    /// (over udp), for other handles and ranks, and before connect().
    virtual std::byte* mapped(Handle handle, NodeId node) const noexcept = 0;

    // --- requests: return at once, end with a callback -------------------------------------------
    // Any thread; from handlers and callbacks too, where `again` must not be waited for. None of
    // them allocates, polls or sleeps. The parameters are copied; what each field is: the struct.
    // Before connect() all are refused.

    virtual Submission try_read_async(const ReadParams& params) noexcept = 0;
    virtual Submission try_write_async(const WriteParams& params) noexcept = 0;
    virtual Submission try_atomic_async(const AtomicParams& params) noexcept = 0;
    virtual Submission try_message_async(const MessageParams& params) noexcept = 0;
    /// Requests a foreign call, which may begin 0.2 ms late while other threads poll.
    virtual Submission try_call_async(const CallParams& params) noexcept = 0;
    /// The most bytes of a message's payload: some 64 KiB, the same on every node.
    virtual std::size_t payload_bytes_max() const noexcept = 0;

    /// Why a request is refused: one line that names the argument and the numbers; empty if it
    /// would not be.
    virtual std::string why_refused(const ReadParams& params) const = 0;
    virtual std::string why_refused(const WriteParams& params) const = 0;
    virtual std::string why_refused(const AtomicParams& params) const = 0;
    virtual std::string why_refused(const MessageParams& params) const = 0;
    virtual std::string why_refused(const CallParams& params) const = 0;

    /// Makes a request again and again, polling in between, until it is no longer `again`. Look at
    /// what it returns: after `refused` no callback runs. Not from a handler or callback, where it
    /// ends the process as soon as it would have to wait.
    template <class Attempt>
    Submission insist(Attempt&& attempt) noexcept {
        Submission made = attempt();
        while (made == Submission::again) {
            make_room();
            made = attempt();
        }
        return made;
    }

    // --- blocking forms: any memory of this process is the local end
    // ------------------------------ After connect(), and not from a handler, callback or foreign
    // call. `why` as in open().

    /// Any memory of this process as the local end of a request, registered or not.
    LocalAddress anywhere(const void* memory) noexcept { return local_place(memory); }
    /// Reads `to.size()` bytes.
    Ended read(NodeId source, RemoteAddress from, std::span<std::byte> to,
               std::string* why = nullptr) noexcept {
        return read_bytes(source, from, to, why);
    }
    /// Returns when the bytes are visible at the target.
    Ended write(NodeId target, RemoteAddress to, std::span<const std::byte> from,
                std::string* why = nullptr) noexcept {
        return write_bytes(target, to, from, nullptr, why);
    }
    /// Writes `from`, then does `signal`: a thread of the target that sees the signal sees the
    /// bytes. Two ways over the wire. Nothing is written if the signal's place is wrong.
    Ended write_signal(NodeId target, RemoteAddress to, std::span<const std::byte> from,
                       const Signal& signal, std::string* why = nullptr) noexcept {
        return write_bytes(target, to, from, &signal, why);
    }
    /// As try_atomic_async(); `params.old` and `params.on_complete` are not looked at.
    /// @param old  where the value before goes
    Ended atomic(const AtomicParams& params, std::uint64_t& old,
                 std::string* why = nullptr) noexcept {
        return atomic_word(params, old, why);
    }
    template <class T>
    Ended read_value(NodeId source, RemoteAddress from, T& to,
                     std::string* why = nullptr) noexcept {
        static_assert(std::is_trivially_copyable_v<T>);
        return read(source, from, std::as_writable_bytes(std::span<T, 1>(&to, 1)), why);
    }
    template <class T>
    Ended write_value(NodeId target, RemoteAddress to, const T& from,
                      std::string* why = nullptr) noexcept {
        static_assert(std::is_trivially_copyable_v<T>);
        return write(target, to, std::as_bytes(std::span<const T, 1>(&from, 1)), why);
    }
    /// Makes the T of 4 or 8 bytes at `at`, an aligned offset, `next(value)`, as one atomic; also
    /// of floating point. `next` may be called several times. A read and at least one compare-swap,
    /// where `next` changes anything; else the read alone.
    /// @param old  the value before
    template <class T, class Next>
    Ended atomic_change(NodeId target, RemoteAddress at, Next&& next, T& old,
                        std::string* why = nullptr) noexcept {
        static_assert(std::is_trivially_copyable_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
        AtomicParams params{.target = target, .at = at, .bytes = sizeof(T)};
        std::uint64_t found = 0;
        Ended ended = atomic(params, found, why);  // adds 0
        params.op = AtomicOp::compare_swap;
        while (ended == Ended::done) {
            const T value = of_word<T>(found);
            params.operand = to_word(static_cast<T>(next(value)));
            params.expected = found;
            if (params.operand != found) ended = atomic(params, found, why);
            if (ended == Ended::done && found == params.expected) {
                old = value;
                break;
            }
        }
        return ended;
    }
    /// Adds; of integers one atomic of the wire.
    template <class T>
    Ended atomic_add(NodeId target, RemoteAddress at, std::type_identity_t<T> operand, T& old,
                     std::string* why = nullptr) noexcept {
        static_assert(std::is_arithmetic_v<T>);
        if constexpr (std::is_floating_point_v<T>) {
            return atomic_change(
                target, at, [operand](T value) { return value + operand; }, old, why);
        } else {
            std::uint64_t found = 0;
            const Ended ended = atomic(
                {.target = target, .at = at, .bytes = sizeof(T), .operand = to_word(operand)},
                found, why);
            if (ended == Ended::done) old = of_word<T>(found);
            return ended;
        }
    }
    /// The smaller one, the larger one. A NaN gives way to a number.
    template <class T>
    Ended atomic_min(NodeId target, RemoteAddress at, std::type_identity_t<T> operand, T& old,
                     std::string* why = nullptr) noexcept {
        static_assert(std::is_arithmetic_v<T>);
        return atomic_change(
            target, at,
            [operand](T value) { return operand < value || value != value ? operand : value; }, old,
            why);
    }
    template <class T>
    Ended atomic_max(NodeId target, RemoteAddress at, std::type_identity_t<T> operand, T& old,
                     std::string* why = nullptr) noexcept {
        static_assert(std::is_arithmetic_v<T>);
        return atomic_change(
            target, at,
            [operand](T value) { return operand > value || value != value ? operand : value; }, old,
            why);
    }

    /// Puts `wanted` to the 16 bytes at `at`, an offset that is a multiple of 16 in memory that is
    /// aligned so, if `expected` is there; as one atomic, also against those of 4 and 8 bytes. A
    /// copy to loads and stores of two words is none. Where nothing is mapped the target's
    /// processor does it. Refused where that has no cmpxchg16b, and where a device does the atomics
    /// of memory of before connect() (verbs).
    /// @param found  where what was there goes; it may be `expected`
    Ended compare_swap(NodeId target, RemoteAddress at, const Wide& expected, const Wide& wanted,
                       Wide& found, std::string* why = nullptr) noexcept {
        return swap_wide(target, at, expected, wanted, found, why);
    }

    // --- waits: spin, poll, yield, sleep ---------------------------------------------------------
    // After connect(), and not from a handler, callback or foreign call: there a wait ends the
    // process with one line.

    static constexpr std::uint64_t forever = ~std::uint64_t{0};
    /// Waits until `predicate()`. A callback or handler of this node that makes it true wakes the
    /// waiter; a thread of this node calls wake() after its store; another node's write is seen
    /// by the polling thread, but a store to mapped() memory must be followed by wake(node).
    /// It may be asked again after it was true: it must not wait, throw, or take anything. That
    /// other nodes have left ends no wait, since their handlers may still make it true; after 5 s a
    /// line says so. HIROBA_WAIT_TIMEOUT ends the process, here and in collectives.
    /// @param predicate  anything that is called without arguments, a plain function too
    /// @return false: `timeout_ns` nanoseconds passed first
    template <class Predicate>
    bool wait_until(Predicate&& predicate, std::uint64_t timeout_ns = forever) noexcept {
        using Plain = std::remove_reference_t<Predicate>;
        if constexpr (std::is_function_v<Plain>) {
            Plain* const function = predicate;
            return wait_until(function, timeout_ns);
        } else {
            return wait_for([](void* p) -> bool { return (*static_cast<Plain*>(p))(); },
                            const_cast<std::remove_const_t<Plain>*>(&predicate), timeout_ns);
        }
    }
    /// Waits until all is over. @return false when a peer was lost
    bool wait(const Pending& pending) noexcept {
        wait_until([&pending] { return pending.done(); });
        return pending.lost() == 0;
    }
    /// Polls once, or lets another thread run: for a loop of the program that waits for what
    /// wait_until() cannot look at.
    void pause() noexcept { make_room(); }
    /// Wakes this node's waiters, or those of another node, a rank of the job. Any thread, handlers
    /// and callbacks too; after connect().
    virtual void wake() noexcept = 0;
    virtual void wake(NodeId node) noexcept = 0;
    /// Everything this node requested is complete; a request that another thread makes meanwhile
    /// may count or not.
    virtual bool idle() const noexcept = 0;

    // --- collectives: the same calls in the same order on every node, one thread of each ---------
    // After connect(), not from a handler or callback. Sizes are equal on all nodes and may be 0,
    // which waits for nobody; larger ones travel in pieces of 8 KiB. Calls that differ between
    // nodes, in kind, root or size, end the process with a line that has both: at once where both
    // exchange data, after a second where one waits in a barrier() or leaves. While a node is lost
    // they wait until the job ends.

    /// Returns once every node has called it.
    virtual void barrier() noexcept = 0;
    /// `data` of `root`, of equal size on all, to every node. Returns once every node has it.
    virtual void broadcast(NodeId root, std::span<std::byte> data) noexcept = 0;
    /// Gathers the nodes' `mine` in rank order. @param all  nodes() * mine.size() bytes
    virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) noexcept = 0;
    /// Sends piece r of `out` to node r; its piece for this node becomes piece r of `in`.
    /// @param out,in  nodes() * piece_bytes bytes
    virtual void all_to_all(std::span<const std::byte> out, std::span<std::byte> in,
                            std::size_t piece_bytes) noexcept = 0;
    /// Combines the nodes' `values` by `combine(value, other)` in rank order: all nodes get the
    /// same bits, of floating-point sums too. `combine` must be the same on all nodes, which nobody
    /// checks, and not throw; a plain function will do.
    template <class T, std::size_t extent, class Combine>
    void all_reduce(std::span<T, extent> values, Combine&& combine) noexcept {
        static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 1024 && alignof(T) <= 8);
        using Plain = std::remove_reference_t<Combine>;
        if constexpr (std::is_function_v<Plain>) {
            Plain* const function = combine;
            all_reduce(values, function);
        } else {
            reduce(
                std::as_writable_bytes(values), sizeof(T),
                [](void* with, std::byte* into, const std::byte* other, std::size_t count) {
                    auto* const mine = reinterpret_cast<T*>(into);
                    const auto* const theirs = reinterpret_cast<const T*>(other);
                    for (std::size_t i = 0; i < count; ++i)
                        mine[i] = static_cast<T>((*static_cast<Plain*>(with))(mine[i], theirs[i]));
                },
                const_cast<std::remove_const_t<Plain>*>(&combine));
        }
    }
    template <class T, class Combine>
    T all_reduce(T value, Combine&& combine) noexcept {
        all_reduce(std::span<T>(&value, 1), combine);
        return value;
    }

protected:
    Network() = default;
    using Each = void (*)(void* with, std::byte* into, const std::byte* other, std::size_t count);
    virtual bool wait_for(bool (*ready)(void*), void* argument,
                          std::uint64_t timeout_ns) noexcept = 0;
    virtual void make_room() noexcept = 0;
    virtual void reduce(std::span<std::byte> values, std::size_t value_bytes, Each each,
                        void* with) noexcept = 0;
    // Behind all others, where programs that were compiled before do not look.
    virtual LocalAddress local_place(const void* memory) noexcept = 0;
    virtual Ended read_bytes(NodeId source, RemoteAddress from, std::span<std::byte> to,
                             std::string* why) noexcept = 0;
    virtual Ended write_bytes(NodeId target, RemoteAddress to, std::span<const std::byte> from,
                              const Signal* signal, std::string* why) noexcept = 0;
    virtual Ended atomic_word(const AtomicParams& params, std::uint64_t& old,
                              std::string* why) noexcept = 0;
    virtual bool free_together(Handle handle, std::string* why) = 0;
    /// `own` without an address: new memory.
    virtual std::optional<Exposed> expose_memory(std::span<std::byte> own, std::string* why) = 0;
    virtual bool withdraw_memory(const Exposed& memory, std::string* why) = 0;
    virtual std::optional<Handle> attach_memory(const Exposed& memory, std::string* why) = 0;
    virtual Ended swap_wide(NodeId target, RemoteAddress at, const Wide& expected,
                            const Wide& wanted, Wide& found, std::string* why) noexcept = 0;

    NodeId self_;
    std::uint32_t nodes_ = 1;

public:
    /// The team of all nodes, which split() divides (hiroba/net_teams.hpp). The same number of
    /// calls on every node; it waits for nobody.
    virtual std::unique_ptr<Team> team() noexcept = 0;
    /// What net_procedures.hpp is made of. Never refused: wrong arguments end the process.
    virtual Submission try_procedure_async(const ProcedureParams& params) noexcept = 0;

private:
    template <class T>
    static std::uint64_t to_word(const T& value) noexcept {
        std::uint64_t word = 0;
        std::memcpy(&word, &value, sizeof value);
        return word;
    }
    template <class T>
    static T of_word(std::uint64_t word) noexcept {
        T value;
        std::memcpy(&value, &word, sizeof value);
        return value;
    }
};

}  // namespace hiroba::net
