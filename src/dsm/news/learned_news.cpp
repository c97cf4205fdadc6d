// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/news/learned_news.hpp"

#include <algorithm>

namespace hiroba::dsm {

void LearnedNews::learn(NodeId from, const NewsView& news, Timestamp min_wts) noexcept {
    const std::scoped_lock guard{latch_};
    const Bytes notices = news.notices();
    const std::size_t came = news.header().count;
    HIROBA_INVARIANT(count_ + came <= notices_.size(), "%lu notices pending", count_);
    news.each_clock([&](const ClockNews& told) {
        Clock& clock = clocks_[told.node];
        clock.told = std::max(clock.told, told.told);
        clock.needed = std::max(clock.needed, told.needed);
        clock.epoch = std::max(clock.epoch, told.epoch);
    });
    std::memcpy(notices_.data() + count_, notices.data(), notices.size());
    count_ += came;
    min_wts_ = std::max(min_wts_, min_wts);
    aside_ |= from == told_by_nobody;
    any_.store(true, std::memory_order_release);  // pairs with any()
}

bool LearnedNews::tells_of(Stamp stamp) noexcept {
    const std::scoped_lock guard{latch_};
    return clocks_[stamp.writer().value].told >= stamp.release();
}

}  // namespace hiroba::dsm
