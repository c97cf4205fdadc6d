// SPDX-License-Identifier: BSD-3-Clause
// Role: `hiroba info --memory`: what one rank of this job keeps in memory for the layers below
// OpenMP. Source: Saga et al., ACP basic layer, tables 5 and 6.
#pragma once

namespace hiroba::tools::perf_parts {

/// In a rank of a job of `hiroba run --spmd`: takes the steps of a program of ACP with all ranks,
/// and rank 0 prints what became resident with each. Collective.
/// @return the exit status
int report_memory(bool json);

}  // namespace hiroba::tools::perf_parts
