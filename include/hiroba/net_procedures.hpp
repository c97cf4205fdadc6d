// SPDX-License-Identifier: BSD-3-Clause
// Role: remote procedures: a function of the program runs on another node, with arguments, and its
// result comes back as a future.
//
//     std::uint64_t insert(const Caller&, std::uint64_t key, std::uint64_t value);
//     Future<std::uint64_t> old = call<&insert>(network, NodeId{3}, 17, 4);
//     old.then([](std::uint64_t before) { ... });
//
// Link as for hiroba/net.hpp, with which it comes. C++20.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "hiroba/net.hpp"

namespace hiroba::net {

/// What a procedure may take as its first parameter, by const reference.
struct Caller {
    Network& network;
    NodeId from;
};

/// How a procedure is called: arguments as they travel in, the result out.
/// @return  the result's bytes, at most procedure_result_max
using ProcedureEntry = std::size_t (*)(const Caller& caller, std::span<const std::byte> arguments,
                                       std::byte* result) noexcept;
inline constexpr std::size_t procedure_result_max = 4096;

/// Notes a procedure of this process under its id. Twice is no mistake.
__attribute__((visibility("default"))) bool add_procedure(std::uint64_t id,
                                                          ProcedureEntry entry) noexcept;

namespace procedures {

template <class Function>
struct Shape;
template <class R, class... P>
struct Shape<R (*)(P...)> {
    using Result = R;
    using Parameters = std::tuple<std::remove_cvref_t<P>...>;
};
template <class R, class... P>
struct Shape<R (*)(P...) noexcept> : Shape<R (*)(P...)> {};

template <class T>
inline constexpr bool is_bytes = std::is_same_v<T, std::span<const std::byte>>;

/// The parameters behind a Caller.
template <class Tuple>
struct Behind {
    static constexpr bool takes_caller = false;
    using Rest = Tuple;
};
template <class... Rest_>
struct Behind<std::tuple<Caller, Rest_...>> {
    static constexpr bool takes_caller = true;
    using Rest = std::tuple<Rest_...>;
};

template <class Tuple>
struct Packed;
template <class... T>
struct Packed<std::tuple<T...>> {
    static constexpr std::size_t count = sizeof...(T);
    static constexpr bool ends_in_bytes = [] {
        bool is_last = false;
        ((is_last = is_bytes<T>), ...);
        return is_last;
    }();
    static constexpr std::size_t fixed_bytes =
        (std::size_t{0} + ... + (is_bytes<T> ? std::size_t{0} : sizeof(T)));
    static_assert(((std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>)&&...),
                  "arguments of remote procedures are trivially copyable, and no pointers");
    static_assert((std::size_t{0} + ... + std::size_t{is_bytes<T>}) == std::size_t{ends_in_bytes},
                  "a span of bytes is the last parameter");

    template <class Each>
    static void take(std::span<const std::byte>& from, Each& to) noexcept {
        if constexpr (is_bytes<Each>) {
            to = from;
        } else {
            std::memcpy(static_cast<void*>(&to), from.data(), sizeof to);
            from = from.subspan(sizeof to);
        }
    }
    template <class Each>
    static void give(std::byte*& to, const Each& from) noexcept {
        if constexpr (!is_bytes<Each>) {
            std::memcpy(to, &from, sizeof from);
            to += sizeof from;
        }
    }
};

/// The name of the function tells it apart, in whichever process it is.
template <auto function, class Type = decltype(function)>
constexpr std::uint64_t id_of() noexcept {
    std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    for (const char each : std::string_view(__PRETTY_FUNCTION__))
        hash = (hash ^ static_cast<unsigned char>(each)) * 0x100000001b3;
    return hash;
}

template <auto function>
std::size_t enter(const Caller& caller, std::span<const std::byte> arguments,
                  std::byte* result) noexcept {
    using Of = Shape<decltype(function)>;
    using Parts = Behind<typename Of::Parameters>;
    using Packing = Packed<typename Parts::Rest>;
    using Result = typename Of::Result;
    typename Parts::Rest values{};
    std::apply([&](auto&... each) { (Packing::take(arguments, each), ...); }, values);
    const auto run = [&](auto&... each) -> Result {
        if constexpr (Parts::takes_caller)
            return function(caller, each...);
        else
            return function(each...);
    };
    if constexpr (std::is_void_v<Result>) {
        std::apply(run, values);
        return 0;
    } else {
        static_assert(std::is_trivially_copyable_v<Result> &&
                      sizeof(Result) <= procedure_result_max);
        const Result value = std::apply(run, values);
        std::memcpy(result, &value, sizeof value);
        return sizeof value;
    }
}

/// Before main(), in every process that has the call in its code.
template <auto function>
inline const bool added = add_procedure(id_of<function>(), &enter<function>);

struct Nothing {};

}  // namespace procedures

/// The result of a procedure, perhaps not there yet. Copies are of the same result. Waits: as
/// Network::wait_until(). The network outlives it.
template <class T>
class Future {
    using Value = std::conditional_t<std::is_void_v<T>, procedures::Nothing, T>;
    struct Continuation {
        std::function<void()> run;
        Continuation* next = nullptr;
    };
    struct State {
        explicit State(Network& of) : network(of) {}
        ~State() {
            // Relaxed: no other thread is left.
            Continuation* each = first.load(std::memory_order_relaxed);
            while (each != nullptr && each != over()) delete std::exchange(each, each->next);
        }
        static Continuation* over() noexcept {
            static Continuation mark;
            return &mark;
        }
        bool is_over() const noexcept {
            return first.load(std::memory_order_acquire) == over();  // pairs with end()
        }
        void end() noexcept {
            // The newest is first: turned round.
            Continuation* each = first.exchange(over(), std::memory_order_acq_rel);
            Continuation* turned = nullptr;
            while (each != nullptr) {
                Continuation* const next = std::exchange(each->next, turned);
                turned = std::exchange(each, next);
            }
            while (turned != nullptr) {
                turned->run();
                delete std::exchange(turned, turned->next);
            }
            network.wake();
        }
        Network& network;
        Value value{};
        bool is_lost = false;
        std::atomic<Continuation*> first{nullptr};  ///< over(): the result is there
    };

public:
    /// One that ends by finish(); of procedures and then().
    explicit Future(Network& network) : state_(std::make_shared<State>(network)) {}

