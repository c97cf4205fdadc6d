// SPDX-License-Identifier: BSD-3-Clause
// Role: mmap, mremap, munmap and their kin for the program: its memory is global, wherever it
// comes from. A mapping is a block of the global heap; a file's bytes are read into it.
// Invariant: addresses outside global memory are the kernel's as before, and so is all that system
// libraries map. Protections: protections.hpp.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <mutex>

#include "abi/libc/calls/kernel_access.hpp"
#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/memory/early_mappings.hpp"
#include "abi/libc/memory/generated_code.hpp"
#include "abi/libc/memory/malloc_callers.hpp"
#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/memory/mapping_table.hpp"
#include "abi/libc/memory/memory_calls.hpp"
#include "abi/libc/memory/memory_limit.hpp"
#include "abi/libc/memory/protections.hpp"
#include "abi/libc/memory/shared_files.hpp"
#include "abi/libc/real.hpp"
#include "abi/world.hpp"
#include "base/bytes.hpp"
#include "base/fatal.hpp"
#include "base/latch.hpp"

HIROBA_REAL_OF_LIBC(mmap);
HIROBA_REAL_OF_LIBC(munmap);
HIROBA_REAL_OF_LIBC(mremap);
HIROBA_REAL_OF_LIBC(mprotect);
HIROBA_REAL_OF_LIBC(madvise);
HIROBA_REAL_OF_LIBC(msync);
HIROBA_REAL_OF_LIBC(mlock);
HIROBA_REAL_OF_LIBC(mlock2);
HIROBA_REAL_OF_LIBC(munlock);
HIROBA_REAL_OF_LIBC(mlockall);
HIROBA_REAL_OF_LIBC(munlockall);
HIROBA_REAL_OF_LIBC(posix_madvise);
HIROBA_REAL_OF_LIBC(pkey_mprotect);

