// SPDX-License-Identifier: BSD-3-Clause
// Role: the communication layer's face over an endpoint, whatever that stands on: a node of a job
// (open.cpp), or one of a test or a simulation.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "abi/net/set_up.hpp"
#include "base/fatal.hpp"
#include "hiroba/net.hpp"
#include "net/async.hpp"
#include "net/collectives.hpp"
#include "net/departures.hpp"
#include "net/later_memory.hpp"
#include "net/long_wait.hpp"
#include "net/questions.hpp"
#include "net/served_memory.hpp"
#include "net/teams.hpp"

namespace hiroba::net {

/// What a network's node stands in.
struct Surroundings {
    /// Starts the thread that runs `body`, and waits for its end.
    std::function<void(std::function<void()> body)> start{};
    std::function<void()> join{};
    /// After the service thread has started: waits for every node. Perhaps nothing.
    std::function<Result<void>()> meet{};
    /// Before the end, when nothing is under way. Perhaps nothing.
    std::function<void()> leave{};
    std::uint64_t job_key = 0;  ///< stamp of kicks
};

/// Before a wait of `endpoint`'s node. In a handler nobody would poll while this thread waits, and
/// what a callback waits for may be a callback that waits behind it: it would never end.
void refuse_in_handler(const Endpoint& endpoint) noexcept;

/// A wait of a program for what other nodes do.
struct WaitFor {
    const char* what;  ///< "in a kick barrier for"; the node follows if it is known
    bool (*ready)(void*);
    /// Notes the nodes without whose doing it does not end. nullptr: nobody knows which.
    void (*awaited)(void*, std::vector<NodeId>&);
    void* argument;
};
/// What the first second of such a wait looks at. Asks no more once the wait is over.
class ShortWait {
public:
    ShortWait(bool (*ready)(void*), void* argument) noexcept : ready_(ready), argument_(argument) {}
    bool operator()() noexcept {
        if (!is_ready_) is_ready_ = ready_(argument_);
        return is_ready_ || clock_.is_long();
    }
    bool is_ready() const noexcept { return is_ready_; }

private:
    bool (*ready_)(void*);
    void* argument_;
    bool is_ready_ = false;
    LongWait clock_{second_ns};
};

/// Converts calls; requests are net::Async's, collectives net::Collectives'.
class NetworkOver final : public Network {
public:
    static Result<std::unique_ptr<NetworkOver>> make(std::unique_ptr<Endpoint> endpoint,
                                                     const Options& options,
                                                     Surroundings surroundings);
    ~NetworkOver() override;

    Endpoint& endpoint() noexcept { return *endpoint_; }
    Async& async() noexcept { return *async_; }
    std::uint64_t job_key() const noexcept { return surroundings_.job_key; }
    bool connected() const noexcept { return connected_; }
    /// True for the first caller: there is one board.
    bool claim_board() noexcept { return !std::exchange(has_board_, true); }
    /// Has `part` resolve what connecting brought, before any node leaves connect(). In order.
    void at_connect(std::function<Result<void>()> part) { parts_.push_back(std::move(part)); }

    /// Goes on with a wait that has taken a second. Ends the process when an awaited node has left,
    /// or with HIROBA_WAIT_TIMEOUT.
    void wait_on(const WaitFor& wait) noexcept;

    /// What the board has made; every node's is compared before any node leaves connect().
    SetUp& set_up() noexcept { return set_up_; }

