// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/files/directories.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>

#include "abi/libc/files/descriptors.hpp"
#include "abi/libc/files/remote_files.hpp"
#include "abi/world.hpp"

namespace hiroba::abi {
namespace {

/// Which arguments are a directory and the path from there; once or twice.
struct AtCall {
    std::uint16_t number;
    std::array<std::uint8_t, 2> directory, path;
    std::uint8_t pairs = 1;
};

constexpr std::uint16_t openat2 = 437, faccessat2 = 439, fchmodat2 = 452;
constexpr AtCall rows[] = {
    {SYS_openat, {0}, {1}},
    {openat2, {0}, {1}},
    {SYS_mkdirat, {0}, {1}},
    {SYS_mknodat, {0}, {1}},
    {SYS_fchownat, {0}, {1}},
    {SYS_futimesat, {0}, {1}},
    {SYS_newfstatat, {0}, {1}},
    {SYS_unlinkat, {0}, {1}},
    {SYS_renameat, {0, 2}, {1, 3}, 2},
    {SYS_renameat2, {0, 2}, {1, 3}, 2},
    {SYS_linkat, {0, 2}, {1, 3}, 2},
    {SYS_symlinkat, {1}, {2}},
    {SYS_readlinkat, {0}, {1}},
    {SYS_fchmodat, {0}, {1}},
    {SYS_faccessat, {0}, {1}},
    {faccessat2, {0}, {1}},
    {fchmodat2, {0}, {1}},
    {SYS_utimensat, {0}, {1}},
    {SYS_statx, {0}, {1}},
    {SYS_name_to_handle_at, {0}, {1}},
};

const AtCall* find(long number) noexcept {
    for (const AtCall& row : rows)
        if (row.number == number) return &row;
    return nullptr;
}

const char* text_at(long word) noexcept {
    return reinterpret_cast<const char*>(static_cast<std::uintptr_t>(word));
}

std::optional<NodeId> owner_of_start(long directory, long path) noexcept {
    const char* const text = text_at(path);
    if (directory < 0 || text == nullptr || *text == '/' || *text == '\0') return std::nullopt;
    return foreign_owner(static_cast<int>(directory));
}

}  // namespace

bool begins_elsewhere(long number, const CallArguments& given) noexcept {
    const AtCall* const row = find(number);
    for (unsigned i = 0; row != nullptr && i < row->pairs; ++i)
        if (owner_of_start(given.word[row->directory[i]], given.word[row->path[i]])) return true;
    return false;
}

WholePaths::WholePaths(long number, const CallArguments& given) noexcept : arguments_(given) {
    const AtCall& row = *find(number);
    for (unsigned i = 0; i < row.pairs; ++i) complete(row.directory[i], row.path[i], rooms_[i]);
}

void WholePaths::complete(unsigned directory, unsigned path, char* room) noexcept {
    long& at = arguments_.word[directory];
    const auto owner = owner_of_start(at, arguments_.word[path]);
    if (!owner) return;
    const char* const rest = text_at(arguments_.word[path]);
    const CallArguments words{{at}};
    const std::int64_t length =
        world()->files->call(*owner, static_cast<std::int64_t>(StreamCall::path), words, -1, {},
                             {reinterpret_cast<std::byte*>(room), path_bytes});
    if (length < 0) {
        failure_ = static_cast<long>(length);
    } else if (static_cast<std::size_t>(length) + strlen(rest) + 2 > path_bytes) {
        failure_ = -ENAMETOOLONG;
    } else {
        room[length] = '/';
        strcpy(room + length + 1, rest);
        at = AT_FDCWD;
        arguments_.word[path] = dsm::kernel::as_word(room);
    }
}

}  // namespace hiroba::abi
