// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/news/known_epochs.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace hiroba::dsm {

namespace {
/// Calls visit(node, epoch) for each that `news` end with.
template <class Visit>
void for_told(Bytes news, std::size_t nodes, Visit&& visit) noexcept {
    const Bytes told = news.last(nodes * sizeof(Epoch));
    for (std::uint32_t node = 0; node < nodes; ++node) {
        Epoch epoch;
        std::memcpy(&epoch, told.data() + node * sizeof epoch, sizeof epoch);
        visit(node, epoch);
    }
}
}  // namespace

KnownEpochs::KnownEpochs(std::size_t nodes, NodeId self)
    : self_(self), known_(nodes), learned_(nodes, first_epoch), flushed_(nodes, first_epoch) {
    for (auto& epoch : known_) epoch.store(first_epoch, std::memory_order_relaxed);
}

void KnownEpochs::raise(NodeId node, Epoch epoch) noexcept {
    std::atomic<Epoch>& known = known_[node.value];
    Epoch before = known.load(std::memory_order_relaxed);
    while (before < epoch &&
           !known.compare_exchange_weak(before, epoch, std::memory_order_relaxed)) {
    }
}

std::size_t KnownEpochs::encode(MutableBytes out) const noexcept {
    for (std::uint32_t node = 0; node < known_.size(); ++node) {
        // Acquire: pairs with end_epoch(). What this thread has released is merged.
        const Epoch epoch = NodeId{node} == self_ ? own_.load(std::memory_order_acquire)
                                                  : known_[node].load(std::memory_order_relaxed);
        std::memcpy(out.data() + node * sizeof epoch, &epoch, sizeof epoch);
    }
    return bytes();
}

void KnownEpochs::learn(Bytes news) noexcept {
    for_told(news, known_.size(), [&](std::uint32_t node, Epoch epoch) {
        if (is_known({NodeId{node}, epoch - 1})) return;
        const std::scoped_lock guard{learned_latch_};
        learned_[node] = std::max(learned_[node], epoch);
        has_learned_.store(true, std::memory_order_release);  // pairs with has_learned()
    });
}

void KnownEpochs::take_learned() noexcept {
    const std::scoped_lock guard{learned_latch_};
    has_learned_.store(false, std::memory_order_relaxed);
    for (std::uint32_t node = 0; node < known_.size(); ++node) raise(NodeId{node}, learned_[node]);
}

void KnownEpochs::remember_flushed(Bytes news) noexcept {
    for_told(news, flushed_.size(), [&](std::uint32_t node, Epoch epoch) {
        flushed_[node] = std::max(flushed_[node], epoch);
    });
}

void KnownEpochs::keep_flushed(MutableBytes news) noexcept {
    remember_flushed(news);
    if (!flushed_.empty()) std::memcpy(news.last(bytes()).data(), flushed_.data(), bytes());
}

void KnownEpochs::know_what_was_flushed() noexcept {
    for (std::uint32_t node = 0; node < known_.size(); ++node) raise(NodeId{node}, flushed_[node]);
}

}  // namespace hiroba::dsm
