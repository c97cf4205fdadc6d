// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/news/debts.hpp"

namespace hiroba::dsm {

void Debts::show() noexcept {
    const std::scoped_lock guard{board_latch_};
    // Before the news are read: what they tell of is at least as new.
    const ReleaseNumber release = releases_.completed();
    if (board_.written() >= release) return;
    board_.write(release, news_.encode_for_anyone(board_.own_news()));
}

void Debts::show_if_wanted(bool made) noexcept {
    const bool unasked = made && unasked_.load(std::memory_order_relaxed) > 0;
    if (unasked) unasked_.fetch_sub(1, std::memory_order_relaxed);
    if (unasked || has_to_pay()) show();
}

}  // namespace hiroba::dsm