namespace hiroba::abi {
namespace {

constinit Latch table_latch;
/// Never destroyed: the program's own destructors unmap.
MappingTable& table() noexcept {
    static auto* const made = new MappingTable;
    return *made;
}

struct Wanted {
    void* address;
    std::size_t bytes;
    int protection;
    int flags;
    int fd;
    off_t offset;
};

void* fail(int error) noexcept {
    errno = error;
    return MAP_FAILED;
}

void say_early_is_full(std::size_t bytes) noexcept {
    static constinit std::atomic<bool> said{false};
    if (said.exchange(true, std::memory_order_relaxed)) return;
    say("mmap of %lu bytes refused: before the program starts its libraries may map %lu bytes in "
        "all; map them when they are first used, or run on one node (-n 1)",
        bytes, EarlyMappings::bytes_max);
}

std::uintptr_t number(const void* address) noexcept {
    return reinterpret_cast<std::uintptr_t>(address);
}

/// Fills the front of zeroed memory with the file's bytes. 0 or the error number of mmap().
int read_in(const Wanted& wanted, std::byte* to) noexcept {
    for (std::size_t done = 0; done < wanted.bytes;) {
        const long got = perform_system_call(
            SYS_pread64, CallArguments{{wanted.fd, dsm::kernel::as_word(to + done),
                                        static_cast<long>(wanted.bytes - done),
                                        wanted.offset + static_cast<long>(done)}});
        if (got == -EINTR) continue;
        if (got == -EBADF) return fcntl(wanted.fd, F_GETFD) < 0 ? EBADF : EACCES;
        if (dsm::kernel_failed(got)) return ENODEV;
        if (got == 0) break;
        done += static_cast<std::size_t>(got);
    }
    return 0;
}

bool is_anonymous(const Wanted& wanted) noexcept { return (wanted.flags & MAP_ANONYMOUS) != 0; }

bool writes_to_file(const Wanted& wanted) noexcept {
    const int type = wanted.flags & MAP_TYPE;
    return !is_anonymous(wanted) && type != MAP_PRIVATE && (wanted.protection & PROT_WRITE) != 0;
}

/// Memory in disguise.
bool is_zero_device(int fd) noexcept {
    const dev_t zero_device = makedev(1, 5);
    struct stat file {};
    return dsm::kernel_call(SYS_fstat, fd, &file) == 0 && S_ISCHR(file.st_mode) &&
           file.st_rdev == zero_device;
}

void* refuse_shared(const Wanted& wanted) noexcept {
    say("mmap of descriptor %d refused: %lu bytes, shared and writable, would be written by each "
        "node on its own; map it private or read only, use pwrite, or run on one node (-n 1)",
        wanted.fd, wanted.bytes);
    return fail(ENODEV);
}

bool is_accessible(int protection) noexcept {
    return (protection & (PROT_READ | PROT_WRITE | PROT_EXEC)) != 0;
}

/// Address space of which the program means to use a part: only that is to fit into memory.
bool is_reservation(const Wanted& wanted) noexcept {
    const bool is_large = wanted.bytes >= limited_bytes_min;
    return is_anonymous(wanted) &&
           (!is_accessible(wanted.protection) || (is_large && (wanted.flags & MAP_NORESERVE) != 0));
}

/// What is mapped inaccessible is a guard, what is mapped to be read a barrier for writes, until
/// mprotect().
void forbid_the_rest(const Wanted& wanted, const void* at) noexcept {
    if ((wanted.protection & PROT_WRITE) == 0 || (wanted.protection & PROT_EXEC) != 0)
        set_protection({number(at), wanted.bytes}, wanted.protection);
}

/// Memory of its own for a mapping; zero, or the file's bytes.
void* map_somewhere(const Wanted& wanted) noexcept {
    const bool reserves = is_reservation(wanted);
    void* const block = reserves
                            ? reserve_for_program(wanted.bytes, is_accessible(wanted.protection))
                            : allocate_for_program(wanted.bytes, page_bytes, true);
    if (block == nullptr) return fail(ENOMEM);
    if (!is_anonymous(wanted)) {
        if (const int error = read_in(wanted, static_cast<std::byte*>(block)); error != 0) {
            give_back(block);
            return fail(error);
        }
    }
    const bool shows_file = !is_anonymous(wanted) && (wanted.flags & MAP_TYPE) != MAP_PRIVATE;
    forbid_the_rest(wanted, block);
    const std::scoped_lock guard{table_latch};
    table().add({number(block), wanted.bytes}, shows_file, reserves);
    return block;
}

/// Zeros, but what was never written stays untouched where much of it is known.
void clear(dsm::AddressRange part) noexcept {
    std::unique_lock guard{table_latch};
    const auto block = table().block_of(part.address);
    guard.unlock();
    dsm::Heap& heap = *world()->heap;
    const bool knows = block && part.end() <= block->end() &&
                       heap.is_reserved(reinterpret_cast<void*>(block->address));
    if (!knows) {
        std::memset(reinterpret_cast<void*>(part.address), 0, part.bytes);
        return;
    }
    for (std::uintptr_t at = part.address; at < part.end();) {
        const dsm::AddressRange next = heap.first_committed({at, part.end() - at});
        if (next.bytes == 0) return;
        std::memset(reinterpret_cast<void*>(next.address), 0, next.bytes);
        at = next.end();
    }
}

/// Pages that the program may use from now on. Those of this node's own blocks that are no
/// reservations need no note.
void commit(dsm::AddressRange part, int protection) noexcept {
    if (!is_accessible(protection)) return;
    std::unique_lock guard{table_latch};
    const bool plain =
        table().block_of(part.address).has_value() && !table().is_reserved(part.address);
    guard.unlock();
    if (!plain) world()->heap->commit(part);
}

/// MAP_FIXED over global memory: the bytes there are replaced.
void* map_over(const Wanted& wanted) noexcept {
    if ((number(wanted.address) & (page_bytes - 1)) != 0) return fail(EINVAL);
    if ((wanted.flags & MAP_FIXED_NOREPLACE) == MAP_FIXED_NOREPLACE) return fail(EEXIST);
    allow_all({number(wanted.address), wanted.bytes});
    clear({number(wanted.address), wanted.bytes});
    commit({number(wanted.address), wanted.bytes}, wanted.protection);
    if (!is_anonymous(wanted)) {
        const int error = read_in(wanted, static_cast<std::byte*>(wanted.address));
        if (error != 0) return fail(error);
    }
    forbid_the_rest(wanted, wanted.address);
    const std::scoped_lock guard{table_latch};
    table().add_part({number(wanted.address), wanted.bytes});  // another node's block: its books
    return wanted.address;
}

/// Whether a fixed place is part of an own reservation that no node has used there.
bool is_unused_reservation(const Wanted& wanted) noexcept {
    const dsm::AddressRange part{number(wanted.address), round_up(wanted.bytes, page_bytes)};
    std::unique_lock guard{table_latch};
    const auto block = table().block_of(part.address);
    guard.unlock();
    dsm::Heap& heap = *world()->heap;
    return block && part.end() <= block->end() &&
           heap.is_reserved(reinterpret_cast<void*>(block->address)) &&
           heap.first_committed(part).bytes == 0;
}

/// A view of a file itself, which all nodes have; none: its bytes have to be read in.
std::optional<void*> map_view(const Wanted& wanted) noexcept {
    const bool fixed = (wanted.flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0;
    const bool fits = !fixed || is_global(wanted.address) || is_file_view(wanted.address);
    const bool shared = !is_anonymous(wanted) && (wanted.flags & MAP_TYPE) != MAP_PRIVATE;
    if (!shared || !fits || wanted.bytes == 0 || wanted.bytes > PTRDIFF_MAX || wanted.fd < 0 ||
        (wanted.offset & (page_bytes - 1)) != 0)
        return std::nullopt;
    if ((wanted.flags & MAP_FIXED_NOREPLACE) == MAP_FIXED_NOREPLACE) return std::nullopt;
    if (fixed && is_global(wanted.address)) {
        if (!is_unused_reservation(wanted)) return std::nullopt;
        allow_all({number(wanted.address), round_up(wanted.bytes, page_bytes)});
    }
    return map_file_shared({fixed ? wanted.address : nullptr, wanted.bytes, wanted.protection,
                            wanted.flags, wanted.fd, wanted.offset});
}

/// Memory that no other node can see: private code of a file, or below 4 GiB, and addresses that
/// the program insists on.
bool stays_private(const Wanted& wanted) noexcept {
    const bool fixed = (wanted.flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0;
    if (fixed) return !is_global(wanted.address);
    return (wanted.protection & PROT_EXEC) != 0 &&
           (!is_anonymous(wanted) || (wanted.flags & MAP_32BIT) != 0);
}

void* map_for_program(Wanted wanted) noexcept {
    if (writes_to_file(wanted) && is_zero_device(wanted.fd)) wanted.flags |= MAP_ANONYMOUS;
    if (wanted.bytes == 0) return fail(EINVAL);
    if (wanted.bytes > PTRDIFF_MAX) return fail(ENOMEM);
    if (!is_anonymous(wanted)) {
        if ((wanted.offset & (page_bytes - 1)) != 0) return fail(EINVAL);
        if (wanted.fd < 0) return fail(EBADF);
    }
    if (writes_to_file(wanted)) return refuse_shared(wanted);
    wanted.bytes = round_up(wanted.bytes, page_bytes);
    const bool fixed = (wanted.flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0;
    return fixed ? map_over(wanted) : map_somewhere(wanted);
}

/// Before the take-over. A file's bytes stay as they are mapped: each node has the same.
void* map_early(const Wanted& wanted) noexcept {
    const bool fixed = (wanted.flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0;
    if (!fixed && is_anonymous(wanted) && (wanted.protection & PROT_EXEC) == 0) {
        const bool is_late = early_mappings().is_announced();  // what the take-over itself maps
        void* const made =
            early_mappings().map(wanted.address, wanted.bytes, wanted.protection, wanted.flags);
        if (made != MAP_FAILED) return made;
        if (!is_late) {
            if (errno == ENOMEM) say_early_is_full(wanted.bytes);
            return made;
        }
    }
    return real_mmap(wanted.address, wanted.bytes, wanted.protection, wanted.flags, wanted.fd,
                     wanted.offset);
}

void* map(const Wanted& wanted, const void* return_address) noexcept {
    if (serves_early(return_address)) return map_early(wanted);
    if (serves(return_address))
        if (const auto view = map_view(wanted)) return *view;
    if (!serves(return_address) || stays_private(wanted)) {
        return real_mmap(wanted.address, wanted.bytes, wanted.protection, wanted.flags, wanted.fd,
                         wanted.offset);
    }
    return map_for_program(wanted);
}

/// A block another node has mapped is freed when all of it goes; parts of it stay.
void unmap_elsewhere(dsm::AddressRange part) noexcept {
    void* const block = reinterpret_cast<void*>(part.address);
    if (!is_program_memory(block) || program_block_bytes(block) != part.bytes ||
        world()->map->is_left_out(part))
        return;
    give_back(block);
}

int unmap(void* address, std::size_t bytes) noexcept {
    if ((number(address) & (page_bytes - 1)) != 0 || bytes == 0) {
        errno = EINVAL;
        return -1;
    }
    const dsm::AddressRange part{number(address), round_up(bytes, page_bytes)};
    allow_all(part);
    std::unique_lock guard{table_latch};
    const bool known = table().block_of(part.address).has_value();
    const auto empty = table().remove(part);
    guard.unlock();
    for (const MappingTable::Empty& each : empty) {
        void* const block = reinterpret_cast<void*>(each.address);
        // Its place is no global memory any more, or what is used of it is not known: to give back
        // more than the node may use would take longer than to use it.
        const std::size_t held = program_block_bytes(block);
        const bool unknown = !world()->heap->is_reserved(block) && !fits_memory(0, held);
        if (unknown || world()->map->is_left_out({each.address, held})) continue;
        each.is_reserved ? give_back_reserved(block) : give_back(block);
    }
    if (!known) unmap_elsewhere(part);
    return 0;
}

/// In place. The bytes that are new are zero.
bool resize_here(void* address, std::size_t before, std::size_t after) noexcept {
    std::unique_lock guard{table_latch};
    const auto block = table().block_of(number(address));
    if (!block || block->address != number(address) || block->bytes != before ||
        !table().is_whole(block->address)) {
        return false;
    }
    const std::size_t held = program_block_bytes(address);
    if (!world()->heap->resize(address, after)) return false;
    if (table().is_reserved(block->address)) {
        reserved_block_changed(held, program_block_bytes(address));
        if (after > before) world()->heap->commit({number(address) + before, after - before});
    }
    table().set_bytes(block->address, after);
    guard.unlock();
    if (after > before) std::memset(static_cast<std::byte*>(address) + before, 0, after - before);
    return true;
}

void* remap(void* address, std::size_t before, std::size_t after, int flags) noexcept {
    before = round_up(before, page_bytes);
    after = round_up(after, page_bytes);
    if (after == 0 || before == 0 || (flags & MREMAP_FIXED) != 0) return fail(EINVAL);
    allow_all({number(address), before});
    if (after == before || resize_here(address, before, after)) return address;
    if (after < before) {
        unmap(static_cast<std::byte*>(address) + after, before - after);
        return address;
    }
    if ((flags & MREMAP_MAYMOVE) == 0) return fail(ENOMEM);
    void* const moved =
        map_somewhere({nullptr, after, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0});
    if (moved == MAP_FAILED) return moved;
    std::memcpy(moved, address, before);
    unmap(address, before);
    return moved;
}

/// mremap() of an early mapping, before the take-over: it stays in the range of those.
void* remap_early(void* address, std::size_t before, std::size_t after, int flags) noexcept {
    before = round_up(before, page_bytes);
    after = round_up(after, page_bytes);
    if (after == 0 || before == 0 || (flags & MREMAP_FIXED) != 0) return fail(EINVAL);
    EarlyMappings& early = early_mappings();
    if (after <= before) {
        if (after < before) early.unmap(static_cast<std::byte*>(address) + after, before - after);
        return address;
    }
    if ((flags & MREMAP_MAYMOVE) == 0) return fail(ENOMEM);
    void* const moved =
        early.map(nullptr, after, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    if (moved == MAP_FAILED) return moved;
    std::memcpy(moved, address, before);
    early.unmap(address, before);
    return moved;
}

int protect(void* address, std::size_t bytes, int protection) noexcept {
    std::unique_lock guard{table_latch};
    const bool shows_file = table().shows_file(number(address));
    guard.unlock();
    if ((protection & PROT_WRITE) == 0 || !shows_file) {
        const dsm::AddressRange part{number(address), round_up(bytes, page_bytes)};
        const bool aligned = (part.address & (page_bytes - 1)) == 0;
        if (aligned && bytes == 0) return 0;
        if (aligned) commit(part, protection);
        const int error = aligned ? set_protection(part, protection) : EINVAL;
        if (error == 0 && aligned && (protection & PROT_EXEC) != 0) mark_atomics_in(part);
        if (error == 0) return 0;
        errno = error;
        return -1;
    }
    say("mprotect of %lu bytes at %p refused: a shared mapping of a file was read in, and what is "
        "written to it would be lost; map it private, or use pwrite",
        bytes, address);
    errno = EACCES;
    return -1;
}

int advise(void* address, std::size_t bytes, int advice) noexcept {
    if ((number(address) & (page_bytes - 1)) != 0) {
        errno = EINVAL;
        return -1;
    }
    // The one advice that changes what is read. Of a file's mapping the bytes stay, which is what
    // reading them in again would give.
    if (advice == MADV_DONTNEED || advice == MADV_REMOVE) {
        std::unique_lock guard{table_latch};
        const bool shows_file = table().shows_file(number(address));
        guard.unlock();
        if (shows_file) return 0;
        const dsm::AddressRange part{number(address), round_up(bytes, page_bytes)};
        const AllowedMeanwhile allowed{part};
        clear(part);
    }
    return 0;
}

/// Whether the range is the program's global memory, and the caller's business with it is ours.
bool is_ours(const void* address, const void* return_address) noexcept {
    return spans_nodes() && !is_own_code(return_address) && is_global(address);
}

/// Likewise of a file's view.
bool is_view(const void* address, const void* return_address) noexcept {
    return spans_nodes() && !is_own_code(return_address) && is_file_view(address);
}

/// Whether it is an early mapping of this process, whose take-over is yet to come.
bool is_early(const void* address) noexcept {
    return early_mappings().owns(address) && world() == nullptr;
}
/// Likewise, and the fault engine has it: what is asked for it is advice.
bool is_given_over(const void* address) noexcept {
    return is_early(address) && early_mappings().is_given_over();
}

}  // namespace

bool serves(const void* return_address) noexcept {
    return spans_nodes() && !is_own_code(return_address) && is_for_program(return_address);
}

bool serves_early(const void* return_address) noexcept {
    return world() == nullptr && is_one_of_several() && !is_own_code(return_address) &&
           caller_of(return_address) == Caller::program;
}

std::optional<long> perform_memory_call(long number, const long* a,
                                        const void* return_address) noexcept {
    auto* const address = reinterpret_cast<void*>(a[0]);
    const auto bytes = static_cast<std::size_t>(a[1]);
    const int word = static_cast<int>(a[2]);
    if (number == SYS_mmap) {
        if (!serves(return_address) && !serves_early(return_address)) return std::nullopt;
        const Wanted wanted{address, bytes, word, static_cast<int>(a[3]), static_cast<int>(a[4]),
                            a[5]};
        return dsm::kernel::as_word(map(wanted, return_address));
    }
    const auto after = static_cast<std::size_t>(a[2]);
    if (is_early(address) && number == SYS_munmap) return early_mappings().unmap(address, bytes);
    if (is_early(address) && number == SYS_mremap)
        return dsm::kernel::as_word(remap_early(address, bytes, after, static_cast<int>(a[3])));
    if (is_view(address, return_address)) {
        if (number == SYS_munmap) return unmap_file_view(address, bytes);
        if (number == SYS_mremap)
            return dsm::kernel::as_word(
                remap_file_view(address, bytes, after, static_cast<int>(a[3])));
        return std::nullopt;
    }
    if (!is_ours(address, return_address)) return std::nullopt;
    switch (number) {
        case SYS_munmap: return unmap(address, bytes);
        case SYS_mremap:
            return dsm::kernel::as_word(remap(address, bytes, after, static_cast<int>(a[3])));
        case SYS_mprotect:
        case SYS_pkey_mprotect: return protect(address, bytes, word);
        case SYS_madvise: return advise(address, bytes, word);
        default: return std::nullopt;
    }
}

}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

void* mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
    return map({address, bytes, protection, flags, fd, offset}, HIROBA_CALLER);
}
void* mmap64(void* address, size_t bytes, int protection, int flags, int fd,
             off64_t offset) noexcept {
    return map({address, bytes, protection, flags, fd, offset}, HIROBA_CALLER);
}

int munmap(void* address, size_t bytes) noexcept {
    if (is_early(address)) return early_mappings().unmap(address, bytes);
    if (is_view(address, HIROBA_CALLER)) return unmap_file_view(address, bytes);
    if (!is_ours(address, HIROBA_CALLER)) return real_munmap(address, bytes);
    return unmap(address, bytes);
}

void* mremap(void* address, size_t before, size_t after, int flags, ...) noexcept {
    va_list list;
    va_start(list, flags);
    void* const place = (flags & MREMAP_FIXED) != 0 ? va_arg(list, void*) : nullptr;
    va_end(list);
    if (is_early(address)) return remap_early(address, before, after, flags);
    if (is_view(address, HIROBA_CALLER)) return remap_file_view(address, before, after, flags);
    if (!is_ours(address, HIROBA_CALLER)) return real_mremap(address, before, after, flags, place);
    return remap(address, before, after, flags);
}

int mprotect(void* address, size_t bytes, int protection) noexcept {
    if (is_given_over(address)) return 0;
    if (!is_ours(address, HIROBA_CALLER)) return real_mprotect(address, bytes, protection);
    return protect(address, bytes, protection);
}

int madvise(void* address, size_t bytes, int advice) noexcept {
    if (is_given_over(address)) return advise(address, bytes, advice);
    if (!is_ours(address, HIROBA_CALLER)) return real_madvise(address, bytes, advice);
    return advise(address, bytes, advice);
}

int msync(void* address, size_t bytes, int flags) {
    if (!is_ours(address, HIROBA_CALLER)) return real_msync(address, bytes, flags);
    return 0;
}
int mlock(const void* address, size_t bytes) noexcept {
    if (!is_ours(address, HIROBA_CALLER)) return real_mlock(address, bytes);
    return 0;
}
int munlock(const void* address, size_t bytes) noexcept {
    if (!is_ours(address, HIROBA_CALLER)) return real_munlock(address, bytes);
    return 0;
}

int mlock2(const void* address, size_t bytes, unsigned flags) noexcept {
    if (!is_ours(address, HIROBA_CALLER)) return real_mlock2(address, bytes, flags);
    return 0;
}
// The kernel would make and keep all pages that global memory can have.
int mlockall(int flags) noexcept { return HIROBA_CALL_OF_PROGRAM() ? 0 : real_mlockall(flags); }
int munlockall() noexcept { return HIROBA_CALL_OF_PROGRAM() ? 0 : real_munlockall(); }

int posix_madvise(void* address, size_t bytes, int advice) noexcept {
    if (!is_ours(address, HIROBA_CALLER)) return real_posix_madvise(address, bytes, advice);
    const bool valid =
        (number(address) & (hiroba::page_bytes - 1)) == 0 && advice >= 0 && advice <= 4;
    return valid ? 0 : EINVAL;
}

int pkey_mprotect(void* address, size_t bytes, int protection, int key) noexcept {
    if (is_given_over(address)) return 0;
    if (!is_ours(address, HIROBA_CALLER))
        return real_pkey_mprotect(address, bytes, protection, key);
    return protect(address, bytes, protection);
}

}  // extern "C"
