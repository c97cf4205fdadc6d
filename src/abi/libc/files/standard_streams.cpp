// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/files/standard_streams.hpp"

#include <atomic>

#include "abi/libc/files/whole_output.hpp"
#include "abi/libc/real.hpp"
#include "abi/world.hpp"
#include "base/bytes.hpp"
#include "base/fatal.hpp"

HIROBA_REAL(setvbuf);

// The streams themselves: the program may store others in `stdin`, `stdout` and `stderr`.
extern "C" {
extern FILE _IO_2_1_stdin_, _IO_2_1_stdout_, _IO_2_1_stderr_;
}

namespace hiroba::abi {
namespace {

constinit StandardOwners before_regions;  ///< on node 0, until there is room in global memory
constinit StandardOwners* owners = &before_regions;
constinit std::atomic<std::uint32_t> followed[standard_descriptors] = {};  ///< versions

FILE* const streams[standard_descriptors] = {&_IO_2_1_stdin_, &_IO_2_1_stdout_, &_IO_2_1_stderr_};

int set_buffering(int number, int mode, std::size_t bytes) noexcept {
    if (number == 1) return set_output_buffering(mode, bytes);
    return real_setvbuf(streams[number], nullptr, mode, bytes);
}

}  // namespace

StandardOwners* publish_standard_owners() noexcept {
    if (owners != &before_regions) return owners;
    // A page of its own: what lies beside it would make it stale.
    bool zeroed = false;
    void* const room = world()->heap->allocate(page_bytes, page_bytes, &zeroed);
    if (room == nullptr) {
        die(exit_environment, "no room for %lu bytes of standard streams' owners: set HIROBA_HEAP",
            page_bytes);
    }
    owners = new (room) StandardOwners{before_regions};
    return owners;
}

void adopt_standard_owners(StandardOwners* published) noexcept { owners = published; }

std::optional<NodeId> standard_owner(long fd) noexcept {
    const std::uint32_t owner_and_one = owners->owner_and_one[fd];
    if (owner_and_one == 0) return std::nullopt;
    return NodeId{owner_and_one - 1};
}

void standard_descriptor_changed(long fd, NodeId owner) noexcept {
    if (is_standard(fd)) owners->owner_and_one[fd] = owner.value + 1;
}

int standard_number(const FILE* stream) noexcept {
    if (stream == &_IO_2_1_stdout_) return 1;
    if (stream == &_IO_2_1_stderr_) return 2;
    return stream == &_IO_2_1_stdin_ ? 0 : -1;
}

FILE* standard_output() noexcept { return &_IO_2_1_stdout_; }

int buffer_standard_stream(int number, int mode, std::size_t bytes) noexcept {
    const int result = set_buffering(number, mode, bytes);
    if (result != 0) return result;
    const std::uint32_t version = owners->buffering[number].version + 1;
    owners->buffering[number] = {version, mode, bytes};
    followed[number].store(version, std::memory_order_relaxed);
    return 0;
}

void follow_buffering(int number) noexcept {
    const Buffering& wanted = owners->buffering[number];
    const std::uint32_t version = wanted.version;
    // Relaxed: the program's own synchronization has brought what is wanted.
    if (version == followed[number].load(std::memory_order_relaxed)) return;
    if (followed[number].exchange(version) != version)
        set_buffering(number, wanted.mode, wanted.bytes);
}

}  // namespace hiroba::abi
