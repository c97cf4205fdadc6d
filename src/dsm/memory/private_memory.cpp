// SPDX-License-Identifier: BSD-3-Clause
// Role: makes the memfd that holds a node's private copies, and its alias mapping.
// Invariant: the alias is never in a core file (the program's own mappings of it are) and has
// small pages only, since the fault engines work by page.
#include "dsm/memory/private_memory.hpp"

#include <linux/falloc.h>
#include <linux/memfd.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <utility>

#include "base/address_hint.hpp"
#include "base/denied_call.hpp"
#include "base/fatal.hpp"
#include "base/own_descriptors.hpp"
#include "dsm/memory/kernel_calls.hpp"

namespace hiroba::dsm {
namespace {

Error failed(const char* call, std::uint64_t bytes, long result) {
    const int error = static_cast<int>(-result);
    const char* const advice =
        is_denied_call(error) ? denied_call_advice
                              : "a smaller HIROBA_HEAP or more address space (ulimit -v, ulimit "
                                "-f, ulimit -n) is needed";
    char text[256];
    std::snprintf(text, sizeof text, "private memory: %s of %lu bytes failed: %s; %s", call,
                  static_cast<unsigned long>(bytes), std::strerror(error), advice);
    return Error{ErrorKind::environment, text};
}

}  // namespace

Result<PrivateMemory> PrivateMemory::create(std::uint64_t bytes) {
    PrivateMemory memory;
    memory.bytes_ = round_up(bytes, page_bytes);

    const long made = kernel_call(SYS_memfd_create, "hiroba-private", MFD_CLOEXEC);
    if (made < 0) return failed("memfd_create", memory.bytes_, made);
    const int fd = keep_descriptor(static_cast<int>(made));
    memory.fd_ = fd;

    const long sized = kernel_call(SYS_ftruncate, fd, memory.bytes_);
    if (sized < 0) return failed("ftruncate", memory.bytes_, sized);

    const long alias = kernel_call(SYS_mmap, address_hint(memory.bytes_), memory.bytes_,
                                   PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (kernel_failed(alias)) return failed("mmap", memory.bytes_, alias);
    memory.alias_ = reinterpret_cast<std::byte*>(alias);

    // Both are wishes: a kernel without huge pages or core files refuses them rightly.
    kernel_call(SYS_madvise, alias, memory.bytes_, MADV_NOHUGEPAGE);
    kernel_call(SYS_madvise, alias, memory.bytes_, MADV_DONTDUMP);
    return memory;
}

void PrivateMemory::discard(std::uint64_t offset, std::size_t bytes) const noexcept {
    const long result =
        kernel_call(SYS_fallocate, fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes);
    HIROBA_INVARIANT(result == 0, "fallocate of %lu bytes at %lu gave %ld",
                     static_cast<unsigned long>(bytes), static_cast<unsigned long>(offset), result);
}

PrivateMemory::PrivateMemory(PrivateMemory&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      alias_(std::exchange(other.alias_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

PrivateMemory::~PrivateMemory() {
    if (alias_ != nullptr) kernel_call(SYS_munmap, alias_, bytes_);
    if (fd_ >= 0) close_kept_descriptor(fd_);
}

}  // namespace hiroba::dsm
