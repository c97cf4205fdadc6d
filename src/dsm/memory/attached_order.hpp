// SPDX-License-Identifier: BSD-3-Clause
// Role: keeps what an engine has attached in the order of addresses, beside that of attaching.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hiroba::dsm {

/// Inserts the index of the last of `attached` into `ascending`, the indices of all.
template <class Attached>
void insert_last(const std::vector<Attached>& attached, std::vector<std::uint16_t>& ascending) {
    const auto index = static_cast<std::uint16_t>(attached.size() - 1);
    const auto is_below = [&](std::uint16_t a, std::uint16_t b) {
        return attached[a].range.address < attached[b].range.address;
    };
    ascending.insert(std::upper_bound(ascending.begin(), ascending.end(), index, is_below), index);
}

}  // namespace hiroba::dsm
