// SPDX-License-Identifier: BSD-3-Clause
// Role: the lists of views, one a node, in global memory; and what of them is mapped here.
// Invariant: a node writes its own list alone. A view in it has a descriptor that this node keeps
// open, by which the others open the file (/proc/PID/fd/N).
#include "abi/libc/memory/shared_files.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "abi/libc/calls/kernel_access.hpp"
#include "abi/libc/files/descriptors.hpp"
#include "abi/libc/files/record_locks.hpp"
#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/process/process_state.hpp"
#include "abi/world.hpp"
#include "base/bytes.hpp"
#include "base/fatal.hpp"
#include "base/latch.hpp"
#include "base/own_descriptors.hpp"
#include "base/thread_context.hpp"
#include "dsm/memory/fault_handler.hpp"
#include "dsm/memory/kernel_calls.hpp"

namespace hiroba::abi {
namespace {

using dsm::kernel_call;

/// Above the shadow of the address sanitizer, below the early mappings.
constexpr std::uintptr_t views_base = 0x1001'0000'0000;
constexpr std::size_t views_bytes = 0x10f0'0000'0000 - views_base;
/// From this size on the kernel, too, aligns so: huge pages fit.
constexpr std::size_t large_bytes = std::size_t{2} << 20;

/// One view, for all nodes. No bytes: it is gone, and its place is free.
struct ViewRecord {
    dsm::AddressRange range;
    std::uint64_t offset = 0;
    std::int64_t process = 0;
    std::int32_t fd = -1;
    std::int32_t protection = 0;
    bool can_write = false;
    bool left_out = false;  ///< of the main range
    std::uint64_t serial = 0;
};

/// A node's, at the start of its page.
struct ViewList {
    std::uint64_t count = 0;
    std::uint64_t room = 0;
    ViewRecord* views = nullptr;
};

constinit std::vector<std::int64_t>* processes = nullptr;  ///< by rank; null: several hosts
constinit Latch views_latch;                               ///< guards all below
constinit std::uintptr_t next_place = 0;
constinit std::uint64_t last_serial = 0;
constinit std::atomic<std::uint64_t> version{0};

/// Which of node 0's views this node has mapped before a region.
struct Adopted {
    std::size_t bytes;
    std::uint64_t serial;
};
std::map<std::uintptr_t, Adopted>& adopted() noexcept {
    static auto* const made = new std::map<std::uintptr_t, Adopted>;
    return *made;
}

std::uintptr_t number(const void* address) noexcept {
    return reinterpret_cast<std::uintptr_t>(address);
}
void* pointer(std::uintptr_t address) noexcept { return reinterpret_cast<void*>(address); }

void* fail(int error) noexcept {
    errno = error;
    return MAP_FAILED;
}

ViewList& list_of(NodeId node) noexcept { return *reinterpret_cast<ViewList*>(page_of_node(node)); }

std::size_t part_bytes() noexcept {
    return round_down(views_bytes / world()->job.nodes, large_bytes);
}

/// 0: the range of this node is used up.
std::uintptr_t take_place(std::size_t bytes) noexcept {
    const std::uintptr_t begin = views_base + world()->job.self.value * part_bytes();
    if (next_place == 0) next_place = begin;
    const std::uintptr_t at =
        round_up(next_place, std::uintptr_t{bytes >= large_bytes ? large_bytes : page_bytes});
    if (at > begin + part_bytes() || bytes > begin + part_bytes() - at) return 0;
    next_place = at + bytes;
    return at;
}

/// Opens what process `process` has as `fd`; negated error number.
int open_descriptor_of(std::int64_t process, int fd, bool can_write) noexcept {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%ld/fd/%d", static_cast<long>(process), fd);
    const int flags = (can_write ? O_RDWR : O_RDONLY) | O_CLOEXEC;
    return static_cast<int>(kernel_call(SYS_openat, AT_FDCWD, path, flags, 0));
}

long map_at(const ViewRecord& view, int fd, int flags) noexcept {
    return kernel_call(SYS_mmap, view.range.address, view.range.bytes, view.protection,
                       (flags & ~(MAP_FIXED_NOREPLACE | MAP_32BIT)) | MAP_FIXED, fd, view.offset);
}

/// A view of another node, here. Async-signal-safe. 0 or an error number.
int map_view_of_another(const ViewRecord& view) noexcept {
    // Its low number is the program's next one.
    const std::scoped_lock guard{descriptors_in_motion};
    const int fd = open_descriptor_of(view.process, view.fd, view.can_write);
    if (fd < 0) return -fd;
    ViewRecord here = view;
    here.protection |= view.can_write ? PROT_READ | PROT_WRITE : PROT_READ;
    const long made = map_at(here, fd, MAP_SHARED);
    close_beside_locks(fd);
    return dsm::kernel_failed(made) ? static_cast<int>(-made) : 0;
}

/// In the faulting thread: a view that was made in a region.
bool map_missing_view(std::uintptr_t address) noexcept {
    if (address - views_base >= views_bytes) return false;
    const NodeId owner{static_cast<std::uint32_t>((address - views_base) / part_bytes())};
    if (owner.value >= world()->job.nodes) return false;
    const ViewList& list = list_of(owner);
    for (std::uint64_t i = 0; i < list.count; ++i)
        if (list.views[i].range.contains(address)) return map_view_of_another(list.views[i]) == 0;
    return false;
}

/// The descriptor by which other nodes open the file: this node's own copy. Negated error number.
int keep_copy(const FileView& view, bool* can_write) noexcept {
    int copy = -1;
    if (const auto owner = foreign_owner(view.fd)) {
        const std::int64_t process = (*processes)[owner->value];
        const std::scoped_lock guard{descriptors_in_motion};
        copy = open_descriptor_of(process, view.fd, true);
        if (copy < 0) copy = open_descriptor_of(process, view.fd, false);
        if (copy < 0) return copy;
        copy = keep_descriptor(copy);
    } else {
        const std::scoped_lock guard{descriptors_in_motion};
        copy = static_cast<int>(kernel_call(SYS_fcntl, view.fd, F_DUPFD_CLOEXEC, 0));
        if (copy < 0) return copy;
        copy = keep_descriptor(copy);
    }
    const long flags = kernel_call(SYS_fcntl, copy, F_GETFL);
    *can_write = (flags & O_ACCMODE) == O_RDWR;
    return copy;
}

bool is_regular(int fd) noexcept {
    struct stat file {};
    return kernel_call(SYS_fstat, fd, &file) == 0 && S_ISREG(file.st_mode);
}

/// With the latch. Null: no room for it in global memory.
ViewRecord* free_record(ViewList& list) noexcept {
    for (std::uint64_t i = 0; i < list.count; ++i)
        if (list.views[i].range.bytes == 0) return &list.views[i];
    if (list.count == list.room) {
        const std::uint64_t room = std::max<std::uint64_t>(64, 2 * list.room);
        bool zeroed = false;
        auto* const more = static_cast<ViewRecord*>(
            world()->heap->allocate(room * sizeof(ViewRecord), 64, &zeroed));
        if (more == nullptr) return nullptr;
        std::copy(list.views, list.views + list.count, more);
        list.views = more;  // the former one stays: others may be reading it
        list.room = room;
    }
    return &list.views[list.count];
}

void tell_others() noexcept {
    if (world()->job.self.value != 0) return;
    version.fetch_add(1, std::memory_order_relaxed);
    process_state_changed("mmap()");
}

/// Takes a fixed place out of global memory; all nodes do so before the next region.
bool leave_out(dsm::AddressRange range) noexcept {
    const bool alone = world()->job.self.value == 0 && world()->omp->place().team_size <= 1;
    return alone && world()->map->leave_out(range);
}

/// With the latch: cuts the range out of this node's views.
void forget(dsm::AddressRange gone) noexcept {
    ViewList& list = list_of(world()->job.self);
    for (std::uint64_t i = 0; i < list.count; ++i) {
        ViewRecord& each = list.views[i];
        const std::uintptr_t begin = each.range.address, end = each.range.end();
        if (each.range.bytes == 0 || gone.end() <= begin || end <= gone.address) continue;
        if (gone.address > begin) {  // what lies behind is this node's alone from now on
            each.range.bytes = gone.address - begin;
        } else if (gone.end() < end) {
            each.offset += gone.end() - begin;
            each.range = {gone.end(), end - gone.end()};
        } else {
            close_kept_descriptor(each.fd);
            each.range.bytes = 0;
        }
    }
}

}  // namespace

void learn_process_places(std::span<const ProcessPlace> places) noexcept {
    const bool together = std::ranges::all_of(places, [&](const ProcessPlace& each) {
        return each.host != 0 && each.host == places[0].host;
    });
    if (!together) return;
    processes = new std::vector<std::int64_t>;
    for (const ProcessPlace& each : places) processes->push_back(each.process);
    dsm::map_missing_by(&map_missing_view);
}

std::optional<std::int64_t> process_of(NodeId node) noexcept {
    return processes != nullptr ? std::optional{(*processes)[node.value]} : std::nullopt;
}

bool is_file_view(const void* address) noexcept {
    if (number(address) - views_base < views_bytes) return true;
    const World* const node = world();
    return node != nullptr && node->map != nullptr && node->map->is_left_out({number(address), 1});
}

std::optional<void*> map_file_shared(const FileView& view) noexcept {
    if (processes == nullptr) return std::nullopt;
    const RuntimeScope here;
    const std::scoped_lock guard{views_latch};
    ViewRecord made;
    made.fd = keep_copy(view, &made.can_write);
    if (made.fd < 0 || !is_regular(made.fd)) {
        if (made.fd >= 0) close_kept_descriptor(made.fd);
        return std::nullopt;
    }
    const auto refuse = [&](int error) {
        close_kept_descriptor(made.fd);
        return fail(error);
    };
    made.range = {number(view.address), round_up(view.bytes, page_bytes)};
    made.offset = static_cast<std::uint64_t>(view.offset);
    made.protection = view.protection;
    made.process = (*processes)[world()->job.self.value];
    if (view.address == nullptr) {
        made.range.address = take_place(made.range.bytes);
        if (made.range.address == 0) return refuse(ENOMEM);
    } else if (!is_file_view(view.address) && !leave_out(made.range)) {
        close_kept_descriptor(made.fd);
        return std::nullopt;
    }
    made.serial = ++last_serial;
    made.left_out = made.range.address - views_base >= views_bytes;
    const long mapped = map_at(made, made.fd, view.flags);
    if (dsm::kernel_failed(mapped)) return refuse(static_cast<int>(-mapped));
    forget(made.range);
    ViewList& list = list_of(world()->job.self);
    ViewRecord* const record = free_record(list);
    if (record == nullptr) return refuse(ENOMEM);
    *record = made;
    if (record == list.views + list.count) ++list.count;
    tell_others();
    return pointer(made.range.address);
}

int unmap_file_view(void* address, std::size_t bytes) noexcept {
    const dsm::AddressRange gone{number(address), round_up(bytes, page_bytes)};
    const RuntimeScope here;
    const std::scoped_lock guard{views_latch};
    const long result = kernel_call(SYS_munmap, gone.address, gone.bytes);
    if (result != 0) {
        errno = static_cast<int>(-result);
        return -1;
    }
    forget(gone);
    tell_others();
    return 0;
}

void* remap_file_view(void* address, std::size_t before, std::size_t after, int flags) noexcept {
    before = round_up(before, page_bytes);
    after = round_up(after, page_bytes);
    if (after == 0 || before == 0 || (flags & MREMAP_FIXED) != 0) return fail(EINVAL);
    if (after <= before) {
        if (after < before)
            unmap_file_view(static_cast<std::byte*>(address) + after, before - after);
        return address;
    }
    if ((flags & MREMAP_MAYMOVE) == 0) return fail(ENOMEM);
    FileView view{nullptr, after, 0, MAP_SHARED, -1, 0};
    {
        const RuntimeScope here;
        const std::scoped_lock guard{views_latch};
        const ViewList& list = list_of(world()->job.self);
        for (std::uint64_t i = 0; i < list.count; ++i) {
            const ViewRecord& each = list.views[i];
            if (!each.range.contains(number(address))) continue;
            view.fd = each.fd;
            view.protection = each.protection;
            view.offset = static_cast<off_t>(each.offset + (number(address) - each.range.address));
        }
    }
    if (view.fd < 0) return fail(EFAULT);
    const auto moved = map_file_shared(view);
    if (!moved || *moved == MAP_FAILED) return moved ? *moved : fail(ENOMEM);
    unmap_file_view(address, before);
    return *moved;
}

std::uint64_t version_of_file_views() noexcept { return version.load(std::memory_order_relaxed); }

void adopt_file_views(std::uint64_t now) noexcept {
    if (now == version.load(std::memory_order_relaxed)) return;
    version.store(now, std::memory_order_relaxed);
    const ViewList& list = list_of(NodeId{0});
    const std::vector<ViewRecord> views(list.views, list.views + list.count);
    std::erase_if(adopted(), [&](const auto& each) {
        const bool stays = std::ranges::any_of(views, [&](const ViewRecord& view) {
            return view.range.address == each.first && view.range.bytes == each.second.bytes &&
                   view.serial == each.second.serial;
        });
        if (!stays) kernel_call(SYS_munmap, each.first, each.second.bytes);
        return !stays;
    });
    for (const ViewRecord& view : views) {
        if (view.range.bytes == 0 || adopted().contains(view.range.address)) continue;
        if (view.left_out && !world()->map->is_left_out(view.range))
            world()->map->leave_out(view.range);
        if (const int error = map_view_of_another(view); error != 0)
            die(exit_environment,
                "%lu bytes of a file that node 0 has mapped shared at 0x%lx cannot be mapped on "
                "node %u: %s; map it private, or run on one node (-n 1)",
                view.range.bytes, view.range.address, world()->job.self.value,
                std::strerror(error));
        adopted()[view.range.address] = {view.range.bytes, view.serial};
    }
}

}  // namespace hiroba::abi