    const char* provider() const noexcept override { return endpoint_->provider().limits().name; }
    std::uint32_t executors() const noexcept override { return async_->executors(); }
    std::optional<Handle> allocate(std::size_t bytes, std::string* why) override;
    void on(ActiveId id, ActiveHandler handler, void* context) noexcept override {
        // Those behind are the layer's own.
        HIROBA_INVARIANT(id.value < ActiveId::count, "active message %u of %u", id.value,
                         ActiveId::count);
        async_->on(id, handler, context);
    }
    bool connect(std::string* why) override;
    std::optional<Handle> register_local(std::span<std::byte> memory, std::string* why) override;
    void deregister(Handle handle) noexcept override { async_->deregister(handle); }
    std::span<std::byte> local(Handle handle) const noexcept override {
        return async_->local(handle);
    }
    std::byte* mapped(Handle handle, NodeId node) const noexcept override {
        return async_->mapped(handle, node);
    }
    Submission try_read_async(const ReadParams& params) noexcept override {
        return counted(params.on_complete, [&] { return async_->try_read(params); });
    }
    Submission try_write_async(const WriteParams& params) noexcept override {
        return counted(params.on_complete, [&] { return async_->try_write(params); });
    }
    Submission try_atomic_async(const AtomicParams& params) noexcept override {
        return counted(params.on_complete, [&] { return async_->try_atomic(params); });
    }
    Submission try_message_async(const MessageParams& params) noexcept override {
        return counted(params.on_complete, [&] { return async_->try_message(params); });
    }
    Submission try_call_async(const CallParams& params) noexcept override {
        return counted(params.on_complete, [&] { return async_->try_call(params); });
    }
    std::size_t payload_bytes_max() const noexcept override { return async_->payload_bytes_max(); }
    std::string why_refused(const ReadParams& params) const override { return why(params); }
    std::string why_refused(const WriteParams& params) const override { return why(params); }
    std::string why_refused(const AtomicParams& params) const override { return why(params); }
    std::string why_refused(const MessageParams& params) const override { return why(params); }
    std::string why_refused(const CallParams& params) const override { return why(params); }
    void wake() noexcept override {
        await_connect("calls wake()");
        endpoint_->wake_local();
    }
    void wake(NodeId node) noexcept override {
        await_connect("calls wake()");
        endpoint_->wake(node);
    }
    bool idle() const noexcept override { return async_->idle() && questions_->idle(); }
    /// Ends what waits for answers of a node that is lost. Any thread.
    void lose(NodeId node) noexcept {
        questions_->lose(node);
        teams_->lose(node);
    }
    std::unique_ptr<Team> team() noexcept override;
    Submission try_procedure_async(const ProcedureParams& params) noexcept override;
    void barrier() noexcept override { together().barrier(); }
    void broadcast(NodeId root, std::span<std::byte> data) noexcept override {
        together().broadcast(root, data);
    }
    void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) noexcept override {
        together().all_gather(mine, all);
    }
    void all_to_all(std::span<const std::byte> out, std::span<std::byte> in,
                    std::size_t piece_bytes) noexcept override {
        together().all_to_all(out, in, piece_bytes);
    }

protected:
    bool wait_for(bool (*ready)(void*), void* argument, std::uint64_t timeout_ns) noexcept override;
    void make_room() noexcept override;
    void reduce(std::span<std::byte> values, std::size_t value_bytes, Each each,
                void* with) noexcept override;
    LocalAddress local_place(const void* memory) noexcept override;
    Ended read_bytes(NodeId source, RemoteAddress from, std::span<std::byte> to,
                     std::string* why) noexcept override;
    Ended write_bytes(NodeId target, RemoteAddress to, std::span<const std::byte> from,
                      const Signal* signal, std::string* why) noexcept override;
    Ended atomic_word(const AtomicParams& params, std::uint64_t& old,
                      std::string* why) noexcept override;
    bool free_together(Handle handle, std::string* why) override;
    std::optional<Exposed> expose_memory(std::span<std::byte> own, std::string* why) override;
    bool withdraw_memory(const Exposed& memory, std::string* why) override;
    std::optional<Handle> attach_memory(const Exposed& memory, std::string* why) override;
    Ended swap_wide(NodeId target, RemoteAddress at, const Wide& expected, const Wide& wanted,
                    Wide& found, std::string* why) noexcept override;

private:
    NetworkOver(std::unique_ptr<Endpoint> endpoint, Surroundings surroundings);
    /// Counts the request before it can end, as Callback::under_way says.
    template <class Attempt>
    Submission counted(const Callback& callback, Attempt&& attempt) noexcept {
        std::atomic<std::uint32_t>* const count = callback.under_way;
        // Relaxed: the request that ends takes it off with a release.
        if (count != nullptr) count->fetch_add(1, std::memory_order_relaxed);
        const Submission made = attempt();
        if (made != Submission::accepted && count != nullptr) [[unlikely]]
            take_off(*count);
        return made;
    }
    static void answer_procedure(void* context, const Questions::Asked& asked) noexcept;
    void take_off(std::atomic<std::uint32_t>& count) noexcept;
    template <class Params>
    std::string why(const Params& params) const {
        const Result<void> good = async_->check(params);
        return good ? std::string() : good.error().text;
    }
    /// Makes the request with a Pending of its own, and waits for it.
    template <class Params, class Attempt>
    Ended complete(Params params, Attempt&& attempt, std::string* why) noexcept;
    LocalAddress place_of(std::span<const std::byte> memory) noexcept;
    Result<void> begin();
    /// Adds which regions allocate() has made here to an error that names regions.
    Error with_allocations(Error error) const;
    /// Says, once, that a node has left while this one waits for what it does not know.
    void tell_of_departure(const char* what) noexcept;
    /// Ends the process: `call` needs connect().
    void await_connect(const char* call) const noexcept;
    Collectives& together() noexcept {
        await_connect("calls a collective");
        refuse_in_handler(*endpoint_);
        return *collectives_;
    }

    std::unique_ptr<Endpoint> endpoint_;
    Surroundings surroundings_;
    std::unique_ptr<Departures> departures_;
    std::unique_ptr<Collectives> collectives_;
    std::unique_ptr<Async> async_;
    std::unique_ptr<Questions> questions_;
    std::unique_ptr<ServedMemory> served_;
    std::unique_ptr<LaterMemory> later_;
    std::unique_ptr<Teams> teams_;
    std::atomic<std::uint32_t> teams_made_{0};
    std::vector<std::function<Result<void>()>> parts_;
    std::vector<Handle> allocated_;
    SetUp set_up_;
    std::atomic<bool> told_of_departure_{false};
    /// The handle of all memory of this process; Handle::none until it is asked for.
    std::atomic<std::uint32_t> everywhere_{Handle::none};
    bool connected_ = false;
    bool has_board_ = false;
};

}  // namespace hiroba::net
