// SPDX-License-Identifier: BSD-3-Clause
// Role: the face of kicks: reserves in net/kick before the network connects, resolves when it has,
// and converts calls. Invariant: what a user drops before connecting was reserved all the same, so
// every node has the same places.
#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <map>
#include <mutex>
#include <utility>

#include "abi/net/board_ends.hpp"
#include "abi/net/network.hpp"
#include "base/fatal.hpp"
#include "hiroba/kick.hpp"
#include "net/kick/kick.hpp"

namespace hiroba::kick {
namespace {

class BoardOver final : public Board {
public:
    BoardOver(net::NetworkOver& network, std::shared_ptr<inner::Board> board)
        : network_(network), board_(std::move(board)) {
        self_ = network.self();
        nodes_ = network.nodes();
        network_.at_connect([link = link_, kept = board_] {
            kept->attach();
            if (*link != nullptr) (*link)->polled_ = kept->at(inner::Offset{0});
            return Result<void>{};
        });
    }
    ~BoardOver() override { *link_ = nullptr; }

    std::optional<Offset> reserve(std::size_t bytes, std::size_t alignment,
                                  std::string* why) override {
        if (late(why)) return std::nullopt;
        if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > page_bytes) {
            tell(why, "kick: polled memory aligned to " + std::to_string(alignment) +
                          " bytes; a power of two up to " + std::to_string(page_bytes));
            return std::nullopt;
        }
        const auto place = board_->reserve(bytes, alignment);
        if (!good(place, why)) return std::nullopt;
        note("reserve", {bytes, alignment});
        return *place;
    }
    bool expose(net::Handle memory, std::string* why) override;
    std::unique_ptr<Window> window(std::uint32_t bytes, std::optional<NodeId> to,
                                   std::optional<NodeId> from, std::string* why) override;
    std::unique_ptr<Barrier> barrier(const Group& group, Shape shape, std::string* why) override;
    void wake(NodeId node) noexcept override { board_->wake(node); }
    HeaderCounts header_counts() const noexcept override {
        const inner::HeaderCache::Counts counts = board_->header_counts();
        return {counts.hits, counts.misses, counts.evictions};
    }
    std::uint64_t refused() const noexcept override { return board_->refused(); }

protected:
    bool prepare(NodeId node, const net::Handle* memory, std::uint64_t page_offset,
                 std::uint32_t value_bytes, Page& page, std::string* why) override;
    void post(const void* seed, std::uint32_t offset, std::uint64_t value,
              bool more) noexcept override {
        board_->post(*static_cast<const net::PreparedKick*>(seed), offset, value, more);
    }
    void post_from_handler(const void* seed, std::uint32_t offset,
                           std::uint64_t value) noexcept override {
        board_->post_from_handler(*static_cast<const net::PreparedKick*>(seed), offset, value);
    }
    void wait(bool (*look)(void*), void* argument) noexcept override {
        if (look(argument)) return;
        if (!network_.connected())
            fatal("node %u waits on its kick board before Network::connect(): connect first",
                  self_.value);
        net::refuse_in_handler(board_->endpoint());
        net::ShortWait first{look, argument};
        board_->endpoint().wait_until(first);
        if (!first.is_ready()) network_.wait_on({"in Board::wait_for()", look, nullptr, argument});
    }
    std::unique_ptr<ChannelEnds> channel_ends(std::uint32_t item_bytes, std::optional<NodeId> to,
                                              std::optional<NodeId> from,
                                              std::string* why) override;
    std::unique_ptr<Reduction> reduction(std::uint32_t value_bytes, const Group& group, Shape shape,
                                         std::string* why) override;

private:
    /// Notes a call that succeeded, with what must be equal on every node.
    void note(const char* call, std::initializer_list<std::size_t> numbers,
              std::optional<NodeId> to = {}, std::optional<NodeId> from = {});
    void note_group(const char* call, std::size_t bytes, const Group& group, Shape shape);
    /// Too late to reserve: other nodes have their places.
    bool late(std::string* why) const {
        if (network_.connected())
            tell(why, "kick: reserve before Network::connect(), on all nodes");
        return network_.connected();
    }
    bool in_job(std::optional<NodeId> node, std::string* why) const {
        if (!node || node->value < nodes_) return true;
        tell(why, "kick: node " + std::to_string(node->value) + " of a job of " +
                      std::to_string(nodes_) + " nodes");
        return false;
    }
    enum class Membership : std::uint8_t { none, member, wrong };
    Membership membership(const Group& group, std::string* why) const;
    inner::Group members(const Group& group) const {
        return group.empty() ? inner::everyone(board_->endpoint()) : group;
    }
    inner::Shape shape_of(const Group& group, Shape shape) const {
        const auto count = static_cast<std::uint32_t>(group.empty() ? nodes_ : group.size());
        return shape == Shape::tree ? inner::Shape::tree : inner::shape_for(count);
    }
    template <class Item>
    std::unique_ptr<ChannelEnds> make_channel(std::optional<NodeId> to, std::optional<NodeId> from,
                                              std::string* why);
    template <std::size_t words>
    std::unique_ptr<Reduction> make_reduction(std::uint32_t value_bytes, const Group& group,
                                              Shape shape, std::string* why);

