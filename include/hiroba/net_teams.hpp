// SPDX-License-Identifier: BSD-3-Clause
// Role: teams: some of a job's nodes, in an order of their own, with collectives of their own,
// blocking ones and ones that go on beside the program.
//
// Link as for hiroba/net.hpp, with which it comes. C++20.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "hiroba/net.hpp"

namespace hiroba::net {

/// This node's part of a team. Network::team() makes that of all nodes, split() smaller ones.
///
/// Collectives: the same calls in the same order on every member, begun by one thread of each, with
/// equal sizes; blocking and started ones count in one order. Any number may be under way at once.
/// Calls that differ end the process with a line that has both. They go on in handlers, so that who
/// started one may compute; nothing is promised about the order in which they end.
///
/// start_*: returns at once, not from handlers; `pending` is waited for by Network::wait(), which
/// returns false where a member is lost. Memory, and `combine`, are borrowed until then. What one
/// member gives and what it takes must not overlap, unless said otherwise. Destroyed before the
/// network, and not while a collective is under way, which ends the process with a line.
class __attribute__((visibility("default"))) Team {
public:
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;
    virtual ~Team() = default;

    /// This node's number in the team, how many there are, and which node has a number.
    virtual std::uint32_t self() const noexcept = 0;
    virtual std::uint32_t size() const noexcept = 0;
    virtual NodeId node(std::uint32_t member) const noexcept = 0;

    static constexpr std::uint32_t no_color = ~std::uint32_t{0};
    /// Collective of this team: members of one `color` are a team, by `key`, then by their numbers
    /// here. nullptr for no_color.
    virtual std::unique_ptr<Team> split(std::uint32_t color, std::uint32_t key = 0) noexcept = 0;

    void barrier() noexcept { run({.kind = Kind::barrier}); }
    void start_barrier(Pending& pending) noexcept { start({.kind = Kind::barrier}, pending); }
    /// `data` of member `root` to all.
    void broadcast(std::uint32_t root, std::span<std::byte> data) noexcept {
        run(with(Kind::broadcast, root, {}, data, data.size()));
    }
    void start_broadcast(std::uint32_t root, std::span<std::byte> data, Pending& pending) noexcept {
        start(with(Kind::broadcast, root, {}, data, data.size()), pending);
    }
    /// Members' `mine` to `root`, in their order. @param all  size() * mine.size() bytes at the
    /// root, of which this member's place may be `mine`; elsewhere not looked at
    void gather(std::uint32_t root, std::span<const std::byte> mine,
                std::span<std::byte> all) noexcept {
        run(with(Kind::gather, root, mine, all, mine.size()));
    }
    void start_gather(std::uint32_t root, std::span<const std::byte> mine, std::span<std::byte> all,
                      Pending& pending) noexcept {
        start(with(Kind::gather, root, mine, all, mine.size()), pending);
    }
    /// As gather(), to all.
    void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) noexcept {
        run(with(Kind::all_gather, 0, mine, all, mine.size()));
    }
    void start_all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                          Pending& pending) noexcept {
        start(with(Kind::all_gather, 0, mine, all, mine.size()), pending);
    }
    /// Piece r of `out` to member r. @param out,in  size() * piece_bytes bytes
    void all_to_all(std::span<const std::byte> out, std::span<std::byte> in,
                    std::size_t piece_bytes) noexcept {
        run(with(Kind::all_to_all, 0, out, in, piece_bytes));
    }
    void start_all_to_all(std::span<const std::byte> out, std::span<std::byte> in,
                          std::size_t piece_bytes, Pending& pending) noexcept {
        start(with(Kind::all_to_all, 0, out, in, piece_bytes), pending);
    }
    /// Combines the members' `values` by `combine(value, other)` at `root`; elsewhere `values` are
    /// undefined afterwards. Neighbours are combined first, in brackets that depend on size()
    /// alone: the same bits each time. `combine` is the same on all, must not throw or wait, and
    /// runs in handlers.
    template <class T, std::size_t extent, class Combine>
    void reduce(std::uint32_t root, std::span<T, extent> values, Combine&& combine) noexcept {
        run(reduction(Kind::reduce, root, std::span<T>(values), combine));
    }
    template <class T, std::size_t extent, class Combine>
    void start_reduce(std::uint32_t root, std::span<T, extent> values, Combine& combine,
                      Pending& pending) noexcept {
        start(reduction(Kind::reduce, root, std::span<T>(values), combine), pending);
    }
    /// As reduce(), to all: the same bits.
    template <class T, std::size_t extent, class Combine>
    void all_reduce(std::span<T, extent> values, Combine&& combine) noexcept {
        run(reduction(Kind::all_reduce, 0, std::span<T>(values), combine));
    }
    template <class T, std::size_t extent, class Combine>
    void start_all_reduce(std::span<T, extent> values, Combine& combine,
                          Pending& pending) noexcept {
        start(reduction(Kind::all_reduce, 0, std::span<T>(values), combine), pending);
    }

protected:
    Team() = default;
    enum class Kind : std::uint8_t {
        barrier,
        broadcast,
        gather,
        all_gather,
        all_to_all,
        reduce,
        all_reduce
    };
    struct Work {
        Kind kind{};
        std::uint32_t root = 0;
        std::span<const std::byte> from{};
        std::span<std::byte> to{};
        std::size_t bytes = 0;
        std::size_t value_bytes = 1;
        void (*each)(void* with, std::byte* into, const std::byte* other,
                     std::size_t count) = nullptr;
        void* with = nullptr;
    };
    virtual void start_work(const Work& work, const Callback& over) noexcept = 0;
    virtual void run_work(const Work& work) noexcept = 0;

private:
    void start(const Work& work, Pending& pending) noexcept {
        start_work(work, pending.callback());
    }
    void run(const Work& work) noexcept { run_work(work); }
    static Work with(Kind kind, std::uint32_t root, std::span<const std::byte> from,
                     std::span<std::byte> to, std::size_t bytes) noexcept {
        return {.kind = kind, .root = root, .from = from, .to = to, .bytes = bytes};
    }
    template <class T, class Combine>
    static Work reduction(Kind kind, std::uint32_t root, std::span<T> values,
                          Combine& combine) noexcept {
        static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 16);
        Work work = with(kind, root, {}, std::as_writable_bytes(values), values.size_bytes());
        work.value_bytes = sizeof(T);
        work.each = [](void* how, std::byte* into, const std::byte* other, std::size_t count) {
            auto* const mine = reinterpret_cast<T*>(into);
            const auto* const theirs = reinterpret_cast<const T*>(other);
            for (std::size_t i = 0; i < count; ++i) {
                if constexpr (std::is_function_v<Combine>)
                    mine[i] = static_cast<T>(reinterpret_cast<Combine*>(how)(mine[i], theirs[i]));
                else
                    mine[i] = static_cast<T>((*static_cast<Combine*>(how))(mine[i], theirs[i]));
            }
        };
        if constexpr (std::is_function_v<Combine>)
            work.with = reinterpret_cast<void*>(&combine);
        else
            work.with = const_cast<std::remove_const_t<Combine>*>(&combine);
        return work;
    }
};

}  // namespace hiroba::net
