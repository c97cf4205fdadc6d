// SPDX-License-Identifier: BSD-3-Clause
// Role: which pages of global memory the program has forbidden itself to read or write.
// Invariant: ranges are disjoint and not empty; what is in none may be read and written.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <map>
#include <vector>

#include "dsm/memory/address_map.hpp"

namespace hiroba::abi {

struct ProtectedRange {
    dsm::AddressRange range;
    int protection = 0;  ///< PROT_*, not both PROT_READ and PROT_WRITE
};

/// Thread: the caller's lock. Allocates private memory.
class ProtectionTable {
public:
    static constexpr int all = PROT_READ | PROT_WRITE;

    void set(dsm::AddressRange range, int protection) {
        cut(range);
        if ((protection & all) != all) ranges_[range.address] = {range.end(), protection};
    }
    /// What lies in `range`, clipped to it.
    std::vector<ProtectedRange> in(dsm::AddressRange range) const {
        std::vector<ProtectedRange> found;
        for (auto it = first(range.address); it != ranges_.end() && it->first < range.end(); ++it) {
            const std::uintptr_t begin = std::max(it->first, range.address);
            const std::uintptr_t end = std::min(it->second.end, range.end());
            found.push_back({{begin, end - begin}, it->second.protection});
        }
        return found;
    }
    bool forbids(std::uintptr_t address, bool write) const {
        const auto it = first(address);
        return it != ranges_.end() && it->first <= address &&
               (it->second.protection & (write ? PROT_WRITE : PROT_READ)) == 0;
    }
    std::size_t size() const { return ranges_.size(); }

private:
    struct Rest {
        std::uintptr_t end = 0;
        int protection = 0;
    };
    using Ranges = std::map<std::uintptr_t, Rest>;

    /// The first that ends above the address.
    Ranges::const_iterator first(std::uintptr_t address) const {
        auto it = ranges_.upper_bound(address);
        if (it != ranges_.begin() && std::prev(it)->second.end > address) --it;
        return it;
    }
    void cut(dsm::AddressRange range) {
        for (const ProtectedRange& part : in(range)) {
            const auto it = std::prev(ranges_.upper_bound(part.range.address));
            const std::uintptr_t begin = it->first;
            const Rest rest = it->second;
            ranges_.erase(it);
            if (begin < part.range.address) ranges_[begin] = {part.range.address, rest.protection};
            if (rest.end > part.range.end()) ranges_[part.range.end()] = rest;
        }
    }

    Ranges ranges_;  ///< by their first byte
};

}  // namespace hiroba::abi
