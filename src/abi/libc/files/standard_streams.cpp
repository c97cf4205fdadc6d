// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/files/standard_streams.hpp"

#include "abi/world.hpp"
#include "base/bytes.hpp"
#include "base/fatal.hpp"

// The streams themselves: the program may store others in `stdin`, `stdout` and `stderr`.
extern "C" {
extern FILE _IO_2_1_stdin_, _IO_2_1_stdout_, _IO_2_1_stderr_;
}

namespace hiroba::abi {
namespace {

constinit StandardOwners before_regions;  ///< on node 0, until there is room in global memory
constinit StandardOwners* owners = &before_regions;

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

}  // namespace hiroba::abi
