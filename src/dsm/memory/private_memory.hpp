// SPDX-License-Identifier: BSD-3-Clause
// Role: this node's private copies: one memfd over the whole offset space, seen through an alias
// mapping that is always readable and writable and whose writes are never tracked.
// Invariant: the fault engine maps the same memfd at the program's addresses; no peer maps it.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace hiroba::dsm {

class PrivateMemory {
public:
    /// Sparse: untouched pages cost nothing.
    static Result<PrivateMemory> create(std::uint64_t bytes);
    PrivateMemory(PrivateMemory&&) noexcept;
    PrivateMemory& operator=(PrivateMemory&&) = delete;
    ~PrivateMemory();

    int fd() const noexcept { return fd_; }
    /// The alias of a global offset. Thread: any; async-signal-safe.
    std::byte* at(std::uint64_t offset) const noexcept { return alias_ + offset; }
    /// Gives whole pages back to the machine: they read as zero. Thread: any.
    void discard(std::uint64_t offset, std::size_t bytes) const noexcept;

private:
    PrivateMemory() = default;
    int fd_ = -1;
    std::byte* alias_ = nullptr;
    std::uint64_t bytes_ = 0;
};

}  // namespace hiroba::dsm
