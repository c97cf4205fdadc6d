// SPDX-License-Identifier: BSD-3-Clause
// Role: protections that the program gives its global memory (guard pages, write barriers, reserved
// address space), carried out on every node.
// Invariant: node 0's travel with the process's state, before the next region. In a region a node
// forbids for itself alone; what it allows is written down in global memory, where a node that
// meets a forbidden page looks before the program hears of it. Where the fault engine protects
// pages itself (mprotect), nothing is carried out.
#pragma once

#include "base/bytes.hpp"
#include "dsm/memory/address_map.hpp"

namespace hiroba::abi {

/// Whole pages. @return 0 or an error number
int set_protection(dsm::AddressRange range, int protection) noexcept;

/// The memory goes back: everything is allowed again.
void allow_all(dsm::AddressRange range) noexcept;

/// What the table forbids in the range is so again: its blocks were made accessible as a whole.
void forbid_again(dsm::AddressRange range) noexcept;

/// Allows everything while one exists, to change bytes for the program.
class AllowedMeanwhile {
public:
    explicit AllowedMeanwhile(dsm::AddressRange range) noexcept;
    ~AllowedMeanwhile();
    AllowedMeanwhile(const AllowedMeanwhile&) = delete;
    AllowedMeanwhile& operator=(const AllowedMeanwhile&) = delete;

private:
    struct Before;
    Before* before_ = nullptr;
};

struct ProtectionList;
/// Node 0: for the others, in global memory; null: nothing was ever forbidden.
const ProtectionList* publish_protections() noexcept;
/// Other nodes.
void adopt_protections(const ProtectionList* list) noexcept;

}  // namespace hiroba::abi
