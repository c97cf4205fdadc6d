// SPDX-License-Identifier: BSD-3-Clause
// Role: a program or library laid out in memory as the loader would, to be read only: nothing of it
// runs, nothing is relocated.
// Invariant: addresses are those of the file plus bias(); what is zero until the start is not
// there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace hiroba::tools {

class Image {
public:
    /// Environment error: no readable ELF file of this processor.
    static Result<Image> map(const std::string& path);
    Image(Image&& other) noexcept;
    Image& operator=(Image&&) = delete;
    ~Image();

    const std::string& path() const { return path_; }
    std::uintptr_t bias() const { return bias_; }
    std::uintptr_t dynamic() const { return dynamic_; }
    /// Where the file's first byte would be, were it loaded at the addresses it was linked at.
    std::uint64_t linked_base() const { return linked_base_; }
    bool code_on_stack() const { return code_on_stack_; }

    /// DT_NEEDED, in order.
    std::vector<std::string> needed() const { return strings(needed_tag); }
    /// DT_RUNPATH, else DT_RPATH, with $ORIGIN filled in.
    std::string run_path() const;
    /// Whether run_path() counts before LD_LIBRARY_PATH.
    bool run_path_first() const;
    /// The words where the loader puts the address of `name`.
    std::vector<std::uintptr_t> slots_of(std::string_view name) const;

private:
    static constexpr std::int64_t needed_tag = 1;
    Image() = default;
    std::vector<std::string> strings(std::int64_t tag) const;
    std::uintptr_t pointer(std::int64_t tag) const;
    std::uint64_t number(std::int64_t tag) const;

    std::string path_;
    void* memory_ = nullptr;
    std::size_t bytes_ = 0;
    std::uintptr_t bias_ = 0, dynamic_ = 0;
    std::uint64_t linked_base_ = 0;
    bool code_on_stack_ = true;  ///< without a header that says otherwise
};

}  // namespace hiroba::tools
