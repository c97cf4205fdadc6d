// SPDX-License-Identifier: BSD-3-Clause
// Role: a fixed, zero-filled array in private memory of which only touched pages exist.
// Invariant: never moves, never grows; usable in a fault handler once made.
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include "base/address_hint.hpp"
#include "base/fatal.hpp"

namespace hiroba::dsm {

template <class T>
class SparseArray {
public:
    explicit SparseArray(std::size_t size) : size_(size) {
        void* memory = mmap(address_hint(bytes()), bytes(), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) {
            die(exit_environment,
                "no address space for %lu bytes of block tables (errno %d): lower HIROBA_HEAP or "
                "raise ulimit -v",
                bytes(), errno);
        }
        data_ = static_cast<T*>(memory);
    }
    SparseArray(SparseArray&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
    SparseArray& operator=(SparseArray&&) = delete;
    ~SparseArray() {
        if (data_ != nullptr) munmap(data_, bytes());
    }

    T& operator[](std::size_t index) noexcept { return data_[index]; }
    T* data() noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    std::span<T> span() noexcept { return {data_, size_}; }

private:
    std::size_t bytes() const noexcept { return size_ * sizeof(T) + 1; }
    T* data_ = nullptr;
    std::size_t size_;
};

}  // namespace hiroba::dsm
