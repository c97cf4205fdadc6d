// SPDX-License-Identifier: BSD-3-Clause
// Role: see mapping.hpp; the only file of this provider that makes or maps memory.
#include "net/provider/shm/mapping.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "base/address_hint.hpp"
#include "base/denied_call.hpp"

namespace hiroba::net::shm {
namespace {

constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW;

Error failed(const char* what, std::size_t bytes, const char* advice) {
    const int error = errno;
    std::string text = std::string(what) + " of " + std::to_string(bytes) +
                       " bytes of shared memory: " + strerror(error);
    text += is_denied_call(error) ? std::string("; ") + denied_call_advice : advice;
    return {ErrorKind::environment, text};
}

}  // namespace

Descriptor::~Descriptor() {
    if (fd_ >= 0) close(fd_);
}

Mapping::~Mapping() {
    if (start_ != nullptr) munmap(start_, bytes_);
}

Result<Mapping> Mapping::of(int fd, std::size_t bytes) {
    struct stat status {};
    if (fstat(fd, &status) != 0) return failed("fstat", bytes, "");
    if (static_cast<std::size_t>(status.st_size) != bytes) {
        return Error{ErrorKind::refused, "shared memory of " + std::to_string(status.st_size) +
                                             " bytes where " + std::to_string(bytes) +
                                             " were announced"};
    }
    const int present = fcntl(fd, F_GET_SEALS);
    if (present < 0 || (present & seals) != seals) {
        return Error{ErrorKind::refused, "shared memory of " + std::to_string(bytes) +
                                             " bytes whose size is not sealed"};
    }
    void* start =
        mmap(address_hint(bytes), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (start == MAP_FAILED) {
        return failed("mmap", bytes,
                      "; see ulimit -v and vm.max_map_count, or lower HIROBA_HEAP or HIROBA_GAS");
    }
    // Sparse and mostly other nodes': a core of one node must not hold, or walk, all of it.
    madvise(start, bytes, MADV_DONTDUMP);
    Mapping mapping;
    mapping.start_ = static_cast<std::byte*>(start);
    mapping.bytes_ = bytes;
    return mapping;
}

Result<Descriptor> create_memory(std::size_t bytes) {
    Descriptor memory{memfd_create("hiroba", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    if (memory.fd() < 0) return failed("memfd_create", bytes, "; see ulimit -n");
    if (ftruncate(memory.fd(), static_cast<off_t>(bytes)) != 0) {
        return failed("ftruncate", bytes, "; see ulimit -f, or lower HIROBA_HEAP or HIROBA_GAS");
    }
    if (fcntl(memory.fd(), F_ADD_SEALS, seals) != 0) return failed("sealing", bytes, "");
    return memory;
}

}  // namespace hiroba::net::shm
