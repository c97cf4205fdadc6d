// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/memory/generated_code.hpp"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <vector>

#include "abi/libc/process/process_state.hpp"
#include "abi/world.hpp"
#include "base/bytes.hpp"
#include "base/fatal.hpp"
#include "base/latch.hpp"
#include "base/thread_context.hpp"
#include "dsm/memory/fault_attached.hpp"

namespace hiroba::abi {

struct CodeList {
    std::uint64_t count = 0;
    std::uint64_t room = 0;
    dsm::AddressRange ranges[];
};

namespace {

constinit Latch latch;                    ///< guards the list
constinit CodeList* published = nullptr;  ///< node 0's

std::vector<dsm::AddressRange>& list() noexcept {
    static auto* const made = new std::vector<dsm::AddressRange>;
    return *made;
}

/// The whole blocks around the range: the engine knows no smaller part.
dsm::AddressRange blocks_around(dsm::AddressRange range) noexcept {
    const std::size_t block_bytes = world()->map->shape().block_bytes;
    const std::uintptr_t begin = round_down(range.address, block_bytes);
    return {begin, round_up(range.end(), block_bytes) - begin};
}

/// By block: a part in the middle may be none yet.
bool is_code(dsm::AddressRange blocks) noexcept {
    for (std::uintptr_t at = blocks.address; at < blocks.end();
         at += world()->map->shape().block_bytes)
        if (!dsm::is_executable(at)) return false;
    return true;
}

}  // namespace

void allow_code(dsm::AddressRange range) noexcept {
    const dsm::AddressRange blocks = blocks_around(range);
    if (is_code(blocks)) return;
    world()->memory->allow_execution(blocks);
    {
        const RuntimeScope here;
        const std::scoped_lock guard{latch};
        list().push_back(blocks);
    }
    if (world()->job.self.value == 0) process_state_changed("mprotect() of code");
}

const CodeList* publish_code() noexcept {
    const RuntimeScope here;
    const std::scoped_lock guard{latch};
    const std::uint64_t count = list().size();
    if (count == 0) return nullptr;
    if (published == nullptr || published->room < count) {
        const std::uint64_t room = std::max<std::uint64_t>(64, 2 * count);
        const std::size_t bytes = sizeof(CodeList) + room * sizeof(dsm::AddressRange);
        bool zeroed = false;
        void* const block = world()->heap->allocate(bytes, 64, &zeroed);
        if (block == nullptr)
            die(exit_environment, "no room for %lu bytes about code: set HIROBA_HEAP", bytes);
        published = static_cast<CodeList*>(block);
        published->room = room;
    }
    published->count = count;
    std::ranges::copy(list(), published->ranges);
    return published;
}

void adopt_code(const CodeList* list) noexcept {
    for (std::uint64_t i = 0; list != nullptr && i < list->count; ++i)
        if (!is_code(list->ranges[i])) world()->memory->allow_execution(list->ranges[i]);
}

}  // namespace hiroba::abi
