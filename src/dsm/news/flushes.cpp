// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/news/flushes.hpp"

namespace hiroba::dsm {

void Flushes::open_with(ReleaseNumber release) noexcept {
    ++seen_;
    // Before the news are read: another thread may be joining more of them.
    last_ = {seen_, release, news_.last_sequence()};
    const std::size_t bytes = news_.encode_for_anyone(object_.own_news());
    news_.epochs().keep_flushed(object_.own_news().first(bytes));
    object_.unlock_with(seen_, bytes);
}

}  // namespace hiroba::dsm
