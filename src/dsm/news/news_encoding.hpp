// SPDX-License-Identifier: BSD-3-Clause
// Role: how news are laid out where they travel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/bytes.hpp"
#include "base/fatal.hpp"
#include "base/ids.hpp"
#include "dsm/block/carried_lines.hpp"
#include "dsm/block/change_log.hpp"
#include "dsm/protocol/signature.hpp"
#include "dsm/protocol/stamp.hpp"

namespace hiroba::dsm {

/// Encoded news: this header, `clocks` of ClockNews, `count` notices, then, unless races are not
/// looked for, an Epoch for each node: what it did in earlier ones is known to whoever learns it;
/// then `carried` of CarriedLines.
struct NewsHeader {
    std::uint64_t min_wts;
    std::uint32_t count;
    std::uint16_t clocks;
    std::uint16_t carried;
    /// How many meetings of all nodes the sender had passed. Who has not passed the last of them
    /// yet takes `left_out_wts`, which covers what was told there and is not told here, for
    /// min_wts.
    std::uint64_t meetings;
    std::uint64_t left_out_wts;
};

/// Up to which releases of `node` the sender's news tell, with all news to the same receiver that
/// came before; and up to which its bytes make them necessary.
struct ClockNews {
    std::uint32_t node;
    std::uint32_t
        program_flushes;  ///< not 0: the program of some node that the sender knows of does
    ReleaseNumber told;
    ReleaseNumber needed;
    Epoch epoch;  ///< what those releases merged is of earlier ones
};

/// @param known  of how many nodes news say what is known of them
constexpr std::size_t bytes_of_news(std::size_t clocks, std::size_t notices,
                                    std::size_t known) noexcept {
    return sizeof(NewsHeader) + clocks * sizeof(ClockNews) + notices * sizeof(Notice) +
           known * sizeof(Epoch);
}

/// Encoded news, looked at where they lie.
class NewsView {
public:
    /// @param known  as bytes_of_news() has it, for all nodes of the job alike
    NewsView(NodeId from, Bytes news, std::size_t known) noexcept : news_(news) {
        HIROBA_INVARIANT(news.size() >= sizeof header_, "news of %lu bytes from node %u",
                         news.size(), from.value);
        std::memcpy(&header_, news.data(), sizeof header_);
        told_bytes_ = bytes_of_news(header_.clocks, header_.count, known);
        HIROBA_INVARIANT(
            header_.carried == 0 ? news.size() == told_bytes_ : news.size() > told_bytes_,
            "news of %lu bytes with %u notices and %u clocks from node %u", news.size(),
            header_.count, unsigned{header_.clocks}, from.value);
    }
    const NewsHeader& header() const noexcept { return header_; }
    Bytes notices() const noexcept {
        return news_.subspan(sizeof header_ + header_.clocks * sizeof(ClockNews),
                             header_.count * sizeof(Notice));
    }
    /// All but what is carried.
    Bytes told() const noexcept { return news_.first(told_bytes_); }
    template <class Visit>
    void each_notice(Visit&& visit) const noexcept {
        for (std::uint32_t i = 0; i < header_.count; ++i) {
            Notice notice;
            std::memcpy(&notice, notices().data() + i * sizeof notice, sizeof notice);
            visit(notice);
        }
    }
    template <class Visit>
    void each_carried(Visit&& visit) const noexcept {
        Bytes rest = news_.subspan(told_bytes_);
        for (std::uint32_t i = 0; i < header_.carried; ++i) {
            CarriedLines carried;
            std::memcpy(static_cast<void*>(&carried), rest.data(), offsetof(CarriedLines, bytes));
            HIROBA_INVARIANT(carried.length <= CarriedLines::bytes_max &&
                                 carried.travelling_bytes() <= rest.size(),
                             "%lu carried bytes in %lu", carried.length, rest.size());
            std::memcpy(carried.bytes, rest.data() + offsetof(CarriedLines, bytes), carried.length);
            visit(carried);
            rest = rest.subspan(carried.travelling_bytes());
        }
    }
    template <class Visit>
    void each_clock(Visit&& visit) const noexcept {
        for (std::uint32_t i = 0; i < header_.clocks; ++i) {
            ClockNews told;
            std::memcpy(&told, news_.data() + sizeof header_ + i * sizeof told, sizeof told);
            visit(told);
        }
    }
    /// Whether a program flushes, as far as the sender knows.
    bool tells_of_flushes() const noexcept {
        bool flushes = false;
        each_clock([&](const ClockNews& told) { flushes |= told.program_flushes != 0; });
        return flushes;
    }

private:
    Bytes news_;
    NewsHeader header_;
    std::size_t told_bytes_;
};

}  // namespace hiroba::dsm
