// SPDX-License-Identifier: BSD-3-Clause
// Role: the C++ face of small messages at the price of a store: kicks, polled memory, windows,
// channels, and the barrier, sum and broadcast built of them. Beside requests (hiroba/net.hpp), on
// the same connection. Source: Tanabe et al., DIMMnet-1 (AOTF, BOTF), sections 3 to 5.
//
// Link with hiroba::kick (CMake) or hiroba_kick (pkg-config). First pages: docs/tutorials/kick.md;
// examples/kick_*.cpp; what is promised: docs/layers/kick.md. C++20.
//
// Kicks and windows of one thread to one node land in the order given. A thread that
// sees a kick sees what its author stored or kicked to that node before. A kick wakes no thread:
// after a kick to a word that a thread may sleep on, call Board::wake(node). Windows, channels and
// collectives do that themselves.
//
// A wait here for a node that has left (its Network is being destroyed) ends the process with a
// line after a second, where it is known for whom: in barriers and reductions, at windows and
// channels. HIROBA_WAIT_TIMEOUT, in seconds, ends any other. While a node is lost they wait until
// the job ends.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "hiroba/net.hpp"

namespace hiroba::kick {

inline constexpr std::uint32_t page_bytes = 4096;

/// Offset in every node's polled memory, in bytes.
using Offset = std::uint64_t;

template <class T>
concept Kickable = std::is_trivially_copyable_v<T> &&
    (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8);

/// The bits of an offset that say where in its page a value goes.
template <Kickable T>
inline constexpr std::uint32_t offset_mask = page_bytes - sizeof(T);

class Board;

/// A registered page of a node: all of a packet's header but the low bits of the address ("header
/// seed", section 3). Made by Board::kick() from what was checked there. A value; valid as long as
/// its board. Thread: one at a time; not from handlers or callbacks, where KickAfter kicks.
template <Kickable T>
class Kick {
public:
    /// Sends `value` to `offset` (bytes) in the page. Where is_mapped() it is one store
    /// instruction, else a datagram. The offset is masked to the page and to the value's alignment,
    /// as the hardware pasted it, so that a kick cannot leave its page.
    void store(std::uint32_t offset, T value) noexcept {
        if (page_ != nullptr) [[likely]] {
            // Release, pairs with the acquire in Board::load().
            std::atomic_ref<T>(*reinterpret_cast<T*>(page_ + (offset & offset_mask<T>)))
                .store(value, std::memory_order_release);
        } else {
            post(offset & offset_mask<T>, value, false);
        }
    }
    /// As store(), but it may leave only with the next store() to that node: for what is complete
    /// with another.
    void store_with_next(std::uint32_t offset, T value) noexcept {
        if (page_ != nullptr) [[likely]] {
            store(offset, value);
        } else {
            post(offset & offset_mask<T>, value, true);
        }
    }
    /// As store(), but false, and one line in `*why`, where the offset leaves the page or the
    /// memory behind it, or is no multiple of the value's size; then nothing was sent.
    bool store_checked(std::uint32_t offset, T value, std::string* why = nullptr) noexcept {
        if (offset % sizeof(T) == 0 && offset <= bytes_ && sizeof(T) <= bytes_ - offset) {
            store(offset, value);
            return true;
        }
        if (why != nullptr) {
            *why = "kick of " + std::to_string(sizeof(T)) + " bytes to offset " +
                   std::to_string(offset) + " of a page with " + std::to_string(bytes_) +
                   (offset % sizeof(T) != 0 ? ": it is not aligned" : ": it does not lie inside");
        }
        return false;
    }
    /// Whether store() is one store: the page is mapped here.
    bool is_mapped() const noexcept { return page_ != nullptr; }
    NodeId node() const noexcept { return node_; }

private:
    friend class Board;
    template <Kickable>
    friend class KickAfter;
    [[gnu::noinline]] void post(std::uint32_t offset, T value, bool more) noexcept;

    std::byte* page_ = nullptr;
    Board* board_ = nullptr;
    const void* seed_ = nullptr;  ///< the prepared header
    std::uint32_t bytes_ = 0;     ///< of the page that may be kicked
    NodeId node_;
};

/// A block up to 1440 bytes long that is composed in place and sent as a whole (BOTF, section 3).
/// Of one kind on every node: each says to whom it sends and from whom it receives, or neither.
/// Thread: one at a time at each end; not from a handler.
class Window {
public:
    static constexpr std::uint32_t bytes_max = 1440;
    virtual ~Window() = default;

