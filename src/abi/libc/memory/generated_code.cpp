// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/memory/generated_code.hpp"

#include <cstdint>
#include <mutex>

#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/memory/protections.hpp"
#include "abi/libc/memory/range_log.hpp"
#include "abi/world.hpp"
#include "base/bytes.hpp"
#include "base/latch.hpp"
#include "base/settings.hpp"
#include "base/thread_context.hpp"
#include "dsm/memory/fault_attached.hpp"
#include "dsm/memory/fault_handler.hpp"
#include "omp/atomic/generated_atomics.hpp"

namespace hiroba::abi {
namespace {

constinit Latch latch;  ///< guards this node's log

/// Behind what else lies in the page.
RangeLog& log_of(NodeId node) noexcept {
    return *reinterpret_cast<RangeLog*>(page_of_node(node) + page_bytes / 8 * 5);
}

/// The whole blocks around the range: the engine knows no smaller part.
dsm::AddressRange blocks_around(dsm::AddressRange range) noexcept {
    const std::size_t block_bytes = world()->map->shape().block_bytes;
    const std::uintptr_t begin = round_down(range.address, block_bytes);
    return {begin, round_up(range.end(), block_bytes) - begin};
}

/// By block: a part in the middle may be none yet. The handler's table may be full, the log not.
bool is_code(dsm::AddressRange blocks, const RangeLog& log) noexcept {
    for (std::uintptr_t at = blocks.address; at < blocks.end();
         at += world()->map->shape().block_bytes)
        if (!dsm::is_executable(at) && log.find(at).bytes == 0) return false;
    return true;
}

void allow_here(dsm::AddressRange blocks) noexcept {
    world()->memory->allow_execution(blocks);
    forbid_again(blocks);
}

/// What some node has made code around the address; empty: none has. This node's own is asked for
/// where the handler's table was full.
dsm::AddressRange code_of_job(std::uintptr_t address) noexcept {
    for (std::uint32_t node = 0; node < world()->job.nodes; ++node) {
        const dsm::AddressRange code = log_of(NodeId{node}).find(address);
        if (code.bytes > 0) return code;
    }
    return {};
}

/// In the faulting thread, on its alternate stack.
bool find_code(std::uintptr_t address) noexcept {
    const dsm::AddressRange code = code_of_job(address);
    if (code.bytes > 0) allow_here(code);
    return code.bytes > 0;
}

/// In the thread at a mark, on its alternate stack.
bool is_generated(std::uintptr_t address) noexcept {
    return dsm::is_executable(address) || code_of_job(address).bytes > 0;
}

}  // namespace

void allow_code(dsm::AddressRange range) noexcept {
    const dsm::AddressRange blocks = blocks_around(range);
    const RuntimeScope here;
    const std::scoped_lock guard{latch};
    RangeLog& log = log_of(world()->job.self);
    if (is_code(blocks, log)) return;
    allow_here(blocks);
    log.append(blocks);
}

void mark_atomics_in(dsm::AddressRange code) noexcept {
    const RuntimeScope here;
    omp::mark_generated_atomics(code);
}

Result<void> find_code_of_others() {
    dsm::find_code_by(&find_code);
    return omp::carry_out_generated_atomics(*world()->memory,
                                            setting("HIROBA_ATOMICS") == "seq_cst", &is_generated);
}

}  // namespace hiroba::abi
