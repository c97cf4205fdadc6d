// SPDX-License-Identifier: BSD-3-Clause
// Role: lets the nodes of one simulated program take the mappings that those of the programs before
// have given back: on some machines mapping and unmapping is half of what a program takes.
// Invariant: a mapping holds zeros when it is taken, and lies where the kernel would have put it if
// an address was suggested. One thread.
// A use of memory that its owner has unmapped is not found while mappings are kept.
#pragma once

namespace hiroba::sim_test {

/// Begins, for this process alone: one that forks does so in its children. Does nothing before
/// Linux 6.7, where nothing says which pages were touched.
void keep_mappings() noexcept;

}  // namespace hiroba::sim_test
