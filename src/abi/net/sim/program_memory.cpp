// SPDX-License-Identifier: BSD-3-Clause
// Role: see program_memory.hpp.
#include "abi/net/sim/program_memory.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/bytes.hpp"
#include "base/fatal.hpp"

namespace hiroba::abi::sim {
namespace {

constexpr std::size_t round_down(std::uintptr_t value) { return value / page_bytes * page_bytes; }

/// Faulting a few pages in at once is cheaper than a fault for each.
constexpr std::size_t populate_max = 16 * page_bytes;

/// The loader's record of the program's own file, which comes first.
dl_phdr_info program_file() {
    dl_phdr_info found{};
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* to) {
            *static_cast<dl_phdr_info*>(to) = *info;
            return 1;
        },
        &found);
    return found;
}

[[noreturn]] void no_room(const char* what, std::size_t bytes) {
    die(exit_environment,
        "%s of %lu bytes for the variables of all simulated nodes: errno %d; see ulimit -v", what,
        bytes, errno);
}

}  // namespace

ProgramMemory::ProgramMemory(std::uint32_t nodes) {
    find_segments();
    copy_segments(nodes);
    using Globals = void* (*)();
    if (auto* const globals = reinterpret_cast<Globals>(dlsym(RTLD_DEFAULT, "__cxa_get_globals")))
        exceptions_ = static_cast<std::byte*>(globals());
}

void ProgramMemory::find_segments() {
    const dl_phdr_info file = program_file();
    const std::span headers(file.dlpi_phdr, file.dlpi_phnum);
    std::uintptr_t constant_begin = 0, constant_end = 0;  // after relocation
    for (const auto& header : headers) {
        if (header.p_type == PT_GNU_RELRO) {
            constant_begin = file.dlpi_addr + header.p_vaddr;
            constant_end = round_down(constant_begin + header.p_memsz);
        }
        if (header.p_type == PT_TLS && file.dlpi_tls_data != nullptr) {
            locals_ = {static_cast<std::byte*>(file.dlpi_tls_data), header.p_memsz};
            locals_begin_ = {reinterpret_cast<const std::byte*>(file.dlpi_addr + header.p_vaddr),
                             header.p_filesz};
        }
    }
    for (const auto& header : headers) {
        if (header.p_type != PT_LOAD || (header.p_flags & PF_W) == 0) continue;
        std::uintptr_t begin = round_down(file.dlpi_addr + header.p_vaddr);
        const std::uintptr_t end =
            round_up(file.dlpi_addr + header.p_vaddr + header.p_memsz, page_bytes);
        if (begin <= constant_begin && constant_begin < end) begin = std::max(begin, constant_end);
        if (begin >= end) continue;
        segments_.push_back({reinterpret_cast<std::byte*>(begin), end - begin, node_bytes_});
        node_bytes_ += end - begin;
    }
}

void ProgramMemory::copy_segments(std::uint32_t nodes) {
    if (node_bytes_ == 0) return;
    const std::size_t all_bytes = node_bytes_ * nodes;
    file_ = memfd_create("hiroba-simulated-nodes", MFD_CLOEXEC);
    if (file_ < 0 || ftruncate(file_, static_cast<off_t>(all_bytes)) != 0)
        no_room("memory file", all_bytes);
    void* const all = mmap(nullptr, all_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (all == MAP_FAILED) no_room("mapping", all_bytes);
    all_ = static_cast<std::byte*>(all);
    static constexpr std::byte zeros[page_bytes] = {};
    for (const Segment& segment : segments_) {
        for (std::size_t at = 0; at < segment.bytes; at += page_bytes) {
            // A page of zeros stays a hole of the file.
            if (std::memcmp(segment.begin + at, zeros, page_bytes) == 0) continue;
            for (std::uint32_t node = 0; node < nodes; ++node)
                std::memcpy(all_ + node * node_bytes_ + segment.offset + at, segment.begin + at,
                            page_bytes);
        }
    }
}

ProgramMemory::ThreadPart& ProgramMemory::part_of(std::uint32_t thread) {
    if (threads_.size() <= thread) threads_.resize(thread + 1);
    return threads_[thread];
}

void ProgramMemory::enter(NodeId node, std::uint32_t thread) noexcept {
    if (mapped_ != node.value) {
        for (const Segment& segment : segments_) {
            const int populate = segment.bytes <= populate_max ? MAP_POPULATE : 0;
            const std::size_t offset = node.value * node_bytes_ + segment.offset;
            if (mmap(segment.begin, segment.bytes, PROT_READ | PROT_WRITE,
                     MAP_FIXED | MAP_SHARED | populate, file_,
                     static_cast<off_t>(offset)) == MAP_FAILED)
                no_room("mapping", segment.bytes);
        }
        mapped_ = node.value;
    }
    const ThreadPart& part = part_of(thread);
    if (!part.locals.empty()) {
        std::copy(part.locals.begin(), part.locals.end(), locals_.begin());
    } else if (!locals_.empty()) {
        const auto rest = std::copy(locals_begin_.begin(), locals_begin_.end(), locals_.begin());
        std::fill(rest, locals_.end(), std::byte{0});
    }
    if (exceptions_ != nullptr)
        std::copy(std::begin(part.exceptions), std::end(part.exceptions), exceptions_);
    errno = part.error_number;
}

void ProgramMemory::leave(NodeId, std::uint32_t thread) noexcept {
    const int error_number = errno;
    ThreadPart& part = part_of(thread);
    part.error_number = error_number;
    part.locals.assign(locals_.begin(), locals_.end());
    if (exceptions_ != nullptr)
        std::copy(exceptions_, exceptions_ + sizeof part.exceptions, part.exceptions);
}

std::byte* ProgramMemory::lasting(NodeId node, std::byte* at) noexcept {
    for (const Segment& segment : segments_) {
        if (at < segment.begin || at >= segment.begin + segment.bytes) continue;
        return all_ + node.value * node_bytes_ + segment.offset + (at - segment.begin);
    }
    if (at >= locals_.data() && at < locals_.data() + locals_.size()) {
        die(exit_usage,
            "node %u gives a thread_local variable to a request: simulated threads share its "
            "address. Use a local or a global variable",
            node.value);
    }
    return at;
}

}  // namespace hiroba::abi::sim
