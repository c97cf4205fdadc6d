// SPDX-License-Identifier: BSD-3-Clause
// Role: several blocks' locks, asked for in one exchange with each node
// (docs/protocol.md#together). Invariant: as one chase's, of each: at one node first the link, then
// the lease is closed, then the token is read, then the block is marked, then its copy is read. The
// token counts only if the link was found as expected.
#include <algorithm>
#include <array>
#include <new>

#include "dsm/block/block_lock.hpp"

namespace hiroba::dsm {

namespace {

using Access = gas::Segment::Access;

/// The accesses of one exchange, all to one node.
class AccessList {
public:
    AccessList() noexcept = default;
    AccessList(const AccessList&) = delete;
    AccessList& operator=(const AccessList&) = delete;

    void add(const Access& access) noexcept {
        HIROBA_INVARIANT(count_ < accesses_max, "%lu accesses in a list", count_);
        new (room_ + count_++ * sizeof(Access)) Access(access);
    }
    /// As add(); sets the bits along with those of the one before where both are in one word.
    void add_bits(const Access& access, std::size_t first) noexcept {
        if (count_ > first && (*this)[count_ - 1].offset == access.offset) {
            (*this)[count_ - 1].value |= access.value;
        } else {
            add(access);
        }
    }
    Access& operator[](std::size_t at) noexcept { return all()[at]; }
    std::span<Access> all() noexcept {
        return {std::launder(reinterpret_cast<Access*>(room_)), count_};
    }
    std::size_t size() const noexcept { return count_; }

private:
    static constexpr std::size_t accesses_max =
        BlockLock::together_max * (3 + MovedBlocks::marks + PublicCopies::Reading::accesses);
    static_assert(accesses_max <= net::Endpoint::list_max);
    alignas(Access) std::byte room_[accesses_max * sizeof(Access)];
    std::size_t count_ = 0;
};

}  // namespace

// A link that is no longer right, or a word that nobody has used, costs one round more.
void BlockLock::try_together(std::span<Chased> chased) noexcept {
    constexpr unsigned rounds_max = 3;
    HIROBA_INVARIANT(chased.size() <= together_max, "%lu locks at once", chased.size());
    for (unsigned round = 0; round < rounds_max; ++round)
        if (!ask_together(chased)) return;
}

/// Whether there was anything to ask for.
bool BlockLock::ask_together(std::span<Chased> chased) noexcept {
    bool open[together_max] = {};
    bool any = false;
    for (std::size_t i = 0; i < chased.size(); ++i) {
        // Where it is held the lock is queued for by finish(), one block after the other.
        open[i] = !chased[i].token && chased[i].takes && chased[i].hops < hops_before_message_;
        any |= open[i];
    }
    for (std::size_t i = 0; i < chased.size(); ++i)
        if (open[i]) ask_at(chased[i].at, chased, open);
    return any;
}

/// Those that ask at that node, which are not open any more.
void BlockLock::ask_at(NodeId at, std::span<Chased> chased, bool (&open)[together_max]) noexcept {
    HIROBA_INVARIANT(at != self_, "%lu chases: one came back (invariant 1)", chased.size());
    std::array<Chased*, together_max> here;
    std::size_t count = 0;
    for (std::size_t i = 0; i < chased.size(); ++i) {
        if (!open[i] || chased[i].at != at) continue;
        open[i] = false;
        here[count++] = &chased[i];
    }
    const std::span asked{here.data(), count};
    AccessList list;
    for (Chased* const one : asked)
        list.add(Access::compare_swap(records_, word(at, one->block, link_at).offset,
                                      one->expected.raw(), LinkWord::link(self_).raw()));
    for (Chased* const one : asked)
        list.add(Access::fetch_or(records_, word(at, one->block, lease_at).offset,
                                  LeaseWord::closing_bit));
    for (Chased* const one : asked)
        list.add(Access::get(records_, word(at, one->block, token_at).offset,
                             std::as_writable_bytes(std::span{one->words})));
    for (std::size_t level = 0; level < MovedBlocks::marks; ++level) {
        const std::size_t first = list.size();
        for (Chased* const one : asked) list.add_bits(moved_.accesses(one->block)[level], first);
    }
    for (Chased* const one : asked) {
        if (one->along == nullptr) continue;
        for (const Access& access : one->along->list()) list.add(access);
    }
    const gas::Segment::List made{at, list.all()};
    gas::Segment::together({&made, 1});
    for (std::size_t i = 0; i < count; ++i) {
        Chased& one = *asked[i];
        if (goes_on(one, LinkWord::from_raw(list[i].found))) continue;
        if (one.along != nullptr) one.along->made_at(at);  // read under the lock
        one.token = take_over(one.block, one.words);
    }
}

}  // namespace hiroba::dsm
