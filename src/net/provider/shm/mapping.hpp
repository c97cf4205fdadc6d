// SPDX-License-Identifier: BSD-3-Clause
// Role: owns descriptors and mappings of shared memory.
// Invariant: a memory's size is sealed when it is created, so that no peer can shrink it under us.
#pragma once

#include <cstddef>
#include <utility>

#include "base/result.hpp"

namespace hiroba::net::shm {

/// A file descriptor that is closed at the end of its scope.
class Descriptor {
public:
    Descriptor() = default;
    explicit Descriptor(int fd) noexcept : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Descriptor();
    int fd() const noexcept { return fd_; }

private:
    int fd_ = -1;
};

/// A shared mapping of a whole memory, readable and writable.
class Mapping {
public:
    Mapping() = default;
    Mapping(Mapping&& other) noexcept
        : start_(std::exchange(other.start_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    Mapping& operator=(Mapping&& other) noexcept {
        std::swap(start_, other.start_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~Mapping();

    /// Refuses a memory that has not exactly `bytes` bytes or may still change its size.
    static Result<Mapping> of(int fd, std::size_t bytes);

    std::byte* start() const noexcept { return start_; }

private:
    std::byte* start_ = nullptr;
    std::size_t bytes_ = 0;
};

/// Creates a sparse memory of zeros with its size sealed.
Result<Descriptor> create_memory(std::size_t bytes);

}  // namespace hiroba::net::shm
