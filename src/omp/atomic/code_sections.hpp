// SPDX-License-Identifier: BSD-3-Clause
// Role: where the code of an ELF object lies in memory, by the headers of its file.
// Invariant: only ranges that are loaded and executable are reported; nothing is read but headers.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.hpp"
#include "dsm/memory/address_map.hpp"

namespace hiroba::omp {

struct RewriteTarget;

/// Executable bytes that are decoded from their start.
struct CodeSection {
    dsm::AddressRange range;
    int protection = 0;       ///< PROT_* of the segment it lies in
    std::size_t segment = 0;  ///< which one
};

struct CodeLayout {
    std::vector<CodeSection> sections;
    dsm::AddressRange object;  ///< hull of all load segments
};

/// The executable sections (by section headers; without those the executable segments) of the
/// target that lie in target.executable. Errors name the file and what is wrong with it.
Result<CodeLayout> find_code(const RewriteTarget& target);

}  // namespace hiroba::omp
