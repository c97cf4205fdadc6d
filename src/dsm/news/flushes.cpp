// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/news/flushes.hpp"

namespace hiroba::dsm {

void Flushes::open_with_news() noexcept {
    ++seen_;
    news_.ask_soon();
    const std::size_t bytes = news_.encode_for_anyone(object_.own_news());
    news_.epochs().keep_flushed(object_.own_news().first(bytes));
    object_.unlock_with(seen_, bytes);
}

}  // namespace hiroba::dsm