    /// Whether the receiver has taken what was sent last: only then may payload() be written. Only
    /// looks at this node's memory, as arrived() does, and polls nothing: a loop that asks several
    /// ends calls Board::wait_for() when none is ready.
    /// Sending ends, this, await_room(), payload() and send(), are for a node that named `to`;
    /// arrived(), receive() and take() for one that named `from`. The other end, or any of them
    /// before connect(), ends the process with a line.
    virtual bool may_overwrite() noexcept = 0;
    /// Waits until may_overwrite().
    virtual void await_room() noexcept = 0;
    /// Where to compose, only while may_overwrite(), which nobody checks; where the receiver is
    /// mapped, its own memory. As long as the window is.
    virtual std::span<std::byte> payload() noexcept = 0;
    /// Sends the first `bytes` bytes of the payload and wakes the receiver. False, and one line in
    /// `*why`: it is in flight, or shorter than `bytes`; nothing was done.
    virtual bool send(std::uint32_t bytes, std::string* why = nullptr) noexcept = 0;

    /// Whether there is something that was not taken yet. Only looks, as may_overwrite() does.
    virtual bool arrived() noexcept = 0;
    /// Waits until arrived(). @return what came, until take()
    virtual std::span<const std::byte> receive() noexcept = 0;
    /// Gives the window back to its sender; what receive() returned is its again. Once for each
    /// that has arrived: with nothing there it ends the process with a line.
    virtual void take() noexcept = 0;
};

/// The untyped part of Channel.
class ChannelEnds {
public:
    virtual ~ChannelEnds() = default;
    virtual bool try_stream(const void* item) noexcept = 0;
    virtual void stream(const void* item) noexcept = 0;
    virtual void flush() noexcept = 0;
    virtual bool try_receive(void* item) noexcept = 0;
    virtual void receive(void* item) noexcept = 0;
};

/// A ring of items, a page long, from each node to the one it names (section 4.2): the items lie at
/// the consumer, and both ends poll their own memory. stream(), flush() and send() are for a node
/// that named `to`, the others for one that named `from`. Its end flushes, while the network lives.
/// Thread: one at a time at each end; not from a handler, where a wait ends the process with a
/// line.
template <Kickable T>
class Channel {
public:
    static constexpr std::uint32_t capacity = page_bytes / sizeof(T);

    /// False: the ring is full. The receiver has the item at the latest after flush().
    bool try_stream(const T& item) noexcept { return ends_->try_stream(&item); }
    /// Waits for room, without looking at what comes in: a ring of nodes that all stream stops when
    /// all rings are full. The last item of a stream is followed by flush().
    void stream(const T& item) noexcept { ends_->stream(&item); }
    /// Has all that was streamed on its way, and wakes the receiver.
    void flush() noexcept { ends_->flush(); }
    /// One item, at once.
    void send(const T& item) noexcept {
        ends_->stream(&item);
        ends_->flush();
    }
    /// The next item, in the order streamed; nothing when none has come. Only looks, as
    /// Window::may_overwrite() does: who asks in a loop calls Board::wait_for() in between.
    std::optional<T> try_receive() noexcept {
        T item;
        if (!ends_->try_receive(&item)) return std::nullopt;
        return item;
    }
    /// Waits for it: spins, polls, yields, sleeps.
    T receive() noexcept {
        T item;
        ends_->receive(&item);
        return item;
    }

private:
    friend class Board;
    explicit Channel(std::unique_ptr<ChannelEnds> ends) noexcept : ends_(std::move(ends)) {}
    std::unique_ptr<ChannelEnds> ends_;
};

/// The nodes that take part in a collective, in the order of their indices; empty: all.
using Group = std::vector<NodeId>;

/// `fastest`: up to 8 members kick a byte into each other's words; more form a tree of arity 8,
/// whose parents read all flags with one load (section 5.3). `tree`: always the tree.
enum class Shape : std::uint8_t { fastest, tree };

/// A barrier in two phases. Owned by one thread of the node at a time.
class Barrier {
public:
    virtual ~Barrier() = default;
    /// Tells the others. Never blocks. Once before each wait() or passed() that was true: a second
    /// time before that ends the process with a line.
    virtual void arrive() noexcept = 0;
    /// Whether all have arrived. Ask until then, or wait(): in the tree, asking passes on what
    /// came.
    virtual bool passed() noexcept = 0;
    /// Waits until passed(), once after each arrive(): without it the process ends with a line.
    /// What a member stored or kicked before it arrived is visible then. For no longer than some
    /// time: Network::wait_until() with passed() and a timeout.
    virtual void wait() noexcept = 0;
    void arrive_and_wait() noexcept {
        arrive();
        wait();
    }
};

/// The untyped part of AllReduce and Broadcast: values of up to 8 or up to 16 bytes.
class Reduction {
public:
    using Combine = void (*)(void* with, void* into, const void* other);
    virtual ~Reduction() = default;
    virtual void run(void* value, Combine combine, void* with) noexcept = 0;
    /// Gives all the `bytes` bytes of the member `root`.
    virtual void broadcast(void* value, std::uint32_t bytes, std::uint32_t root) noexcept = 0;
};

/// Combines one value of each member in the barrier's tree (section 5.4); all get the same bits.
/// Owned by one thread at a time.
template <class T>
class AllReduce {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 16);

public:
    /// Waits for all members.
    /// @param combine  combine(a, b), associative, the same on all members, which nobody checks; a
    ///                 plain function will do
    template <class Combine = std::plus<>>
    T operator()(const T& value, Combine&& combine = {}) noexcept {
        using Plain = std::remove_reference_t<Combine>;
        if constexpr (std::is_function_v<Plain>) {
            Plain* const function = combine;
            return (*this)(value, function);
        } else {
            return run(value, combine);
        }
    }

private:
    friend class Board;
    explicit AllReduce(std::unique_ptr<Reduction> made) noexcept : reduction_(std::move(made)) {}
    template <class Combine>
    T run(const T& value, Combine& combine) noexcept {
        std::array<std::byte, 16> bytes{};
        std::memcpy(bytes.data(), &value, sizeof value);
        reduction_->run(
            bytes.data(),
            [](void* with, void* into, const void* other) {
                T a, b;
                std::memcpy(&a, into, sizeof a);
                std::memcpy(&b, other, sizeof b);
                a = static_cast<T>((*static_cast<Combine*>(with))(a, b));
                std::memcpy(into, &a, sizeof a);
            },
            const_cast<std::remove_const_t<Combine>*>(&combine));
        T result;
        std::memcpy(&result, bytes.data(), sizeof result);
        return result;
    }
    std::unique_ptr<Reduction> reduction_;
};

