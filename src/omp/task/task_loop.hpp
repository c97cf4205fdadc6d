// SPDX-License-Identifier: BSD-3-Clause
// Role: how a taskloop's iterations are cut into tasks (OpenMP 5.2, section 12.6).
// Invariant: pure; the tasks' iterations together are the loop's, in order, each once.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hiroba::omp {

struct TaskLoop {
    std::uint64_t start = 0, step = 1;  ///< two's complement
    std::uint64_t count = 0;            ///< iterations
    std::uint64_t wanted = 0;           ///< tasks, or iterations of each; 0: as many as threads
    bool is_grainsize = false, strict = false;

    constexpr std::uint64_t tasks(std::uint32_t threads) const noexcept {
        if (count == 0) return 0;
        const std::uint64_t number = wanted != 0 ? wanted : is_grainsize ? 1 : threads;
        if (!is_grainsize) return std::min(number, count);
        const std::uint64_t whole = count / number;
        if (strict) return whole + (count % number != 0);
        return std::max<std::uint64_t>(whole, 1);
    }
    /// The iterations of task number `task` of `tasks`.
    constexpr std::uint64_t iterations_of(std::uint64_t task, std::uint64_t tasks) const noexcept {
        if (is_grainsize && strict)
            return std::min(std::max<std::uint64_t>(wanted, 1),
                            count - task * std::max<std::uint64_t>(wanted, 1));
        return count / tasks + (task < count % tasks);
    }
};

}  // namespace hiroba::omp
