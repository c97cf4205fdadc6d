// SPDX-License-Identifier: BSD-3-Clause
// Role: the kernel's protections, this node's table of them, and what travels.
// Invariant: an access that the table forbids reaches no FaultTarget: it is a SIGSEGV of the
// program's. The lock is held for private memory alone, so that the fault handler may take it.
#include "abi/libc/memory/protections.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <span>
#include <string_view>

#include "abi/libc/memory/generated_code.hpp"
#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/memory/protection_table.hpp"
#include "abi/libc/memory/range_log.hpp"
#include "abi/libc/process/process_state.hpp"
#include "abi/world.hpp"
#include "base/fatal.hpp"
#include "base/latch.hpp"
#include "base/thread_context.hpp"
#include "dsm/memory/fault_attached.hpp"
#include "dsm/memory/fault_handler.hpp"
#include "dsm/memory/kernel_calls.hpp"

namespace hiroba::abi {

struct ProtectionList {
    std::uint64_t count = 0;
    std::uint64_t room = 0;
    ProtectedRange ranges[];
};

struct AllowedMeanwhile::Before {
    std::vector<ProtectedRange> ranges;
};

namespace {

constexpr int all = ProtectionTable::all;
constexpr dsm::AddressRange everything{0, UINTPTR_MAX};

constinit Latch table_latch;  ///< guards both tables
constinit Latch log_latch;
constinit std::atomic<std::size_t> forbidden{0};  ///< ranges in the table
constinit std::atomic<bool> ever_forbidden{false};
constinit ProtectionList* published = nullptr;  ///< node 0's

/// What the node has allowed in regions; node 0 empties it between them. Behind what else lies in
/// the page.
RangeLog& log_of(NodeId node) noexcept {
    return *reinterpret_cast<RangeLog*>(page_of_node(node) + page_bytes / 2);
}

ProtectionTable& table() noexcept {
    static auto* const made = new ProtectionTable;
    return *made;
}

/// What of it this node has forbidden in its own arena, in regions: node 0 does not know.
ProtectionTable& local_table() noexcept {
    static auto* const made = new ProtectionTable;
    return *made;
}

/// Whether the range is in `ranges`, in ascending order at first, just so.
bool contains(const std::vector<ProtectedRange>& ranges, const ProtectedRange& wanted) noexcept {
    return std::ranges::any_of(ranges, [&](const ProtectedRange& each) {
        return each.range.address == wanted.range.address &&
               each.range.bytes == wanted.range.bytes && each.protection == wanted.protection;
    });
}

bool is_worker() noexcept { return world()->job.self.value != 0; }

/// Holds the table; signals of the program wait, whose handlers might fault.
class TableLock {
public:
    TableLock() noexcept { table_latch.lock(); }
    ~TableLock() {
        // Relaxed: a thread that has not heard of a page that is forbidden just now may be early.
        forbidden.store(table().size(), std::memory_order_relaxed);
        table_latch.unlock();
    }
    TableLock(const TableLock&) = delete;
    TableLock& operator=(const TableLock&) = delete;

private:
    RuntimeScope here_;
};

int apply(dsm::AddressRange range, int protection) noexcept {
    // What was forbidden and is code comes back as such: a range may be both in parts.
    const bool is_code = protection == all && dsm::is_executable(range.address);
    const long result = dsm::kernel_call(SYS_mprotect, range.address, range.bytes,
                                         long{protection & all} | (is_code ? long{PROT_EXEC} : 0));
    return dsm::kernel_failed(result) ? static_cast<int>(-result) : 0;
}

int set_here(dsm::AddressRange range, int protection) noexcept {
    const TableLock lock;
    if ((protection & all) == all && table().in(range).empty()) return 0;
    const int error = apply(range, protection);
    if (error == 0) table().set(range, protection);
    return error;
}

/// Other nodes find it there when they meet the page.
void write_down_allowed(dsm::AddressRange range) noexcept {
    const RuntimeScope here;
    const std::scoped_lock guard{log_latch};
    log_of(world()->job.self).append(range);
}

/// What some node has allowed around the page since node 0's list was made; empty: nothing.
dsm::AddressRange allowed_elsewhere(std::uintptr_t address) noexcept {
    for (std::uint32_t node = 0; node < world()->job.nodes; ++node) {
        if (node == world()->job.self.value) continue;  // the table knows
        const dsm::AddressRange found = log_of(NodeId{node}).find(address);
        if (found.bytes > 0) return found;
    }
    return {};
}

bool forbids(std::uintptr_t address, bool write) noexcept {
    const std::scoped_lock guard{table_latch};
    return table().forbids(address, write);
}

/// In the faulting thread, on its alternate stack.
bool is_forbidden(std::uintptr_t address, bool write) noexcept {
    if (forbidden.load(std::memory_order_relaxed) == 0) return false;
    if (!forbids(address, write)) return false;
    const dsm::AddressRange allowed = allowed_elsewhere(address);
    if (allowed.bytes == 0) return true;
    set_here(allowed, all);
    return false;
}

void forbid_from_now_on() noexcept {
    dsm::forbid_accesses(&is_forbidden);
    ever_forbidden.store(true, std::memory_order_relaxed);
}

ProtectionList* make_list(std::size_t room) noexcept {
    const std::size_t bytes = sizeof(ProtectionList) + room * sizeof(ProtectedRange);
    bool zeroed = false;
    void* const block = world()->heap->allocate(bytes, 64, &zeroed);
    if (block == nullptr)
        die(exit_environment, "no room for %lu bytes about protections: set HIROBA_HEAP", bytes);
    auto* const list = static_cast<ProtectionList*>(block);
    list->room = room;
    return list;
}

/// What the nodes have allowed in the regions before.
void take_in_logs() noexcept {
    for (std::uint32_t node = 0; node < world()->job.nodes; ++node) {
        RangeLog& log = log_of(NodeId{node});
        for (std::uint64_t i = 0; i < log.count; ++i) set_here(log.ranges[i], all);
        if (log.count > 0) log.count = 0;
    }
}

}  // namespace

int set_protection(dsm::AddressRange range, int protection) noexcept {
    // Code may be written, too, as long as it may be executed: its protection is the engine's.
    if ((protection & PROT_EXEC) != 0) {
        allow_code(range);
        protection = all;
    }
    static const bool carried_out = std::string_view{world()->memory->engine().name} == "uffd";
    if (!carried_out) return 0;
    if ((protection & PROT_WRITE) != 0) protection = all;  // the processor reads what it may write
    const bool allows = (protection & all) == all;
    // Relaxed: who was told of a forbidden page comes after the store.
    if (allows && !ever_forbidden.load(std::memory_order_relaxed)) return 0;
    if (!allows) forbid_from_now_on();
    const bool in_region = is_worker() || world()->omp->place().team_size > 1;
    // What was allowed in regions came before this.
    if (!in_region) take_in_logs();
    const int error = set_here(range, protection);
    if (error != 0) return error;
    const bool own = world()->map->heap_arena(world()->job.self).contains(range.address);
    // A worker is told that it stays here; a block of its own nobody else has heard of.
    if (!is_worker() || (!allows && !own)) process_state_changed("mprotect()");
    if (is_worker() && own) {
        const TableLock lock;
        local_table().set(range, protection);
    }
    if (allows && in_region) write_down_allowed(range);
    return 0;
}

void allow_all(dsm::AddressRange range) noexcept {
    if (ever_forbidden.load(std::memory_order_relaxed)) set_protection(range, all);
}

AllowedMeanwhile::AllowedMeanwhile(dsm::AddressRange range) noexcept {
    if (forbidden.load(std::memory_order_relaxed) == 0) return;
    const TableLock lock;
    auto ranges = table().in(range);
    if (ranges.empty()) return;
    before_ = new Before{std::move(ranges)};
    for (const ProtectedRange& each : before_->ranges) {
        apply(each.range, all);
        table().set(each.range, all);
    }
}

AllowedMeanwhile::~AllowedMeanwhile() {
    if (before_ == nullptr) return;
    for (const ProtectedRange& each : before_->ranges) set_here(each.range, each.protection);
    delete before_;
}

const ProtectionList* publish_protections() noexcept {
    if (!ever_forbidden.load(std::memory_order_relaxed)) return nullptr;
    take_in_logs();
    std::vector<ProtectedRange> ranges;
    {
        const TableLock lock;
        ranges = table().in(everything);
    }
    if (published == nullptr || published->room < ranges.size())
        published = make_list(std::max<std::size_t>(64, 2 * ranges.size()));
    published->count = ranges.size();
    std::ranges::copy(ranges, published->ranges);
    return published;
}

void forbid_again(dsm::AddressRange range) noexcept {
    if (forbidden.load(std::memory_order_relaxed) == 0) return;
    const TableLock lock;
    for (const ProtectedRange& each : table().in(range)) apply(each.range, each.protection);
}

// What stays as it was is not touched: a program may have thousands of guards.
void adopt_protections(const ProtectionList* list) noexcept {
    if (list == nullptr) return;
    forbid_from_now_on();
    std::vector<ProtectedRange> wanted(list->ranges, list->ranges + list->count);
    const TableLock lock;
    std::ranges::copy(local_table().in(everything), std::back_inserter(wanted));
    const std::vector<ProtectedRange> before = table().in(everything);
    for (const ProtectedRange& each : before) {
        if (contains(wanted, each)) continue;
        apply(each.range, all);
        table().set(each.range, all);
    }
    for (const ProtectedRange& each : wanted) {
        if (contains(before, each)) continue;
        if (const int error = apply(each.range, each.protection); error != 0)
            die(exit_environment, "mprotect of %lu bytes at 0x%lx, as on node 0, failed: error %d",
                each.range.bytes, each.range.address, error);
        table().set(each.range, each.protection);
    }
}

}  // namespace hiroba::abi
