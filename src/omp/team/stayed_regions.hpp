// SPDX-License-Identifier: BSD-3-Clause
// Role: which functions' regions have stayed on node 0, and for how long: told once at the end.
// Invariant: nothing is allocated. Functions beyond the table's room count together.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hiroba::omp {

/// Thread: one at a time.
class StayedRegions {
public:
    struct Function {
        const void* code = nullptr;  ///< null: all others
        std::uint64_t count = 0, ns = 0;
    };

    /// The first region of the program begins; later calls say nothing.
    void begin(std::uint64_t now_ns) noexcept {
        if (first_ns_ == 0) first_ns_ = now_ns;
    }
    void note(const void* code, std::uint64_t took_ns) noexcept {
        std::size_t at = 0;
        while (at < used_ && functions_[at].code != code) ++at;
        if (at == used_ && used_ < functions_.size()) functions_[used_++].code = code;
        if (at == functions_.size()) functions_[--at].code = nullptr;
        ++functions_[at].count;
        functions_[at].ns += took_ns;
        ++count_;
        ns_ += took_ns;
    }
    std::uint64_t count() const noexcept { return count_; }
    std::span<const Function> functions() const noexcept {
        return std::span(functions_).first(used_);
    }
    /// Whether they make up a tenth of the program's time behind the begin of its first region.
    bool is_much(std::uint64_t now_ns) const noexcept {
        return count_ != 0 && ns_ * 10 >= now_ns - first_ns_;
    }

private:
    std::array<Function, 32> functions_{};
    std::size_t used_ = 0;
    std::uint64_t count_ = 0, ns_ = 0, first_ns_ = 0;
};

}  // namespace hiroba::omp
