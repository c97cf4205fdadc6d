// SPDX-License-Identifier: BSD-3-Clause
#include "tasks/steal.hpp"

namespace hiroba::tasks {

void RemoteSteal::arrived(void* steal, net::Outcome outcome) noexcept {
    auto& self = *static_cast<RemoteSteal*>(steal);
    if (outcome == net::Outcome::peer_lost)
        stop("node %u was lost; tasks that it had taken are gone", self.victim_.value);
    self.left_.fetch_sub(1, std::memory_order_release);  // pairs with has_answer()
}

void RemoteSteal::read(std::uint64_t offset, void* to, std::size_t bytes) {
    // Relaxed: the callback's decrement comes after the request, which comes after this.
    left_.fetch_add(1, std::memory_order_relaxed);
    const net::ReadParams params{.source = victim_,
                                 .from = {at_.handle, at_.offset + offset},
                                 .to = network_.anywhere(to),
                                 .bytes = bytes,
                                 .on_complete = callback()};
    if (network_.insist([&] { return network_.try_read_async(params); }) !=
        net::Submission::accepted)
        stop("a steal is refused: %s", network_.why_refused(params).c_str());
}

void RemoteSteal::begin(NodeId victim, net::RemoteAddress at, std::uint32_t capacity) {
    victim_ = victim;
    at_ = at;
    capacity_ = capacity;
    step_ = Step::ends;
    read(0, &ends_, sizeof ends_);
}

std::optional<Entry> RemoteSteal::step() {
    switch (step_) {
        case Step::idle: break;
        case Step::ends:
            // Relaxed: has_answer() has acquired what the requests wrote. So in the others.
            top_ = ends_.top.load(std::memory_order_relaxed);
            if (top_ >= ends_.bottom.load(std::memory_order_relaxed)) {
                step_ = Step::idle;
                break;
            }
            step_ = Step::entry;
            read(offsetof(Ends, bottom), &bottom_again_, sizeof bottom_again_);
            read(sizeof(Ends) + (top_ & (capacity_ - 1)) * sizeof(Entry), &entry_, sizeof entry_);
            break;
        case Step::entry: {
            if (top_ >= bottom_again_) {
                step_ = Step::idle;
                break;
            }
            step_ = Step::swap;
            left_.fetch_add(1, std::memory_order_relaxed);  // as in read()
            const net::AtomicParams swap{.target = victim_,
                                         .at = at_,
                                         .op = net::AtomicOp::compare_swap,
                                         .operand = top_ + 1,
                                         .expected = top_,
                                         .old = network_.anywhere(&top_found_),
                                         .on_complete = callback()};
            if (network_.insist([&] { return network_.try_atomic_async(swap); }) !=
                net::Submission::accepted)
                stop("a steal is refused: %s", network_.why_refused(swap).c_str());
            break;
        }
        case Step::swap:
            step_ = Step::idle;
            if (top_found_ == top_) return entry_;
            break;
    }
    return std::nullopt;
}

}  // namespace hiroba::tasks
