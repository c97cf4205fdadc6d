// SPDX-License-Identifier: BSD-3-Clause
// Role: one rank's relocatable space: puts its parts together over an endpoint, allocates, and
// refuses bad input. Read page_word.hpp, metadata_cache.hpp, relocator.hpp, then accessor.hpp.
// Invariant: make it before Endpoint::connect(), the same on every node; attach() after it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "base/latch.hpp"
#include "base/result.hpp"
#include "gas/relocatable/accessor.hpp"
#include "gas/relocatable/directory_station.hpp"
#include "gas/relocatable/matched_calls.hpp"
#include "gas/relocatable/page_numbers.hpp"
#include "gas/relocatable/relocator.hpp"
#include "hiroba/gas.hpp"
#include "net/async.hpp"
#include "net/collectives.hpp"

namespace hiroba::gas {

struct SpaceOptions {
    std::uint64_t page_bytes = 4096;            ///< a power of two, 4 KiB to 2 MiB
    std::uint64_t arena_bytes = 1ull << 30;     ///< of each node's own, and of the collective one
    std::uint64_t spare_bytes_max = 256 << 20;  ///< memory kept of pages that have left
    bool one_sided = false;                     ///< how directories are asked
    bool hits = true;                           ///< threads take slots; false: every access is slow

    /// As HIROBA_GAS* say. A usage error names the setting.
    static Result<SpaceOptions> of_settings(const net::Limits& limits);
};

class RelocatableSpace : public space {
public:
    static Result<std::unique_ptr<RelocatableSpace>> make(net::Async& async,
                                                          net::Collectives& collectives,
                                                          const SpaceOptions& options);
    ~RelocatableSpace() override;
    /// Has `leave` called before anything of the space is taken down, and destroyed after all of
    /// it.
    void on_leave(std::function<void()> leave) { leave_ = std::move(leave); }
    /// After Async::attach() and Collectives::attach(). Collective: returns when all have.
    void attach();
    /// Node `dead` is lost: what waits for it ends with Fault::peer_lost. Any thread but a
    /// handler's.
    void lose(NodeId dead);

    void barrier() noexcept override { calls_.barrier(); }
    /// Collective: the last of the calls.
    void leave_together() noexcept;
    std::uint64_t broadcast(std::uint64_t value, std::uint32_t from) noexcept override;
    std::uint32_t owner_hint(std::uint64_t address) const noexcept override;
    void forget(std::uint64_t first, std::uint64_t bytes) noexcept override;
    Counts counts() const noexcept override;

    const SpaceShape& shape() const noexcept { return shape_; }
    std::uint32_t directory_of(std::uint64_t address) const noexcept {
        return shape_.directory_of(address >> shape_.page_shift).value;
    }
    MetadataCache& cache() noexcept { return *cache_; }

protected:
    std::uint64_t make(std::uint64_t count, std::uint64_t element_bytes, const Distribution& where,
                       bool together, Status* why) override;
    Status release(std::uint64_t first) override;
    Status get_slowly(std::uint64_t from, std::byte* to, std::size_t bytes) noexcept override;
    Status put_slowly(std::uint64_t to, const std::byte* from, std::size_t bytes) noexcept override;
    Status start(std::uint64_t at, void* local, std::size_t bytes, bool is_put,
                 Pending& pending) noexcept override;
    Status wait_slowly(Pending& pending) noexcept override { return accessor_.wait(pending); }
    Status list(const std::uint64_t* places, std::size_t count, std::size_t bytes, void* local,
                bool is_put) noexcept override;
    Status strided(std::uint64_t at, std::int64_t stride, std::size_t bytes, std::size_t count,
                   void* local, bool is_put) noexcept override;
    Status atomic_slowly(Operation operation, std::uint64_t at, std::uint32_t bytes,
                         std::uint64_t operand, std::uint64_t expected,
                         std::uint64_t& old) noexcept override;
    Status own_bytes(std::uint64_t first, std::uint64_t bytes) noexcept override;
    Status prefetch_bytes(std::uint64_t first, std::uint64_t bytes) noexcept override;
    std::byte* pin(std::uint64_t first, std::uint64_t bytes) noexcept override;
    void unpin(std::uint64_t first, std::uint64_t bytes) noexcept override {
        accessor_.unpin(first, bytes);
    }

private:
    RelocatableSpace(net::Async& async, net::Collectives& collectives, const SpaceShape& shape,
                     const SpaceOptions& options, std::unique_ptr<DeadNodes> dead,
                     std::unique_ptr<MetadataCache> cache, net::Handle frames, net::Handle words,
                     net::Handle everything);
    static void receive(void* self, NodeId from, SpaceMessageKind kind, std::uint64_t token,
                        SpaceMessages::Words words) noexcept;
    void take_slot() noexcept;
    bool learn(std::uint64_t at, std::uint64_t bytes) noexcept;
    Status check_range(std::uint64_t at, std::uint64_t bytes) noexcept;
    Status check_known(std::uint64_t at, std::uint64_t bytes) noexcept;
    bool run_of_hits(std::uint64_t at, std::byte* local, std::size_t bytes, bool is_put,
                     std::size_t& done) noexcept;
    template <class PlaceOf>
    Status scattered(PlaceOf&& place_of, std::size_t count, std::size_t bytes, void* local,
                     bool is_put) noexcept;
    Status transfer(std::uint64_t at, std::byte* local, std::size_t bytes, bool is_put) noexcept;
    Status move(std::uint64_t first, std::uint64_t last, Relocator::Goal goal) noexcept;
    void publish(const PublishedRun& run);
    Status no_room(std::uint64_t count, std::uint64_t element_bytes) const noexcept;
    Status may_free(const PageRun& run, bool together) noexcept;
    PageNumbers& numbers(bool together) noexcept { return together ? together_ : own_; }

    std::function<void()> leave_;  ///< first, so that it goes last
    net::Async& async_;
    net::Collectives& collectives_;
    SpaceShape shape_;
    SpaceOptions options_;
    net::Handle frames_, words_;
    std::unique_ptr<DeadNodes> dead_owner_;
    DeadNodes& dead_;
    std::unique_ptr<MetadataCache> cache_;
    SpaceMessages messages_;
    MatchedCalls calls_;
    DirectoryStation station_;
    Relocator relocator_;
    Accessor accessor_;
    std::unique_ptr<Directory> directory_;
    Latch numbers_latch_;
    PageNumbers together_, own_;
    SharedRankSet published_;  ///< have noted the allocation under way
    Latch publishing_;
    Counts before_{};  ///< of this process's threads when the space was made
};

}  // namespace hiroba::gas
