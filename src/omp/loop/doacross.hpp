// SPDX-License-Identifier: BSD-3-Clause
// Role: one thread's part in a doacross loop: iterations that wait for others (OpenMP 5.2, section
// 15.9.7).
// Invariant: iterations of the outermost loop are dealt out statically, in ascending order on each
// thread, so one word a thread says how far it has come; a word is zero before the loop and after
// it. Iterations are numbered row by row. `dynamic` and `guided` are dealt out like `static` with
// their chunk: no program can tell, and the numbers of a wave front suit a round robin.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "omp/loop/iteration_space.hpp"
#include "omp/loop/word_store.hpp"
#include "omp/loop/workshare.hpp"

namespace hiroba::omp {

class Doacross {
public:
    static constexpr std::size_t dimensions_max = 64;
    static constexpr std::size_t threads_max = 4096;
    static constexpr std::size_t words = Workshare::slots * threads_max;

    /// @param counts  iterations of each loop of the nest, outermost first; none of them 0
    /// @return false: there are too many to number
    bool begin(std::span<const std::uint64_t> counts, std::uint64_t chunk, std::uint32_t threads,
               std::uint32_t thread, WordStore& constructs, WordStore& progress,
               std::uint64_t sequence, const Cancellation* cancellation = nullptr) noexcept;
    bool used() const noexcept { return dimensions_ != 0; }
    std::size_t dimensions() const noexcept { return dimensions_; }

    /// Says that the calling thread has done iteration `at`.
    void post(const std::uint64_t* at) noexcept;
    /// Waits until iteration `at` is done.
    void wait(const std::uint64_t* at) noexcept;
    /// Called once by each thread, behind its last iteration.
    void finish() noexcept;
    /// Ends the loop of a region that was cancelled in the middle.
    void forget() noexcept { dimensions_ = 0; }

    /// Number of an iteration. Pure.
    static std::uint64_t number_of(std::span<const std::uint64_t> counts, const std::uint64_t* at) {
        std::uint64_t number = 0;
        for (std::size_t i = 0; i < counts.size(); ++i) number = number * counts[i] + at[i];
        return number;
    }
    /// Which thread has outermost iteration `index`. Pure.
    static std::uint32_t owner_of(std::uint64_t index, std::uint64_t count, std::uint64_t chunk,
                                  std::uint32_t threads) {
        if (chunk != 0) return static_cast<std::uint32_t>(index / chunk % threads);
        const std::uint64_t share = count / threads, rest = count % threads;
        const std::uint64_t boundary = rest * (share + 1);
        return static_cast<std::uint32_t>(index < boundary ? index / (share + 1)
                                                           : rest + (index - boundary) / share);
    }

private:
    std::span<const std::uint64_t> counts() const noexcept { return {counts_.data(), dimensions_}; }
    std::size_t word_of(std::uint32_t thread) const noexcept { return first_word_ + thread; }

    std::array<std::uint64_t, dimensions_max> counts_{};
    std::size_t dimensions_ = 0, first_word_ = 0;
    std::uint64_t chunk_ = 0;
    std::uint32_t threads_ = 1, thread_ = 0;
    Workshare share_;
    WordStore* progress_ = nullptr;
    const Cancellation* cancellation_ = nullptr;
};

}  // namespace hiroba::omp