/// Gives one member's value to all. Owned by one thread at a time.
template <class T>
class Broadcast {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 16);

public:
    /// Waits for all members.
    /// @param root  index in the group of the member whose `value` counts, below the number of
    ///              members; equal on all. An index outside, or another one on some member, ends
    ///              the process with a line
    T operator()(const T& value, std::uint32_t root) noexcept {
        T result = value;
        reduction_->broadcast(&result, sizeof result, root);
        return result;
    }

private:
    friend class Board;
    explicit Broadcast(std::unique_ptr<Reduction> made) noexcept : reduction_(std::move(made)) {}
    std::unique_ptr<Reduction> reduction_;
};

/// What the table of prepared headers did so far (the paper's header TLB, section 3).
struct HeaderCounts {
    std::uint64_t hits = 0, misses = 0, evictions = 0;
};

/// A node's part in kicks: registered pages of other nodes, and polled memory (LLCM, section 4.1):
/// small, the same on every node, kicked into by others and looked at here.
///
/// Made before Network::connect(); what is reserved, and windows, channels and collectives, too, by
/// the same calls in the same order on every node, members or not, and where one node sends to
/// another that one receives from it: else connect() is false and says which call differs. All of
/// it is used after connect(), and as long as the network is; kicks as long as the board. Thread:
/// any, after connect(); setting up belongs to one thread.
class __attribute__((visibility("default"))) Board {
public:
    static constexpr std::size_t polled_bytes_default = std::size_t{128} << 10;  ///< the paper's

    /// One for each network; the network outlives the board. nullptr on failure, and `*why` says
    /// why.
    /// @param polled_bytes  of every node, from 1, rounded up to whole pages; equal on all
    static std::unique_ptr<Board> make(net::Network& network, std::string* why,
                                       std::size_t polled_bytes = polled_bytes_default);
    Board(const Board&) = delete;
    Board& operator=(const Board&) = delete;
    virtual ~Board() = default;

    NodeId self() const noexcept { return self_; }
    std::uint32_t nodes() const noexcept { return nodes_; }

    // --- before connect(). Nothing or nullptr on failure, and one line in `*why` -----------------

    /// Takes `bytes` zeroed bytes of every node's polled memory; up to a page lies in one page. To
    /// be kicked into by others: nothing tells whose part it is.
    /// @param alignment  a power of two up to page_bytes
    virtual std::optional<Offset> reserve(std::size_t bytes, std::size_t alignment = 64,
                                          std::string* why = nullptr) = 0;
    /// Lets kicks reach memory of Network::allocate(), here and from here; on every node.
    virtual bool expose(net::Handle memory, std::string* why = nullptr) = 0;

