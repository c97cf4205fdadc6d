// SPDX-License-Identifier: BSD-3-Clause
// Role: jumps for instructions shorter than a jump. Only the displacement's low bytes lie in the
// instruction; its high bytes are those of the instruction behind, which stays as it is and may be
// entered from anywhere. They fix the jump's target but for the low bytes: there a *landing pad* is
// mapped, which jumps on to the trampoline.
// Invariant: no byte outside the site changes. A pad is never writable and executable at once.
// Source: Chamith, Svensson, Dalessandro, Newton: Instruction Punning, PLDI 2017.
#pragma once

#include <bitset>
#include <cstdint>
#include <map>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "dsm/memory/address_map.hpp"
#include "omp/atomic/code_scan.hpp"

namespace hiroba::omp {

/// The pads of one object. Unmapped with it unless sealed.
class LandingPads {
public:
    /// Areas of all objects together: each is a mapping (vm.max_map_count is 65,530).
    static constexpr std::size_t areas_max = 16384;

    /// @param kept_free  where no pad may lie
    explicit LandingPads(dsm::AddressRange kept_free = {}) : kept_free_(kept_free) {}
    LandingPads(const LandingPads&) = delete;
    LandingPads& operator=(const LandingPads&) = delete;
    ~LandingPads();

    /// Makes a pad that leads to `trampoline` and returns its address: a jump from the site to it
    /// ends in the bytes that lie behind the site now.
    ///
    /// @param site  2 to 4 bytes long, CodeSite::may_borrow
    /// @return 0 when the places that those bytes leave are taken or no addresses: use a trap
    std::uintptr_t add(const CodeSite& site, std::uintptr_t trampoline);

    /// Makes the pads executable; they stay for as long as the process.
    Result<void> seal();

    /// Where a jump from `site` may end: its first byte, and how many from there on.
    static dsm::AddressRange window(const CodeSite& site);

private:
    /// jmp [rip + 0] and the address: 14 bytes, one slot.
    static constexpr std::size_t slot_bytes = 16;
    using Slots = std::bitset<page_bytes / slot_bytes>;  ///< taken
    using Pages = std::map<std::uintptr_t, Slots>;
    static std::uintptr_t take_slot(Pages::value_type& page, dsm::AddressRange window);
    std::uintptr_t take_slot(dsm::AddressRange window);
    bool map_area(dsm::AddressRange window);

    dsm::AddressRange kept_free_;
    std::vector<dsm::AddressRange> areas_;
    Pages pages_;  ///< that have a free slot
    bool sealed_ = false;
};

}  // namespace hiroba::omp