    net::NetworkOver& network_;
    std::shared_ptr<inner::Board> board_;
    /// For the network, which sets polled_ when it connects if this board is still there.
    std::shared_ptr<BoardOver*> link_ = std::make_shared<BoardOver*>(this);
    std::mutex preparing_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, net::PreparedKick> prepared_;
};

void BoardOver::note(const char* call, std::initializer_list<std::size_t> numbers,
                     std::optional<NodeId> to, std::optional<NodeId> from) {
    std::string text = call;
    const char* before = "(";
    for (const std::size_t number : numbers) {
        text += before + std::to_string(number);
        before = ", ";
    }
    network_.set_up().note(text + ")", to, from);
}

/// All members stand in one number, since they may be many.
void BoardOver::note_group(const char* call, std::size_t bytes, const Group& group, Shape shape) {
    std::size_t members = 0;
    constexpr std::size_t factor = 1'000'003;
    for (const NodeId node : group) members = members * factor + node.value + 1;
    note(call, {bytes, group.size(), members, static_cast<std::size_t>(shape)});
}

BoardOver::Membership BoardOver::membership(const Group& group, std::string* why) const {
    if (late(why)) return Membership::wrong;
    std::vector<bool> seen(nodes_);
    bool here = group.empty();
    for (const NodeId node : group) {
        if (!in_job(node, why)) return Membership::wrong;
        if (seen[node.value]) {
            tell(why, "kick: node " + std::to_string(node.value) + " is a member twice");
            return Membership::wrong;
        }
        seen[node.value] = true;
        here = here || node == self_;
    }
    if (!here) tell(why, {});
    return here ? Membership::member : Membership::none;
}

bool BoardOver::expose(net::Handle memory, std::string* why) {
    if (late(why)) return false;
    const auto allocated = network_.async().allocated(memory);
    if (!allocated) {
        tell(why, "kick: handle " + std::to_string(memory.value) +
                      " is not memory that the network allocated");
        return false;
    }
    board_->expose(allocated->region, allocated->bytes);
    note("expose", {memory.value});
    return true;
}

bool BoardOver::prepare(NodeId node, const net::Handle* memory, std::uint64_t page_offset,
                        std::uint32_t value_bytes, Page& page, std::string* why) {
    if (!network_.connected()) {
        tell(why, "kick: targets are resolved after Network::connect()");
        return false;
    }
    net::RegionId region = board_->llcm();
    if (memory != nullptr) {
        const auto found = network_.async().allocated(*memory);
        if (!found) {
            tell(why, "kick: handle " + std::to_string(memory->value) +
                          " is not memory that the network allocated");
            return false;
        }
        region = found->region;
        const std::string handle = "handle " + std::to_string(memory->value);
        if (!board_->is_exposed(region)) {
            tell(why, "kick: " + handle +
                          " is not exposed to kicks: call Board::expose() on every node, before "
                          "Network::connect()");
            return false;
        }
        if (page_offset >= found->bytes) {
            tell(why, "kick: page at " + std::to_string(page_offset) + " of " + handle +
                          ", which has " + std::to_string(found->bytes) + " bytes");
            return false;
        }
    }
    const std::size_t polled = network_.endpoint().provider().local(board_->llcm()).size();
    if (memory == nullptr && page_offset >= polled) {
        tell(why, "kick: a page at " + std::to_string(page_offset) +
                      " of polled memory, which has " + std::to_string(polled) +
                      " bytes (Board::make's polled_bytes)");
        return false;
    }
    const auto target = board_->target(node, region, page_offset);
    if (!good(target, why)) return false;
    const auto header = board_->resolve(*target);
    if (!good(header, why)) return false;
    const std::scoped_lock guard{preparing_};
    const auto place = prepared_.try_emplace({target->number(), value_bytes});
    if (place.second) place.first->second = board_->prepare(*header, value_bytes);
    page = {header->page, header->bytes, &place.first->second};
    return true;
}

std::unique_ptr<Window> BoardOver::window(std::uint32_t bytes, std::optional<NodeId> to,
                                          std::optional<NodeId> from, std::string* why) {
    if (late(why) || !in_job(to, why) || !in_job(from, why)) return nullptr;
    const auto place = inner::WindowPlace::reserve(*board_, bytes);
    if (!good(place, why)) return nullptr;
    note("window", {bytes}, to, from);
    const auto ends = std::make_shared<WindowEnds>();
    network_.at_connect([=, board = board_, place = *place]() -> Result<void> {
        if (to) {
            auto made = inner::Window::open(*board, place, *to);
            if (!made) return made.error();
            ends->out.emplace(std::move(*made));
        }
        if (!from) return {};
        auto made = inner::Landed::open(*board, place, *from);
        if (!made) return made.error();
        ends->in.emplace(*made);
        return {};
    });
    return std::make_unique<WindowOver>(network_, *board_, ends);
}

template <class Item>
std::unique_ptr<ChannelEnds> BoardOver::make_channel(std::optional<NodeId> to,
                                                     std::optional<NodeId> from, std::string* why) {
    const auto place = inner::ChannelPlace::reserve(*board_);
    if (!good(place, why)) return nullptr;
    note("channel", {sizeof(Item)}, to, from);
    const auto ends = std::make_shared<ItemEnds<Item>>();
    network_.at_connect([=, board = board_, place = *place]() -> Result<void> {
        if (to) {
            auto made = inner::ChannelSender<Item>::open(*board, place, *to);
            if (!made) return made.error();
            ends->out.emplace(std::move(*made));
        }
        if (!from) return {};
        auto made = inner::ChannelReceiver<Item>::open(*board, place, *from);
        if (!made) return made.error();
        ends->in.emplace(std::move(*made));
        return {};
    });
    return std::make_unique<ChannelOver<Item>>(network_, *board_, ends);
}

std::unique_ptr<ChannelEnds> BoardOver::channel_ends(std::uint32_t item_bytes,
                                                     std::optional<NodeId> to,
                                                     std::optional<NodeId> from, std::string* why) {
    if (late(why) || !in_job(to, why) || !in_job(from, why)) return nullptr;
    switch (item_bytes) {
        case 1: return make_channel<std::uint8_t>(to, from, why);
        case 2: return make_channel<std::uint16_t>(to, from, why);
        case 4: return make_channel<std::uint32_t>(to, from, why);
        default: return make_channel<std::uint64_t>(to, from, why);
    }
}

std::unique_ptr<Barrier> BoardOver::barrier(const Group& group, Shape shape, std::string* why) {
    const Membership membership = this->membership(group, why);
    if (membership == Membership::wrong) return nullptr;
    const auto place = inner::Barrier::reserve(*board_);
    if (place) note_group("barrier", 0, group, shape);
    if (!good(place, why) || membership == Membership::none) return nullptr;
    const auto made = std::make_shared<std::optional<inner::Barrier>>();
    network_.at_connect([=, board = board_, place = *place, everyone = members(group),
                         form = shape_of(group, shape)]() -> Result<void> {
        auto opened = inner::Barrier::open(*board, place, everyone, form);
        if (!opened) return opened.error();
        made->emplace(std::move(*opened));
        return {};
    });
    return std::make_unique<BarrierOver>(network_, *board_, made);
}

template <std::size_t words>
std::unique_ptr<Reduction> BoardOver::make_reduction(std::uint32_t value_bytes, const Group& group,
                                                     Shape shape, std::string* why) {
    using Reduce = inner::AllReduce<Words<words>>;
    const Membership membership = this->membership(group, why);
    if (membership == Membership::wrong) return nullptr;
    const auto place = Reduce::reserve(*board_);
    if (place) note_group("reduction", value_bytes, group, shape);
    if (!good(place, why) || membership == Membership::none) return nullptr;
    const auto made = std::make_shared<std::optional<Reduce>>();
    network_.at_connect([=, board = board_, place = *place, everyone = members(group),
                         form = shape_of(group, shape)]() -> Result<void> {
        auto opened = Reduce::open(*board, place, everyone, form);
        if (!opened) return opened.error();
        made->emplace(std::move(*opened));
        return {};
    });
    const inner::Group all = members(group);
    const auto self = std::find(all.begin(), all.end(), self_);
    return std::make_unique<ReductionOver<words>>(network_, *board_,
                                                  static_cast<std::uint32_t>(self - all.begin()),
                                                  static_cast<std::uint32_t>(all.size()), made);
}

std::unique_ptr<Reduction> BoardOver::reduction(std::uint32_t value_bytes, const Group& group,
                                                Shape shape, std::string* why) {
    return value_bytes <= 8 ? make_reduction<1>(value_bytes, group, shape, why)
                            : make_reduction<2>(value_bytes, group, shape, why);
}

}  // namespace

std::unique_ptr<Board> Board::make(net::Network& network, std::string* why,
                                   std::size_t polled_bytes) {
    if (polled_bytes == 0) {
        tell(why, "kick: a board of 0 bytes of polled memory: 1 or more (Board::make)");
        return nullptr;
    }
    auto& over = static_cast<net::NetworkOver&>(network);  // there is no other
    if (over.connected() || !over.claim_board()) {
        tell(why, over.connected() ? "kick: the board is made before Network::connect()"
                                   : "kick: a network has one board");
        return nullptr;
    }
    auto made = inner::Board::create(over.endpoint(), over.job_key(), polled_bytes);
    if (!good(made, why)) return nullptr;
    return std::make_unique<BoardOver>(over, std::shared_ptr<inner::Board>(std::move(*made)));
}

}  // namespace hiroba::kick
