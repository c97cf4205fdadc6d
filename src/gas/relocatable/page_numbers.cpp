// SPDX-License-Identifier: BSD-3-Clause
#include "gas/relocatable/page_numbers.hpp"

namespace hiroba::gas {

std::uint64_t PageNumbers::gap(std::uint64_t from, std::uint64_t end, std::uint64_t pages) const {
    for (auto next = runs_.lower_bound(from); true; ++next) {
        const std::uint64_t until = next == runs_.end() ? end : next->first;
        if (from + pages + 1 <= until) return from;  // and one that stays free
        if (next == runs_.end() || next->first >= end) return 0;
        from = next->first + next->second.pages + 1;
    }
}

std::uint64_t PageNumbers::take(const PageRun& wanted) {
    if (wanted.pages == 0 || wanted.pages >= end_ - first_) return 0;
    std::uint64_t at = gap(next_, end_, wanted.pages);
    if (at == 0) at = gap(first_, end_, wanted.pages);
    if (at == 0) return 0;
    PageRun run = wanted;
    run.first = at;
    runs_[at] = run;
    next_ = at + run.pages + 1;
    return at;
}

const PageRun* PageNumbers::find(std::uint64_t first) const {
    const auto found = runs_.find(first);
    return found == runs_.end() ? nullptr : &found->second;
}

const PageRun* PageNumbers::around(std::uint64_t page) const {
    auto next = runs_.upper_bound(page);
    if (next == runs_.begin()) return nullptr;
    --next;
    return page < next->second.first + next->second.pages ? &next->second : nullptr;
}

}  // namespace hiroba::gas
