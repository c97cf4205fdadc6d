// SPDX-License-Identifier: BSD-3-Clause
// Role: which bytes of an object's code its direct branches lead to, a bit for each byte: an object
// has millions of branches, and is asked about the few bytes of its sites.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.hpp"
#include "dsm/memory/address_map.hpp"

namespace hiroba::omp {

class BranchTargets {
public:
    /// @param code  hull of all that is asked about
    explicit BranchTargets(dsm::AddressRange code) : code_(code), words_(code.bytes / 64 + 1) {}

    /// A target outside of the code is left out.
    void add(std::uintptr_t target) noexcept {
        if (!code_.contains(target)) return;
        const std::uintptr_t at = target - code_.address;
        words_[at / 64] |= std::uint64_t{1} << at % 64;
    }

    /// Whether a branch leads to a byte from `begin` to before `end`.
    bool any(std::uintptr_t begin, std::uintptr_t end) const noexcept {
        for (std::uintptr_t each = begin; each < end; ++each) {
            const std::uintptr_t at = each - code_.address;
            if (code_.contains(each) && (words_[at / 64] >> at % 64 & 1) != 0) return true;
        }
        return false;
    }

private:
    dsm::AddressRange code_;
    std::vector<std::uint64_t> words_;
};

}  // namespace hiroba::omp