    /// `to`, `from`: where this node's window or ring leads, and who sends to it; nobody without a
    /// value. @param bytes  1 to Window::bytes_max, equal on all
    virtual std::unique_ptr<Window> window(std::uint32_t bytes, std::optional<NodeId> to,
                                           std::optional<NodeId> from,
                                           std::string* why = nullptr) = 0;
    template <Kickable T>
    std::optional<Channel<T>> channel(std::optional<NodeId> to, std::optional<NodeId> from,
                                      std::string* why = nullptr) {
        auto ends = channel_ends(sizeof(T), to, from, why);
        if (ends == nullptr) return std::nullopt;
        return Channel<T>{std::move(ends)};
    }
    /// nullptr, and an empty `*why`, on nodes outside the group.
    virtual std::unique_ptr<Barrier> barrier(const Group& group = {}, Shape shape = Shape::fastest,
                                             std::string* why = nullptr) = 0;
    /// Nothing, and an empty `*why`, on nodes outside the group.
    template <class T>
    std::optional<AllReduce<T>> all_reduce(const Group& group = {}, Shape shape = Shape::fastest,
                                           std::string* why = nullptr) {
        auto made = reduction(sizeof(T), group, shape, why);
        if (made == nullptr) return std::nullopt;
        return AllReduce<T>{std::move(made)};
    }
    template <class T>
    std::optional<Broadcast<T>> broadcast(const Group& group = {}, Shape shape = Shape::fastest,
                                          std::string* why = nullptr) {
        auto made = reduction(sizeof(T), group, shape, why);
        if (made == nullptr) return std::nullopt;
        return Broadcast<T>{std::move(made)};
    }

    // --- after connect() -------------------------------------------------------------------------

    /// Registers the page of `node`'s polled memory that `place` lies in, and prepares kicks to it:
    /// `store(place % page_bytes, value)` reaches `place`. That `place` was reserved is not
    /// checked, only that the page exists.
    template <Kickable T>
    std::optional<Kick<T>> kick(NodeId node, Offset place, std::string* why = nullptr) {
        return prepared<T>(node, nullptr, place / page_bytes * page_bytes, why);
    }
    /// The same for a page of exposed memory. @param page  its offset a multiple of page_bytes
    template <Kickable T>
    std::optional<Kick<T>> kick(NodeId node, net::RemoteAddress page, std::string* why = nullptr) {
        return prepared<T>(node, &page.handle, page.offset, why);
    }

    /// This node's polled memory from `place` on; `place` and what is used of it reserved, which
    /// nobody checks. After connect().
    std::byte* at(Offset place) const noexcept { return polled_ + place; }
    /// Reads what was kicked to `place`, a multiple of the value's size and reserved, which nobody
    /// checks; what was kicked before it is then there too. After connect().
    template <Kickable T>
    T load(Offset place) const noexcept {
        // Acquire, pairs with the release of Kick::store().
        return std::atomic_ref<T>(*reinterpret_cast<T*>(at(place))).load(std::memory_order_acquire);
    }
    /// Waits until predicate(value at `place`): spins, polls, yields, sleeps. After connect(), and
    /// not from a handler, callback or foreign call, where a wait ends the process with a line.
    /// With a time limit: Network::wait_until().
    template <Kickable T, class Predicate>
    void wait_until(Offset place, Predicate&& predicate) noexcept {
        wait_for([&] { return predicate(load<T>(place)); });
    }
    /// As above for any look at this node's memory. It may be asked again after it was true, so it
    /// must not take anything.
    template <class Look>
    void wait_for(Look&& look) noexcept {
        // Looks are cheaper than polls.
        for (std::uint32_t left = looks_before_poll; left != 0; --left) {
            if (look()) return;
            __builtin_ia32_pause();
        }
        using Plain = std::remove_reference_t<Look>;
        if constexpr (std::is_function_v<Plain>) {
            Plain* const function = look;
            return wait_for(function);
        } else {
            wait([](void* p) -> bool { return (*static_cast<Plain*>(p))(); },
                 const_cast<std::remove_const_t<Plain>*>(&look));
        }
    }
    /// Wakes threads of `node`, a rank of the job, that sleep on what was kicked before. Costs a
    /// fence and a load. After connect().
    virtual void wake(NodeId node) noexcept = 0;

