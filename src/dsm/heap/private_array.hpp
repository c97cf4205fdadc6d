// SPDX-License-Identifier: BSD-3-Clause
// Role: the allocator's own bookkeeping memory: anonymous pages of this node, asked from the
// kernel. Invariant: zero until written; an untouched page costs nothing (MAP_NORESERVE); never
// malloc.
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "base/address_hint.hpp"
#include "base/bytes.hpp"
#include "base/result.hpp"

namespace hiroba::dsm {

/// A fixed or growing array of plain values in memory private to the node.
template <class T>
class PrivateArray {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    PrivateArray() = default;
    PrivateArray(PrivateArray&& other) noexcept { swap(other); }
    PrivateArray& operator=(PrivateArray&& other) noexcept {
        swap(other);
        return *this;
    }
    ~PrivateArray() {
        if (values_) munmap(values_, mapped_bytes(capacity_));
    }

    /// `count` zero values. Fails with an environment error naming the bytes.
    static Result<PrivateArray> reserve(std::size_t count) {
        PrivateArray array;
        if (!array.grow(count)) {
            return Error{ErrorKind::environment,
                         "heap bookkeeping: " + std::to_string(count * sizeof(T)) +
                             " bytes of address space refused (" + std::strerror(errno) +
                             "); lower HIROBA_HEAP or raise ulimit -v"};
        }
        return array;
    }

    /// Makes room for `count` values, keeping those there are; may move them. False: no memory.
    bool grow(std::size_t count) noexcept {
        if (count <= capacity_) return true;
        void* place =
            values_
                ? mremap(values_, mapped_bytes(capacity_), mapped_bytes(count), MREMAP_MAYMOVE)
                : mmap(address_hint(mapped_bytes(count)), mapped_bytes(count),
                       PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (place == MAP_FAILED) return false;
        values_ = static_cast<T*>(place);
        capacity_ = count;
        return true;
    }

    T& operator[](std::size_t index) noexcept { return values_[index]; }
    const T& operator[](std::size_t index) const noexcept { return values_[index]; }
    T* data() noexcept { return values_; }
    std::size_t capacity() const noexcept { return capacity_; }
    void swap(PrivateArray& other) noexcept {
        std::swap(values_, other.values_);
        std::swap(capacity_, other.capacity_);
    }

private:
    static std::size_t mapped_bytes(std::size_t count) {
        return round_up(count * sizeof(T), page_bytes);
    }
    T* values_ = nullptr;
    std::size_t capacity_ = 0;
};

}  // namespace hiroba::dsm
