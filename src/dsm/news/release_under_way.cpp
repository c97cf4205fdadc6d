// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/news/release_under_way.hpp"

#include "base/fatal.hpp"

namespace hiroba::dsm {

void ReleaseUnderWay::add_written(BlockId block) noexcept {
    if (work_count_ > 0 && work_[work_count_ - 1] == block) return;
    HIROBA_INVARIANT(work_count_ < work_.size(), "%lu written blocks", work_count_);
    work_[work_count_++] = block;
}

bool ReleaseUnderWay::note_made(const Notice& next) noexcept {
    ++merged_count_;
    if (made_count_ > 0 && made_[made_count_ - 1].goes_on_with(next)) {
        ++made_[made_count_ - 1].count;
        return false;
    }
    HIROBA_INVARIANT(made_count_ < made_.size(), "%lu notices made", made_count_);
    made_[made_count_++] = next;
    return true;
}

}  // namespace hiroba::dsm