    /// Since the board was made, by kick() on this node.
    virtual HeaderCounts header_counts() const noexcept = 0;
    /// Bytes that came with a foreign stamp, or for a place outside, and were not written.
    virtual std::uint64_t refused() const noexcept = 0;

protected:
    template <Kickable>
    friend class Kick;
    template <Kickable>
    friend class KickAfter;
    Board() = default;

    struct Page {
        std::byte* mapped = nullptr;
        std::uint32_t bytes = 0;
        const void* seed = nullptr;
    };
    virtual bool prepare(NodeId node, const net::Handle* memory, std::uint64_t page_offset,
                         std::uint32_t value_bytes, Page& page, std::string* why) = 0;
    virtual void post(const void* seed, std::uint32_t offset, std::uint64_t value,
                      bool more) noexcept = 0;
    virtual void post_from_handler(const void* seed, std::uint32_t offset,
                                   std::uint64_t value) noexcept = 0;
    virtual void wait(bool (*look)(void*), void* argument) noexcept = 0;
    virtual std::unique_ptr<ChannelEnds> channel_ends(std::uint32_t item_bytes,
                                                      std::optional<NodeId> to,
                                                      std::optional<NodeId> from,
                                                      std::string* why) = 0;
    virtual std::unique_ptr<Reduction> reduction(std::uint32_t value_bytes, const Group& group,
                                                 Shape shape, std::string* why) = 0;

    template <Kickable T>
    std::optional<Kick<T>> prepared(NodeId node, const net::Handle* memory,
                                    std::uint64_t page_offset, std::string* why) {
        Page page;
        if (!prepare(node, memory, page_offset, sizeof(T), page, why)) return std::nullopt;
        Kick<T> made;
        made.page_ = page.mapped;
        made.board_ = this;
        made.bytes_ = page.bytes;
        made.seed_ = page.seed;
        made.node_ = node;
        return made;
    }

    static constexpr std::uint32_t looks_before_poll = 50;
    NodeId self_;
    std::uint32_t nodes_ = 1;
    std::byte* polled_ = nullptr;
};

template <Kickable T>
void Kick<T>::post(std::uint32_t offset, T value, bool more) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    board_->post(seed_, offset, word, more);
}

/// One kick behind one asynchronous write: the flag that says "the block I sent by other means is
/// there" (section 4). It lives until over() and is used for one write at a time. Its Kick
/// outlives it.
template <Kickable T>
class KickAfter {
public:
    explicit KickAfter(Kick<T>& kick) noexcept : kick_(kick) {}
    KickAfter(const KickAfter&) = delete;
    KickAfter& operator=(const KickAfter&) = delete;

    /// For WriteParams::on_complete of a write to any memory of the kick's node: `value` lands at
    /// `offset` of the kick's page when the written bytes are visible, and sleepers there are
    /// woken. Where nothing is mapped it is in no order with other kicks. A write that fails kicks
    /// nothing. A write that finds `again` is repeated; after one that is refused over() stays
    /// false, so look at what the request returned. `offset` is masked as in Kick::store(). That
    /// the write goes to the kick's node is not checked. Not while a former write is under way.
    net::Callback callback(std::uint32_t offset, T value) noexcept {
        offset_ = offset;
        value_ = value;
        state_.store(State::waiting, std::memory_order_relaxed);
        return {[](void* self, net::Outcome outcome) noexcept {
                    static_cast<KickAfter*>(self)->complete(outcome);
                },
                this};
    }
    /// The write is over, and the kick on its way unless it failed.
    bool over() const noexcept {
        return state_.load(std::memory_order_acquire) != State::waiting;  // pairs with complete()
    }
    bool failed() const noexcept {
        return state_.load(std::memory_order_acquire) == State::failed;  // pairs with complete()
    }

private:
    enum class State : std::uint8_t { waiting, kicked, failed };
    void complete(net::Outcome outcome) noexcept {
        if (outcome == net::Outcome::done) {
            if (kick_.is_mapped()) {
                kick_.store(offset_, value_);
                kick_.board_->wake(kick_.node());
            } else {
                std::uint64_t word = 0;
                std::memcpy(&word, &value_, sizeof value_);
                kick_.board_->post_from_handler(kick_.seed_, offset_ & offset_mask<T>, word);
            }
        }
        state_.store(outcome == net::Outcome::done ? State::kicked : State::failed,
                     std::memory_order_release);
    }

    Kick<T>& kick_;
    std::uint32_t offset_ = 0;
    T value_{};
    std::atomic<State> state_{State::kicked};
};

}  // namespace hiroba::kick
