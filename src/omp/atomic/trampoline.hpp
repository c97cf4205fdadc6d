// SPDX-License-Identifier: BSD-3-Clause
// Role: writes the trampolines of one object into memory near its code.
// Invariant: a zone is writable while it is filled, executable afterwards, never both; it is never
// unmapped once seal() has succeeded, because code jumps into it.
//
// A zone starts with constants that its code reads: the two entries of the slow path and the
// ranges of global memory. A trampoline whose operand lies in none of them runs its instruction
// without a call. docs/layers/atomic.md draws the stack of one.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "omp/atomic/code_scan.hpp"
#include "omp/atomic/slow_path.hpp"

namespace hiroba::omp {

/// At most this many compares before an instruction on private memory.
inline constexpr std::size_t hulls_max = 4;

/// Covers `global` by at most hulls_max ranges: the first one alone, the others joined across
/// the smallest gaps.
std::vector<dsm::AddressRange> hulls_of(std::span<const dsm::AddressRange> global);

class TrampolineZone {
public:
    /// Maps room for `sites` trampolines so that every byte of it reaches every byte of `object`
    /// (its code and what that addresses) by a 32-bit displacement; below if possible, where no
    /// heap grows into it.
    /// @param vectors  what of them the object's code may use
    /// @param passes   OwnAtomics::passes
    static Result<TrampolineZone> create(dsm::AddressRange object, std::size_t sites,
                                         std::span<const dsm::AddressRange> hulls,
                                         VectorUse vectors,
                                         const std::atomic<std::uint64_t>* passes = nullptr);
    TrampolineZone(TrampolineZone&& other) noexcept;
    TrampolineZone& operator=(TrampolineZone&&) = delete;
    ~TrampolineZone();

    /// Writes the trampoline of one site and returns its address; 0 when the displacement of an
    /// operand does not reach from here. `record` is handed to the slow path.
    std::uintptr_t add(const CodeSite& site, SiteRecord& record);

    /// Makes the zone executable, for good.
    Result<void> seal();

private:
    TrampolineZone() = default;
    std::byte* base_ = nullptr;
    std::size_t bytes_ = 0;
    std::byte* next_ = nullptr;
    std::size_t hull_count_ = 0;
    bool sealed_ = false;
};

}  // namespace hiroba::omp
