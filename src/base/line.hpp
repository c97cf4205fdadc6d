// SPDX-License-Identifier: BSD-3-Clause
// Role: one line of text, formatted in a fixed buffer and written by one system call.
// Invariant: async-signal-safe: no allocation, no stdio, no lock, errno kept. A line that is too
// long is cut and ends in "...", so that lines of several nodes never mix.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hiroba {

/// A line under construction. Lives on the caller's stack.
class Line {
public:
    static constexpr std::size_t bytes_max = 1024;

    void append(std::string_view text) noexcept;

    /// Appends as printf would. Conversions: %s %c %d %i %u %x %p %%, with l, ll, z or no length,
    /// a width with or without 0, and %.*s or %.Ns. The first other conversion is copied as it
    /// stands together with the rest of the format.
    void append_format(const char* format, std::va_list arguments) noexcept;
    [[gnu::format(printf, 2, 3)]] void append_format(const char* format, ...) noexcept;

    std::string_view text() const noexcept { return {bytes_, used_}; }

    /// Writes the text and a newline to `fd` at once. Losing it (closed fd) is not an error.
    void write_to(int fd) noexcept;

private:
    void pad_and_append(std::string_view text, std::size_t width, char fill) noexcept;

    std::size_t used_ = 0;
    char bytes_[bytes_max];
};

}  // namespace hiroba
