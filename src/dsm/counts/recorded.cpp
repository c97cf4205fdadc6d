// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/counts/recorded.hpp"

#include <emmintrin.h>

#include <algorithm>
#include <bit>
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

/// Which of 64 bytes differ, a bit each.
std::uint64_t changed_bytes(const std::byte* live, const std::byte* known) noexcept {
    std::uint64_t changed = 0;
    for (unsigned at = 0; at < 64; at += 16) {
        const __m128i ours = _mm_loadu_si128(reinterpret_cast<const __m128i*>(live + at));
        const __m128i theirs = _mm_loadu_si128(reinterpret_cast<const __m128i*>(known + at));
        const auto same =
            static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(ours, theirs)));
        changed |= std::uint64_t{same ^ 0xffffu} << at;
    }
    return changed;
}

/// Each release compares all that it publishes: byte by byte it would take longer than the release.
void record_changes(std::uintptr_t address, const std::byte* live, const std::byte* known,
                    std::size_t bytes, RecordKind kind) noexcept {
    std::uint64_t mask = 0, before = 0;  // before: whether the last byte was changed
    ChangeShape shape;
    for (std::size_t at = 0; at < bytes; at += 64) {
        const std::uint64_t changed = changed_bytes(live + at, known + at);
        const auto in_block = static_cast<std::uint32_t>(at);
        if (changed != 0) {
            const auto count = [](std::uint64_t bits) {
                return static_cast<std::uint32_t>(std::popcount(bits));
            };
            if (mask == 0)
                shape.first = in_block + static_cast<std::uint32_t>(std::countr_zero(changed));
            shape.last = in_block + 63 - static_cast<std::uint32_t>(std::countl_zero(changed));
            shape.runs += count(changed & ~(changed << 1 | before));
            shape.bytes += changed == ~std::uint64_t{0} ? 64 : count(changed);
            mask |= std::uint64_t{1} << (at / (bytes / parts));
        }
        before = changed >> 63;
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
