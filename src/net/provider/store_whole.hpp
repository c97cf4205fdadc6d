// SPDX-License-Identifier: BSD-3-Clause
// Role: how bytes that came as a packet land where somebody polls; one copy for all that carry
// kicks.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "base/bytes.hpp"

namespace hiroba::net {

/// Stores 1, 2, 4 or 8 bytes at `to`, aligned to their number, in one store: who polls them sees
/// all or none, and with them whatever landed before. False for other numbers: nothing was done.
inline bool store_whole(std::byte* to, Bytes bytes) noexcept {
    const auto store = [&]<class Word>(Word word) {
        std::memcpy(&word, bytes.data(), sizeof word);
        // Release, pairs with kick::Board::load().
        std::atomic_ref<Word>(*reinterpret_cast<Word*>(to)).store(word, std::memory_order_release);
        return true;
    };
    switch (bytes.size()) {
        case 1: return store(std::uint8_t{});
        case 2: return store(std::uint16_t{});
        case 4: return store(std::uint32_t{});
        case 8: return store(std::uint64_t{});
        default: return false;
    }
}

}  // namespace hiroba::net
