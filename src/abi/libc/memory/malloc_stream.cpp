// SPDX-License-Identifier: BSD-3-Clause
// Role: open_memstream() for the program: the text grows in memory of the program from the first
// byte, while the stream's own buffer stays libc's.
// Invariant: after each flush and close `*text` is a block the program may free, `*bytes` its
// length without the zero behind it; as POSIX says.
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/real.hpp"

using namespace hiroba;

HIROBA_REAL(open_memstream);

namespace {

/// What the stream knows; lives in libc's memory until the stream is closed.
struct TextStream {
    char** text;
    std::size_t* bytes;
    char* block;
    std::size_t room;    ///< of `block`
    std::size_t at;      ///< where the next byte goes
    std::size_t length;  ///< bytes written so far, gaps included
};

/// Makes the block hold `length` bytes and a zero; what is new is zero.
bool make_room(TextStream& stream, std::size_t length) noexcept {
    if (length < stream.room) return true;
    const std::size_t room = std::max(length + 1, stream.room * 2);
    void* const block = abi::resize_for_program(stream.block, room);
    if (block == nullptr) return false;
    stream.block = static_cast<char*>(block);
    memset(stream.block + stream.room, 0, room - stream.room);
    stream.room = room;
    return true;
}

void show(TextStream& stream) noexcept {
    *stream.text = stream.block;
    *stream.bytes = std::min(stream.at, stream.length);
}

ssize_t write_text(void* cookie, const char* from, std::size_t bytes) noexcept {
    auto& stream = *static_cast<TextStream*>(cookie);
    if (!make_room(stream, stream.at + bytes)) return 0;  // an error of the stream, errno = ENOMEM
    memcpy(stream.block + stream.at, from, bytes);
    stream.at += bytes;
    if (stream.at > stream.length) {
        stream.length = stream.at;
        stream.block[stream.length] = '\0';
    }
    show(stream);
    return static_cast<ssize_t>(bytes);
}

int seek_text(void* cookie, off64_t* to, int whence) noexcept {
    auto& stream = *static_cast<TextStream*>(cookie);
    const std::size_t base = whence == SEEK_SET   ? 0
                             : whence == SEEK_CUR ? stream.at
                                                  : stream.length;
    const off64_t wanted = static_cast<off64_t>(base) + *to;
    if (wanted < 0) {
        errno = EINVAL;
        return -1;
    }
    stream.at = static_cast<std::size_t>(wanted);
    *to = wanted;
    show(stream);
    return 0;
}

int close_text(void* cookie) noexcept {
    show(*static_cast<TextStream*>(cookie));
    abi::libc_free(cookie);
    return 0;
}

}  // namespace

extern "C" [[gnu::visibility("default")]] FILE* open_memstream(char** text,
                                                               std::size_t* bytes) noexcept {
    if (!abi::is_spread() || !abi::is_for_program(__builtin_return_address(0))) {
        return real_open_memstream(text, bytes);
    }
    constexpr std::size_t first_room = 256;
    auto* const stream = static_cast<TextStream*>(abi::libc_malloc(sizeof(TextStream)));
    if (stream == nullptr) return nullptr;
    auto* const block = static_cast<char*>(abi::allocate_for_program(first_room, 16, true));
    FILE* file = nullptr;
    if (block != nullptr) {
        *stream = {text, bytes, block, first_room, 0, 0};
        file = fopencookie(
            stream, "w",
            {.read = nullptr, .write = write_text, .seek = seek_text, .close = close_text});
    }
    if (file == nullptr) {
        if (block != nullptr) abi::give_back(block);
        abi::libc_free(stream);
        return nullptr;
    }
    show(*stream);
    return file;
}
