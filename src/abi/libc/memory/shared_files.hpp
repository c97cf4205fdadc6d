// SPDX-License-Identifier: BSD-3-Clause
// Role: files that the program maps shared, where all nodes run on one host: each node maps the
// file itself, at one address, so that the kernel keeps all views of it equal: other mappings,
// read() and write(), other processes, a file that grows.
// Invariant: these addresses are no global memory. Those that are chosen here are never used again:
// each node has a part of one range below global memory. A fixed one lies there, or in address
// space that the program had reserved and never used, which is left out of global memory for good.
// What node 0 maps between regions the others map before the next; what is mapped in a region they
// map when they touch it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "abi/libc/memory/memory_of_others.hpp"
#include "base/ids.hpp"
#include "dsm/memory/address_map.hpp"

namespace hiroba::abi {

/// Where the processes of all nodes are, by rank. Once, before the program runs.
void learn_process_places(std::span<const ProcessPlace> places) noexcept;

/// The process of a node; none: nodes run on several hosts.
std::optional<std::int64_t> process_of(NodeId node) noexcept;

struct FileView {
    void* address;  ///< where it is to lie; null: anywhere
    std::size_t bytes;
    int protection;
    int flags;
    int fd;
    off_t offset;
};
/// As mmap() of a file with MAP_SHARED; the result is MAP_FAILED and errno where it fails. None:
/// this is nothing that all nodes can map.
std::optional<void*> map_file_shared(const FileView& view) noexcept;

/// Whether such a view may lie, or have lain, at `address`.
bool is_file_view(const void* address) noexcept;
/// As munmap() and mremap() there.
int unmap_file_view(void* address, std::size_t bytes) noexcept;
void* remap_file_view(void* address, std::size_t before, std::size_t after, int flags) noexcept;

/// Node 0: a number that tells whether other nodes have to look at its views again.
std::uint64_t version_of_file_views() noexcept;
/// Other nodes: maps and unmaps as node 0 has.
void adopt_file_views(std::uint64_t version) noexcept;

}  // namespace hiroba::abi
