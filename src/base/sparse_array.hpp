// SPDX-License-Identifier: BSD-3-Clause
// Role: an array in private memory, asked from the kernel, of which only touched pages exist.
// Invariant: zero until written; never malloc; moves by grow() alone, so one that does not grow is
// usable in a fault handler.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "base/address_hint.hpp"
#include "base/bytes.hpp"
#include "base/fatal.hpp"
#include "base/result.hpp"

namespace hiroba {

template <class T>
class SparseArray {
public:
    SparseArray() = default;
    /// `size` zero values; ends the process where there is no address space.
    explicit SparseArray(std::size_t size) {
        if (map_new(size)) return;
        die(exit_environment,
            "no address space for %lu bytes of tables (errno %d): lower HIROBA_HEAP or raise "
            "ulimit -v",
            mapped_bytes(size), errno);
    }
    SparseArray(SparseArray&& other) noexcept { swap(other); }
    SparseArray& operator=(SparseArray&& other) noexcept {
        swap(other);
        return *this;
    }
    ~SparseArray() {
        if (values_ != nullptr) munmap(values_, mapped_bytes(size_));
    }

    /// As the constructor, but fails with an environment error that names the bytes.
    static Result<SparseArray> reserve(std::size_t size) {
        SparseArray array;
        if (array.map_new(size)) return array;
        return Error{ErrorKind::environment, std::to_string(mapped_bytes(size)) +
                                                 " bytes of address space for tables refused (" +
                                                 std::strerror(errno) +
                                                 "); lower HIROBA_HEAP or raise ulimit -v"};
    }

    /// Makes room for `size` values, keeping those there are; may move them. False: no memory.
    bool grow(std::size_t size) noexcept {
        static_assert(std::is_trivially_copyable_v<T>);
        if (size <= size_) return true;
        if (values_ == nullptr) return map_new(size);
        void* const memory =
            mremap(values_, mapped_bytes(size_), mapped_bytes(size), MREMAP_MAYMOVE);
        return take(memory, size);
    }

    T& operator[](std::size_t index) noexcept { return values_[index]; }
    const T& operator[](std::size_t index) const noexcept { return values_[index]; }
    T* data() noexcept { return values_; }
    std::size_t size() const noexcept { return size_; }
    std::span<T> span() noexcept { return {values_, size_}; }
    void swap(SparseArray& other) noexcept {
        std::swap(values_, other.values_);
        std::swap(size_, other.size_);
    }

private:
    static constexpr std::size_t dumped_bytes_max = std::size_t{1} << 20;

    static std::size_t mapped_bytes(std::size_t size) {
        return round_up(std::max(size * sizeof(T), std::size_t{1}), page_bytes);
    }
    bool map_new(std::size_t size) noexcept {
        const std::size_t bytes = mapped_bytes(size);
        return take(mmap(address_hint(bytes), bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
                    size);
    }
    bool take(void* memory, std::size_t size) noexcept {
        if (memory == MAP_FAILED) return false;
        // Mostly holes, which a core piped to a collector would hold as zeros.
        if (mapped_bytes(size) > dumped_bytes_max)
            madvise(memory, mapped_bytes(size), MADV_DONTDUMP);
        values_ = static_cast<T*>(memory);
        size_ = size;
        return true;
    }

    T* values_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace hiroba
