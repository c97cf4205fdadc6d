// SPDX-License-Identifier: BSD-3-Clause
// Role: teams of the communication layer's face: converts calls to net/teams.hpp's.
#include <algorithm>
#include <array>
#include <tuple>

#include "abi/net/network.hpp"
#include "base/fatal.hpp"
#include "hiroba/net_teams.hpp"

namespace hiroba::net {
namespace {

class TeamOver final : public Team {
public:
    TeamOver(NetworkOver& network, Teams& teams, std::shared_ptr<TeamPart> part)
        : network_(network), teams_(teams), part_(std::move(part)) {}
    ~TeamOver() override {
        if (const std::uint32_t left = part_->under_way(); left != 0)
            fatal(
                "node %u destroys a team of %u with %u collective%s still under way: "
                "Network::wait() for what was started first",
                network_.self().value, size(), left, left == 1 ? "" : "s");
        teams_.forget(*part_);
    }

    std::uint32_t self() const noexcept override { return part_->self(); }
    std::uint32_t size() const noexcept override {
        return static_cast<std::uint32_t>(part_->members().size());
    }
    NodeId node(std::uint32_t member) const noexcept override {
        if (member >= size())
            fatal("member %u of a team of %u (node %u asks)", member, size(),
                  network_.self().value);
        return part_->members()[member];
    }
    std::unique_ptr<Team> split(std::uint32_t color, std::uint32_t key) noexcept override;

protected:
    void start_work(const Work& work, const Callback& over) noexcept override {
        check(work);
        refuse_in_handler(network_.endpoint());
        if (over.under_way != nullptr) over.under_way->fetch_add(1, std::memory_order_relaxed);
        part_->start(call_of(work), Completion(over));
    }
    // A collective of a lost member never ends otherwise; with one, the job is about to end.
    void run_work(const Work& work) noexcept override {
        Pending pending;
        start_work(work, pending.callback());
        if (!network_.wait(pending))
            fatal("node %u is in a collective of a team of %u of which a member is lost",
                  network_.self().value, size());
    }

private:
    void check(const Work& work) const noexcept;
    static TeamCall call_of(const Work& work) noexcept {
        return {.kind = static_cast<TeamCall::Kind>(work.kind),
                .root = work.root,
                .from = work.from.data(),
                .to = work.to.data(),
                .bytes = work.bytes,
                .value_bytes = work.value_bytes,
                .each = work.each,
                .with = work.with};
    }

    NetworkOver& network_;
    Teams& teams_;
    std::shared_ptr<TeamPart> part_;
};

void TeamOver::check(const Work& work) const noexcept {
    const std::size_t all = work.bytes * size();
    const bool pieces = work.kind == Kind::all_to_all;
    const bool takes = pieces || work.kind == Kind::all_gather ||
                       (work.kind == Kind::gather && work.root == self());
    if ((takes && work.to.size() != all) || (pieces && work.from.size() != all))
        fatal(
            "a team of %u (node %u calls it) gathers or exchanges %lu bytes into %lu, in pieces of "
            "%lu",
            size(), network_.self().value, work.from.size(), work.to.size(), work.bytes);
}

std::unique_ptr<Team> TeamOver::split(std::uint32_t color, std::uint32_t key) noexcept {
    struct Wish {
        std::uint32_t color, key, number, member;
    };
    const Wish mine{color, key, teams_.next_number(), self()};
    std::vector<Wish> all(size());
    all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
    if (color == no_color) return nullptr;
    std::erase_if(all, [color](const Wish& each) { return each.color != color; });
    std::sort(all.begin(), all.end(), [](const Wish& a, const Wish& b) {
        return std::tie(a.key, a.member) < std::tie(b.key, b.member);
    });
    std::vector<NodeId> members;
    std::uint32_t here = 0;
    for (const Wish& each : all) {
        if (each.member == self()) here = static_cast<std::uint32_t>(members.size());
        members.push_back(node(each.member));
    }
    const std::uint64_t id = Teams::id_of(members[0], all[0].number);
    return std::make_unique<TeamOver>(network_, teams_, teams_.make(id, std::move(members), here));
}

}  // namespace

std::unique_ptr<Team> NetworkOver::team() noexcept {
    await_connect("makes a team");
    std::vector<NodeId> members;
    for (std::uint32_t rank = 0; rank < nodes_; ++rank) members.push_back(NodeId{rank});
    const std::uint64_t id = Teams::id_of({}, teams_made_.fetch_add(1));
    return std::make_unique<TeamOver>(*this, *teams_,
                                      teams_->make(id, std::move(members), self_.value));
}

}  // namespace hiroba::net
