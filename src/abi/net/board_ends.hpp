// SPDX-License-Identifier: BSD-3-Clause
// Role: windows, channels, barriers and reductions of the kick face: each converts calls to one of
// net/kick, refuses use out of turn, and waits so that a node that has left ends the wait.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "abi/net/network.hpp"
#include "base/fatal.hpp"
#include "hiroba/kick.hpp"
#include "net/kick/kick.hpp"

namespace hiroba::kick {

namespace inner = net::kick;

inline void tell(std::string* why, std::string text) {
    if (why != nullptr) *why = std::move(text);
}
/// False, and `why`, for an error.
template <class Value>
bool good(const Result<Value>& result, std::string* why) {
    if (!result) tell(why, result.error().text);
    return static_cast<bool>(result);
}

/// What is used to send or to receive (`use`), which asks for a node (`argument`) at the making.
template <class End>
End& end_of(std::optional<End>& end, const char* what, NodeId self, const char* use,
            const char* argument) noexcept {
    if (!end) [[unlikely]]
        fatal("a %s of node %u is used to %s: made without `%s`, or before Network::connect()",
              what, self.value, use, argument);
    return *end;
}

/// What a wait needs, behind one pointer.
template <class Look, class EachAwaited>
struct Both {
    Look& look;
    EachAwaited& each_awaited;
};
/// Waits until look(), which may be asked again after it was true. Refused in a handler, a callback
/// or a foreign call.
/// @param what  "in a kick barrier for"
/// @param each_awaited  each_awaited(note): calls note(node) for those without whom it does not end
template <class Look, class EachAwaited>
void await(net::NetworkOver& network, inner::Board& board, const char* what, Look&& look,
           EachAwaited&& each_awaited) noexcept {
    if (look()) return;
    net::refuse_in_handler(board.endpoint());
    const auto ready = [](void* with) {
        return static_cast<Both<Look, EachAwaited>*>(with)->look();
    };
    Both<Look, EachAwaited> both{look, each_awaited};
    net::ShortWait first{ready, &both};
    board.wait_for(first);
    if (first.is_ready()) return;
    network.wait_on({what, ready,
                     [](void* with, std::vector<NodeId>& awaited) {
                         static_cast<Both<Look, EachAwaited>*>(with)->each_awaited(
                             [&](NodeId node) { awaited.push_back(node); });
                     },
                     &both});
}

/// The two ends of a node's window.
struct WindowEnds {
    std::optional<inner::Window> out;
    std::optional<inner::Landed> in;
};

class WindowOver final : public Window {
public:
    WindowOver(net::NetworkOver& network, inner::Board& board, std::shared_ptr<WindowEnds> ends)
        : network_(network), board_(board), ends_(std::move(ends)) {}
    bool may_overwrite() noexcept override { return out().may_overwrite(); }
    void await_room() noexcept override {
        inner::Window& window = out();
        if (window.may_overwrite()) return;
        window.ask_for_room();
        await(
            network_, board_, "for room in a kick window to",
            [&] { return window.may_overwrite(); }, [&](auto&& note) { note(window.to()); });
    }
    std::span<std::byte> payload() noexcept override { return out().payload(); }
    bool send(std::uint32_t bytes, std::string* why) noexcept override {
        return good(out().send(bytes), why);
    }
    bool arrived() noexcept override { return in().arrived(); }
    std::span<const std::byte> receive() noexcept override {
        inner::Landed& landed = in();
        await(
            network_, board_, "for a kick window of", [&] { return landed.arrived(); },
            [&](auto&& note) { note(landed.from()); });
        return landed.bytes();
    }
    void take() noexcept override {
        inner::Landed& landed = in();
        if (!landed.arrived()) [[unlikely]]
            fatal(
                "node %u takes from a kick window in which nothing has arrived: take() once after "
                "each receive(), or arrived() that was true",
                board_.self().value);
        landed.take();
    }

private:
    inner::Window& out() noexcept {
        return end_of(ends_->out, "kick window", board_.self(), "send", "to");
    }
    inner::Landed& in() noexcept {
        return end_of(ends_->in, "kick window", board_.self(), "receive", "from");
    }
    net::NetworkOver& network_;
    inner::Board& board_;
    std::shared_ptr<WindowEnds> ends_;
};

template <class Item>
struct ItemEnds {
    std::optional<inner::ChannelSender<Item>> out;
    std::optional<inner::ChannelReceiver<Item>> in;
};

/// Items of one size, as the unsigned integer of that size.
template <class Item>
class ChannelOver final : public ChannelEnds {
public:
    ChannelOver(net::NetworkOver& network, inner::Board& board,
                std::shared_ptr<ItemEnds<Item>> ends)
        : network_(network), board_(board), ends_(std::move(ends)) {}
    /// Sends what was streamed since the last flush(); not behind the network, which keeps the ends
    /// too as long as it lives.
    ~ChannelOver() override {
        if (ends_.use_count() > 1 && ends_->out) ends_->out->flush();
    }
    bool try_stream(const void* item) noexcept override { return out().try_stream(of(item)); }
    void stream(const void* item) noexcept override {
        auto& end = out();
        if (end.try_stream(of(item))) return;
        end.flush();
        await(
            network_, board_, "for room in a channel to", [&] { return end.has_room(); },
            [&](auto&& note) { note(end.to()); });
        end.try_stream(of(item));
    }
    void flush() noexcept override { out().flush(); }
    bool try_receive(void* item) noexcept override {
        const std::optional<Item> came = in().try_receive();
        if (came) std::memcpy(item, &*came, sizeof *came);
        return came.has_value();
    }
    void receive(void* item) noexcept override {
        auto& end = in();
        await(
            network_, board_, "for an item of a channel from", [&] { return end.has_item(); },
            [&](auto&& note) { note(end.from()); });
        try_receive(item);
    }

private:
    static Item of(const void* bytes) noexcept {
        Item item;
        std::memcpy(&item, bytes, sizeof item);
        return item;
    }
    inner::ChannelSender<Item>& out() noexcept {
        return end_of(ends_->out, "channel", board_.self(), "send", "to");
    }
    inner::ChannelReceiver<Item>& in() noexcept {
        return end_of(ends_->in, "channel", board_.self(), "receive", "from");
    }
    net::NetworkOver& network_;
    inner::Board& board_;
    std::shared_ptr<ItemEnds<Item>> ends_;
};

class BarrierOver final : public Barrier {
public:
    BarrierOver(net::NetworkOver& network, inner::Board& board,
                std::shared_ptr<std::optional<inner::Barrier>> made)
        : network_(network), board_(board), made_(std::move(made)) {}
    void arrive() noexcept override {
        if (is_open_) [[unlikely]]
            fatal(
                "node %u arrives a second time at a kick barrier: wait(), or ask passed() until it "
                "is true, in between",
                board_.self().value);
        barrier().arrive();
        is_open_ = may_wait_ = true;
    }
    bool passed() noexcept override {
        const bool passed = barrier().passed();
        is_open_ = is_open_ && !passed;
        return passed;
    }
    void wait() noexcept override {
        if (!may_wait_) [[unlikely]]
            fatal("node %u waits at a kick barrier without having arrived: arrive() first",
                  board_.self().value);
        inner::Barrier& inside = barrier();
        await(
            network_, board_, "in a kick barrier for", [&] { return inside.passed(); },
            [&](auto&& note) { inside.each_awaited(note); });
        is_open_ = may_wait_ = false;
    }

private:
    inner::Barrier& barrier() noexcept {
        if (!*made_) [[unlikely]]
            fatal("a kick barrier of node %u is used before Network::connect(): connect first",
                  board_.self().value);
        return **made_;
    }
    net::NetworkOver& network_;
    inner::Board& board_;
    std::shared_ptr<std::optional<inner::Barrier>> made_;
    bool is_open_ = false;   ///< since arrive(), until it is known to have passed
    bool may_wait_ = false;  ///< since arrive(), until wait()
};

template <std::size_t words>
struct Words {
    std::uint64_t word[words];
};

template <std::size_t words>
class ReductionOver final : public Reduction {
public:
    using Value = Words<words>;
    using Made = std::shared_ptr<std::optional<inner::AllReduce<Value>>>;
    /// @param index,members  of this node in the group, and of the group
    ReductionOver(net::NetworkOver& network, inner::Board& board, std::uint32_t index,
                  std::uint32_t members, Made made)
        : network_(network),
          board_(board),
          index_(index),
          members_(members),
          made_(std::move(made)) {}
    void run(void* value, Combine combine, void* with) noexcept override {
        combine_all(value, sizeof(Value), {}, [&](Value a, const Value& b) {
            combine(with, &a, &b);
            return a;
        });
    }
    /// The others bring zeros.
    void broadcast(void* value, std::uint32_t bytes, std::uint32_t root) noexcept override {
        if (root >= members_)
            fatal("kick broadcast from member %u of a group of %u (node %u calls it)", root,
                  members_, board_.self().value);
        if (root != index_) std::memset(value, 0, bytes);
        combine_all(value, bytes, {.bytes = bytes, .root = root}, [](Value a, const Value& b) {
            for (std::size_t i = 0; i < words; ++i) a.word[i] |= b.word[i];
            return a;
        });
    }

private:
    template <class Combine>
    void combine_all(void* value, std::uint32_t bytes, inner::ReduceCall call,
                     Combine&& combine) noexcept {
        if (!*made_) [[unlikely]]
            fatal("a kick reduction of node %u is used before Network::connect(): connect first",
                  board_.self().value);
        net::refuse_in_handler(board_.endpoint());
        inner::AllReduce<Value>& inside = **made_;
        Value mine{};
        std::memcpy(&mine, value, bytes);
        inside.start(mine, call);
        await(
            network_, board_, "in a kick reduction for", [&] { return inside.finished(combine); },
            [&](auto&& note) { inside.each_awaited(note); });
        std::memcpy(value, &inside.result(), bytes);
    }
    net::NetworkOver& network_;
    inner::Board& board_;
    std::uint32_t index_, members_;
    Made made_;
};

}  // namespace hiroba::kick
