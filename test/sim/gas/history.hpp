// SPDX-License-Identifier: BSD-3-Clause
// Role: decides whether what many nodes saw of one word can have happened in some order that agrees
// with real time: linearizability.
// Source: Herlihy & Wing, TOPLAS 12(3), 1990; the search is Wing & Gong's, JPDC 17, 1993, with
// Lowe's memory of configurations seen (CCPE 29(4), 2017).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hiroba::sim_test {

/// One access to a word, from when it was called to when it returned.
struct Access {
    enum class Kind : std::uint8_t { get, put, add, swap, compare_swap };
    Kind kind{};
    std::uint32_t node = 0;
    std::uint64_t begun = 0, ended = 0;  ///< on any clock that all accesses share
    std::uint64_t operand = 0;           ///< what is put, added, swapped in
    std::uint64_t expected = 0;          ///< of compare_swap
    std::uint64_t result = 0;            ///< what a get or an atomic found
    bool maybe = false;                  ///< whether it happened, and what it found, is not known
};

/// Whether one order explains all of `accesses` on a word that was `first` before.
/// Accesses may be in any order. Takes long only where many are under way at once.
bool is_linearizable(const std::vector<Access>& accesses, std::uint64_t first);

/// One line for each, for a failure's report.
std::string lines_of(const std::vector<Access>& accesses);

}  // namespace hiroba::sim_test
