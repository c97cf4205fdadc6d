// SPDX-License-Identifier: BSD-3-Clause
// Role: formatting without the C library's printf, which locks and may allocate.
#include "base/line.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace hiroba {
namespace {

constexpr std::string_view cut_mark = "...";

/// One conversion of a format: what stands between '%' and its letter.
struct Conversion {
    std::size_t width = 0;
    std::size_t precision = SIZE_MAX;
    char fill = ' ';
    bool wide = false;  ///< l, ll or z: 64 bits
    char letter = 0;
};

std::size_t read_digits(const char*& at) noexcept {
    std::size_t value = 0;
    while (*at >= '0' && *at <= '9') value = value * 10 + static_cast<std::size_t>(*at++ - '0');
    return value;
}

/// Reads a conversion; `at` points behind '%' and is left behind the letter.
Conversion read_conversion(const char*& at, std::va_list* arguments) noexcept {
    Conversion conversion;
    if (*at == '0') conversion.fill = '0';
    conversion.width = read_digits(at);
    if (*at == '.') {
        ++at;
        if (*at == '*') {
            ++at;
            conversion.precision = static_cast<std::size_t>(std::max(0, va_arg(*arguments, int)));
        } else {
            conversion.precision = read_digits(at);
        }
    }
    while (*at == 'l' || *at == 'z') {
        conversion.wide = true;
        ++at;
    }
    conversion.letter = *at;
    if (*at != 0) ++at;
    return conversion;
}

/// Digits of `value`, written backwards from `end`; returns the first.
char* write_digits(std::uint64_t value, unsigned base, char* end) noexcept {
    do {
        *--end = "0123456789abcdef"[value % base];
        value /= base;
    } while (value != 0);
    return end;
}

}  // namespace

void Line::append(std::string_view text) noexcept {
    const std::size_t room = bytes_max - 1 - used_;  // One byte is kept for the newline.
    if (text.size() <= room) {
        std::memcpy(bytes_ + used_, text.data(), text.size());
        used_ += text.size();
        return;
    }
    std::memcpy(bytes_ + used_, text.data(), room);
    used_ = bytes_max - 1;
    std::memcpy(bytes_ + used_ - cut_mark.size(), cut_mark.data(), cut_mark.size());
}

void Line::pad_and_append(std::string_view text, std::size_t width, char fill) noexcept {
    if (fill == '0' && text.starts_with('-')) {
        append(text.substr(0, 1));
        text.remove_prefix(1);
        width -= width > 0 ? 1 : 0;
    }
    for (std::size_t i = text.size(); i < std::min(width, bytes_max); ++i) append({&fill, 1});
    append(text);
}

void Line::append_format(const char* format, ...) noexcept {
    std::va_list arguments;
    va_start(arguments, format);
    append_format(format, arguments);
    va_end(arguments);
}

void Line::append_format(const char* format, std::va_list borrowed) noexcept {
    std::va_list arguments;
    va_copy(arguments, borrowed);
    char digits[24];
    char* const digits_end = digits + sizeof digits;

    for (const char* at = format; *at != 0;) {
        const char* const percent = strchrnul(at, '%');
        append({at, static_cast<std::size_t>(percent - at)});
        if (*percent == 0) break;
        at = percent + 1;
        const Conversion conversion = read_conversion(at, &arguments);
        std::string_view text;
        switch (conversion.letter) {
            case '%': text = "%"; break;
            case 'c':
                digits[0] = static_cast<char>(va_arg(arguments, int));
                text = {digits, 1};
                break;
            case 's': {
                const char* string = va_arg(arguments, const char*);
                if (string == nullptr) string = "(null)";
                text = {string, strnlen(string, std::min(conversion.precision, bytes_max))};
                break;
            }
            case 'd':
            case 'i': {
                const std::int64_t value =
                    conversion.wide ? va_arg(arguments, long) : va_arg(arguments, int);
                const auto bits = static_cast<std::uint64_t>(value);
                char* first = write_digits(value < 0 ? 0 - bits : bits, 10, digits_end);
                if (value < 0) *--first = '-';
                text = {first, static_cast<std::size_t>(digits_end - first)};
                break;
            }
            case 'u':
            case 'x': {
                const std::uint64_t value = conversion.wide ? va_arg(arguments, unsigned long)
                                                            : va_arg(arguments, unsigned);
                char* first = write_digits(value, conversion.letter == 'x' ? 16 : 10, digits_end);
                text = {first, static_cast<std::size_t>(digits_end - first)};
                break;
            }
            case 'p': {
                const auto value = reinterpret_cast<std::uintptr_t>(va_arg(arguments, void*));
                char* first = write_digits(value, 16, digits_end);
                *--first = 'x';
                *--first = '0';
                text = {first, static_cast<std::size_t>(digits_end - first)};
                break;
            }
            default:
                // Its argument's size is unknown, so nothing behind it can be formatted either.
                append(percent);
                va_end(arguments);
                return;
        }
        pad_and_append(text, conversion.width, conversion.fill);
    }
    va_end(arguments);
}

void Line::write_to(int fd) noexcept {
    const int errno_before = errno;
    bytes_[used_] = '\n';  // append() kept this byte free.
    // The raw call: write(2) itself is interposed for buffers in global memory.
    while (syscall(SYS_write, fd, bytes_, used_ + 1) < 0 && errno == EINTR) {
    }
    errno = errno_before;
}

}  // namespace hiroba
