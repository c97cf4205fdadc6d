// SPDX-License-Identifier: BSD-3-Clause
// Role: see ucx_memory.hpp.
#include "net/provider/ucx/ucx_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/fatal.hpp"
#include "net/provider/ucx/make_ucx_provider.hpp"

namespace hiroba::net::ucx {
namespace {

std::size_t count_of_chunks(std::size_t bytes, std::size_t chunk_bytes) {
    return chunk_bytes == 0 ? 0 : (bytes + chunk_bytes - 1) / chunk_bytes;
}

}  // namespace

bool has_pinning_devices() noexcept {
    std::error_code none;
    return std::filesystem::directory_iterator("/sys/class/infiniband", none) !=
           std::filesystem::directory_iterator();
}

// --- own memory ----------------------------------------------------------------------------------

void OwnMemory::give_up(ucp_context_h context) noexcept {
    for (const Region& region : regions_) {
        for (const ucp_mem_h chunk : region.chunks)
            if (chunk != nullptr) ucp_.mem_unmap(context, chunk);
        if (region.own) munmap(region.start, round_up(region.bytes, page_bytes));
    }
    regions_.clear();
}

bool OwnMemory::add(std::byte* start, std::size_t bytes, bool by_chunks) {
    Region region{start, bytes, start == nullptr, {}};
    if (region.own) {
        void* const made = mmap(
            nullptr, round_up(std::max<std::size_t>(bytes, 1), page_bytes), PROT_READ | PROT_WRITE,
            // Shared, where it is pinned: a fork of the program leaves this node, and with it
            // the device, the pages.
            (by_chunks ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (made == MAP_FAILED) return false;
        madvise(made, bytes, MADV_DONTDUMP);
        region.start = static_cast<std::byte*>(made);
    }
    region.chunks.resize(
        count_of_chunks(bytes, by_chunks ? pinned_chunk_bytes : std::max<std::size_t>(bytes, 1)));
    regions_.push_back(std::move(region));
    by_chunks_.push_back(by_chunks);
    return true;
}

ucs_status_t OwnMemory::pack_key(ucp_context_h context, std::uint32_t region, std::uint32_t chunk,
                                 std::vector<std::byte>& key) noexcept {
    Region& of = regions_[region];
    ucp_mem_h& memory = of.chunks[chunk];
    if (memory == nullptr) {
        const std::size_t whole = round_up(of.bytes, page_bytes);
        const std::size_t from = by_chunks_[region] ? chunk * pinned_chunk_bytes : 0;
        ucp_mem_map_params_t params{};
        params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                            UCP_MEM_MAP_PARAM_FIELD_FLAGS;
        params.address = of.start + from;
        params.length = by_chunks_[region] ? std::min(pinned_chunk_bytes, whole - from) : whole;
        params.flags = UCP_MEM_MAP_NONBLOCK;
        const ucs_status_t status = ucp_.mem_map(context, &params, &memory);
        if (status != UCS_OK) {
            memory = nullptr;
            return status;
        }
    }
    void* packed = nullptr;
    std::size_t bytes = 0;
    const ucs_status_t status = ucp_.rkey_pack(context, memory, &packed, &bytes);
    if (status != UCS_OK) return status;
    const auto* const first = static_cast<const std::byte*>(packed);
    key.assign(first, first + bytes);
    ucp_.rkey_buffer_release(packed);
    return UCS_OK;
}

// --- keys ----------------------------------------------------------------------------------------

void PeerKeys::add(std::uint64_t start, std::size_t bytes, std::span<const std::byte> key) {
    const std::size_t chunk_bytes = key.empty() ? pinned_chunk_bytes : bytes;
    regions_.push_back({start, bytes, chunk_bytes, key, {}});
}

std::pair<std::uint32_t, std::size_t> PeerKeys::chunk_at(std::uint32_t region,
                                                         std::uint64_t offset) const noexcept {
    const Region& of = regions_[region];
    // Nothing is at the end of a region.
    const std::uint64_t chunk = std::min(offset, of.bytes - 1) / of.chunk_bytes;
    const std::uint64_t end = std::min<std::uint64_t>((chunk + 1) * of.chunk_bytes, of.bytes);
    return {static_cast<std::uint32_t>(chunk), end - offset};
}

ucp_rkey_h PeerKeys::look(const UcpLibrary& ucp, ucp_ep_h endpoint, std::uint32_t region,
                          std::uint32_t chunk, bool& has_to_ask) noexcept {
    Region& of = regions_[region];
    if (of.chunks.empty()) [[unlikely]]
        of.chunks.resize(count_of_chunks(of.bytes, of.chunk_bytes));
    Chunk& found = of.chunks[chunk];
    if (found.state == State::known) [[likely]]
        return found.key;
    if (!of.packed.empty()) {
        found.state = State::asked;
        tell(ucp, endpoint, region, chunk, of.packed);
        return found.key;
    }
    has_to_ask = found.state == State::unknown;
    found.state = State::asked;
    return nullptr;
}

bool PeerKeys::tell(const UcpLibrary& ucp, ucp_ep_h endpoint, std::uint32_t region,
                    std::uint32_t chunk, std::span<const std::byte> key) noexcept {
    if (region >= regions_.size() || chunk >= regions_[region].chunks.size()) return false;
    Chunk& to = regions_[region].chunks[chunk];
    if (to.state != State::asked) return false;
    const ucs_status_t status = ucp.ep_rkey_unpack(endpoint, key.data(), &to.key);
    HIROBA_INVARIANT(status == UCS_OK, "ucp_ep_rkey_unpack of region %u, chunk %u: %s", region,
                     chunk, ucp.status_string(status));
    to.state = State::known;
    return true;
}

void PeerKeys::forget(const UcpLibrary& ucp) noexcept {
    for (Region& region : regions_) {
        for (Chunk& chunk : region.chunks)
            if (chunk.key != nullptr) ucp.rkey_destroy(chunk.key);
        region.chunks.clear();
    }
}

}  // namespace hiroba::net::ucx
