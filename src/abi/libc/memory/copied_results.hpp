// SPDX-License-Identifier: BSD-3-Clause
// Role: copies of what libc makes in several pieces, in one block of global memory: a structure,
// the texts it points to, and lists of them. Invariant: measured and filled by the same walk, so
// nothing is written beyond the block.
#pragma once

#include <cstddef>
#include <cstring>

#include "abi/libc/memory/malloc_place.hpp"

namespace hiroba::abi {

/// A walk over what is to be copied: first without a block, which counts, then with one of so many
/// bytes, which fills it.
class Copying {
public:
    static constexpr std::size_t alignment = 8;

    Copying() = default;
    explicit Copying(void* block) noexcept : block_(static_cast<char*>(block)) {}

    std::size_t bytes() const noexcept { return used_; }

    /// Where the copy lies; while counting, null.
    void* bytes_at(const void* from, std::size_t count) noexcept {
        char* const at = block_ == nullptr ? nullptr : block_ + used_;
        used_ += (count + alignment - 1) / alignment * alignment;
        return at == nullptr || count == 0 ? at : memcpy(at, from, count);
    }
    template <class T>
    T* one(const T& from) noexcept {
        return static_cast<T*>(bytes_at(&from, sizeof from));
    }
    char* text(const char* from) noexcept {
        return from == nullptr ? nullptr : static_cast<char*>(bytes_at(from, strlen(from) + 1));
    }
    /// `count` texts, each may be null. With `ends` a null behind them.
    char** texts(char* const* from, std::size_t count, bool ends) noexcept {
        const std::size_t entries = count + (ends ? 1 : 0);
        auto** const list = static_cast<char**>(bytes_at(nullptr, 0));
        used_ += entries * sizeof(char*);
        for (std::size_t i = 0; i < count; ++i) {
            char* const copy = text(from[i]);
            if (list != nullptr) list[i] = copy;
        }
        if (ends && list != nullptr) list[count] = nullptr;
        return list;
    }
    /// A list that ends with a null, of texts, or of blocks of `bytes_each`.
    char** list(char* const* from, std::size_t bytes_each = 0) noexcept {
        if (from == nullptr) return nullptr;
        std::size_t count = 0;
        while (from[count] != nullptr) ++count;
        if (bytes_each == 0) return texts(from, count, true);
        auto** const list = static_cast<char**>(bytes_at(nullptr, 0));
        used_ += (count + 1) * sizeof(char*);
        for (std::size_t i = 0; i < count; ++i) {
            void* const copy = bytes_at(from[i], bytes_each);
            if (list != nullptr) list[i] = static_cast<char*>(copy);
        }
        if (list != nullptr) list[count] = nullptr;
        return list;
    }

private:
    char* block_ = nullptr;
    std::size_t used_ = 0;
};

/// What `walk`, given a Copying, returns, in a block of the program's that begins with it. Null
/// (ENOMEM): no room.
template <class Walk>
auto copy_for_program(const Walk& walk) noexcept {
    Copying counting;
    using Result = decltype(walk(counting));
    walk(counting);
    void* const block =
        allocate_for_program(counting.bytes() == 0 ? 1 : counting.bytes(), 16, false);
    if (block == nullptr) return Result{};
    Copying filling{block};
    return walk(filling);
}

}  // namespace hiroba::abi
