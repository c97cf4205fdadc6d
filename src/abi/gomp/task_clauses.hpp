// SPDX-License-Identifier: BSD-3-Clause
// Role: what gcc passes to GOMP_task and its kin, converted: flags, depend clauses, loop bounds.
// Invariant: nothing here is kept beyond the call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "abi/gomp/runtime.hpp"
#include "base/fatal.hpp"
#include "omp/task/reductions.hpp"

namespace hiroba::abi {

namespace task_flag {
inline constexpr unsigned untied = 1u << 0, final = 1u << 1, depend = 1u << 3, priority = 1u << 4,
                          up = 1u << 8, grainsize = 1u << 9, if_clause = 1u << 10,
                          nogroup = 1u << 11, reduction = 1u << 12, detach = 1u << 13,
                          strict = 1u << 14;
}

inline std::int32_t task_priority(unsigned flags, int wanted) noexcept {
    if ((flags & task_flag::priority) == 0) return 0;
    return std::clamp(wanted, 0, runtime().environment().task_priority_max);
}

/// gcc 13 and later pass omp_all_memory, which stands in out and inout clauses alone, as address 0.
inline omp::Dependence dependence_of(std::uintptr_t address, omp::DependenceKind kind) noexcept {
    using enum omp::DependenceKind;
    return {address, address == 0 && (kind == out || kind == inout) ? all_memory : kind};
}

/// A depend object: an address and a kind.
inline omp::Dependence read_depend_object(const void* object) {
    const auto* const words = static_cast<const std::uintptr_t*>(object);
    if (words[1] < 1 || words[1] > 5)
        die(1, "a depend object at %p has kind %lu, which is none", object,
            static_cast<unsigned long>(words[1]));
    return dependence_of(words[0], static_cast<omp::DependenceKind>(words[1]));
}

/// Words: total (not 0), how many are out or inout; then the addresses, those first. Or: 0, total,
/// out or inout, mutexinoutset, in; then these addresses, then depend objects, each an address and
/// a kind.
inline std::vector<omp::Dependence> read_depend_clause(void** depend) {
    const auto word = [depend](std::size_t i) {
        return reinterpret_cast<std::uintptr_t>(depend[i]);
    };
    using omp::DependenceKind;
    const bool is_short = word(0) != 0;
    const std::size_t total = is_short ? word(0) : word(1);
    const std::size_t out = is_short ? word(1) : word(2);
    const std::size_t exclusive = is_short ? out : out + word(3);
    const std::size_t plain = is_short ? total : exclusive + word(4);
    const std::size_t first = is_short ? 2 : 5;
    std::vector<omp::Dependence> read(total);
    for (std::size_t i = 0; i < total; ++i) {
        if (i < plain) {
            const auto kind = i < out         ? DependenceKind::inout
                              : i < exclusive ? DependenceKind::mutexinoutset
                                              : DependenceKind::in;
            read[i] = dependence_of(word(first + i), kind);
            continue;
        }
        read[i] = read_depend_object(depend[first + i]);
    }
    return read;
}

inline std::uint64_t iterations(long start, long end, long step) noexcept {
    if (step > 0 ? start >= end : start <= end) return 0;
    const std::uint64_t distance =
        step > 0 ? static_cast<std::uint64_t>(end) - static_cast<std::uint64_t>(start)
                 : static_cast<std::uint64_t>(start) - static_cast<std::uint64_t>(end);
    const std::uint64_t stride =
        step > 0 ? static_cast<std::uint64_t>(step) : 0 - static_cast<std::uint64_t>(step);
    return (distance - 1) / stride + 1;
}

inline std::uint64_t iterations(bool up, std::uint64_t start, std::uint64_t end,
                                std::uint64_t step) noexcept {
    if (up ? start >= end : start <= end) return 0;
    return up ? (end - start - 1) / step + 1 : (start - end - 1) / (0 - step) + 1;
}

}  // namespace hiroba::abi
