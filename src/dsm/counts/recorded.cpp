// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/counts/recorded.hpp"

#include <algorithm>
#include <iterator>

namespace hiroba::dsm {

void RecordedWork::begin(std::uintptr_t address, bool write) noexcept {
    buffer_ = record_buffer();
    if (buffer_ == nullptr) return;
    std::copy(std::begin(buffer_->tally), std::end(buffer_->tally), before_);
    span_.first = address | std::uint64_t{write} << 56;
    span_.second = buffer_->fault_code;
}

void RecordedWork::end() noexcept {
    const auto gained = [&](Tally which) {
        const auto at = static_cast<unsigned>(which);
        return buffer_->tally[at] - before_[at];
    };
    const auto flag = [&](Tally which, FaultWay way) {
        return gained(which) > 0 ? static_cast<std::uint64_t>(way) << 56 : 0;
    };
    if (kind_ == RecordKind::fault) {
        span_.first |=
            flag(Tally::by_notice, FaultWay::by_notice) | flag(Tally::by_home, FaultWay::by_home) |
            flag(Tally::renewed, FaultWay::renewed) | flag(Tally::whole, FaultWay::taken_whole);
        span_.second |= std::min<std::uint64_t>(gained(Tally::ahead), 0xffff) << 48;
    } else {
        const bool release = kind_ == RecordKind::release;
        span_.first = gained(release ? Tally::merged : Tally::stale);
        span_.second = gained(Tally::bytes);
    }
}

namespace {

constexpr std::size_t parts = 64;  // of a block, a bit each

void record_changes(std::uintptr_t address, const std::byte* live, const std::byte* known,
                    std::size_t bytes, RecordKind kind) noexcept {
    std::uint64_t mask = 0;
    ChangeShape shape;
    bool in_run = false;
    const std::size_t part_bytes = bytes / parts;
    for (std::size_t at = 0; at < bytes; ++at) {
        const bool changed = live[at] != known[at];
        if (changed) {
            if (mask == 0) shape.first = static_cast<std::uint32_t>(at);
            shape.last = static_cast<std::uint32_t>(at);
            shape.runs += !in_run;
            ++shape.bytes;
            mask |= std::uint64_t{1} << (at / part_bytes);
        }
        in_run = changed;
    }
    record(kind, address, mask, shape.packed());
}

}  // namespace

void record_merge(std::uintptr_t address, const std::byte* live, const std::byte* known,
                  std::size_t bytes, RecordKind kind) noexcept {
    if (is_recording()) [[unlikely]]
        record_changes(address, live, known, bytes, kind);
}

}  // namespace hiroba::dsm