    bool ready() const noexcept { return state_->is_over(); }
    /// @return false: the node is lost
    bool wait() const noexcept {
        state_->network.wait_until([this] { return ready(); });
        return !state_->is_lost;
    }
    /// Waits. Nothing: the node is lost. Of procedures without a result see wait().
    std::optional<Value> get() const noexcept {
        return wait() ? std::optional<Value>(state_->value) : std::nullopt;
    }
    /// Has `next` run with the result (without an argument for void) once it is there: at once, or
    /// on the thread that polls, where it must not wait or throw. What it returns is the result of
    /// the new future. Where the node is lost `next` does not run, and the new one is lost too.
    template <class Next>
    auto then(Next next) const {
        using Made = decltype(apply(next, std::declval<Value&>()));
        static_assert(std::is_void_v<Made> || std::is_default_constructible_v<Made>);
        Future<Made> made(state_->network);
        // The state, not the future, is kept by its continuation: it would keep itself otherwise.
        State* const mine = state_.get();
        add([mine, next = std::move(next), made]() mutable {
            if (mine->is_lost) return made.finish_lost();
            if constexpr (std::is_void_v<Made>) {
                apply(next, mine->value);
                made.finish({});
            } else {
                made.finish(apply(next, mine->value));
            }
        });
        return made;
    }

    void finish(const Value& value) const noexcept {
        state_->value = value;
        state_->end();
    }
    void finish_lost() const noexcept {
        state_->is_lost = true;
        state_->end();
    }
    /// Where the result goes before finish_in_place().
    std::byte* place() const noexcept { return reinterpret_cast<std::byte*>(&state_->value); }
    void finish_in_place() const noexcept { state_->end(); }

private:
    template <class Next>
    static decltype(auto) apply(Next& next, Value& value) {
        if constexpr (std::is_void_v<T>)
            return static_cast<void>(value), next();
        else
            return next(value);
    }
    template <class Run>
    void add(Run run) const {
        auto* const fresh = new Continuation{std::move(run)};
        // Acquire, pairs with end(): the value is looked at where the result is there.
        Continuation* seen = state_->first.load(std::memory_order_acquire);
        do {
            if (seen == State::over()) {
                fresh->run();
                delete fresh;
                return;
            }
            fresh->next = seen;
        } while (!state_->first.compare_exchange_weak(seen, fresh, std::memory_order_acq_rel));
    }
    std::shared_ptr<State> state_;
};

/// Has `function` of node `to` run, in a handler there, one at a time: it must not wait, but may
/// make requests and further calls. Its parameters are trivially copyable values, before them
/// perhaps a `const Caller&`, last perhaps a `std::span<const std::byte>` that is borrowed until it
/// returns; its result is void or trivially copyable, up to 4 KiB. Arguments together: up to
/// Network::payload_bytes_max(); more ends the process. All are copied. From handlers and callbacks
/// too, where the 1,025th question under way at once ends the process.
/// Two functions of one name, as in unnamed namespaces of two files, end the process at their call.
template <auto function, class... Arguments>
auto call(Network& network, NodeId to, const Arguments&... arguments) {
    using Of = procedures::Shape<decltype(function)>;
    using Parts = procedures::Behind<typename Of::Parameters>;
    using Values = typename Parts::Rest;
    using Packing = procedures::Packed<Values>;
    static_assert(sizeof...(Arguments) == Packing::count, "the arguments that the function takes");
    static_cast<void>(&procedures::added<function>);
    const Values values{arguments...};
    std::array<std::byte, Packing::fixed_bytes + 1> fixed;
    std::span<const std::byte> bytes;
    std::byte* at = fixed.data();
    std::apply([&](const auto&... each) { (Packing::give(at, each), ...); }, values);
    if constexpr (Packing::ends_in_bytes) bytes = std::get<Packing::count - 1>(values);
    using Result = typename Of::Result;
    Future<Result> made(network);
    constexpr std::size_t result_bytes = [] {
        if constexpr (std::is_void_v<Result>)
            return std::size_t{0};
        else
            return sizeof(Result);
    }();
    auto* const kept = new Future<Result>(made);
    const Callback over{
        [](void* data, Outcome outcome) noexcept {
            const std::unique_ptr<Future<Result>> ended(static_cast<Future<Result>*>(data));
            if (outcome == Outcome::peer_lost) return ended->finish_lost();
            ended->finish_in_place();
        },
        kept, nullptr};
    network.insist([&] {
        return network.try_procedure_async(
            {.target = to,
             .id = procedures::id_of<function>(),
             .fixed = std::span<const std::byte>(fixed).first(Packing::fixed_bytes),
             .bytes = bytes,
             .result = {made.place(), result_bytes},
             .on_complete = over});
    });
    return made;
}

}  // namespace hiroba::net
