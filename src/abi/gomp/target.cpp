// SPDX-License-Identifier: BSD-3-Clause
// Role: target regions where the only device is the host, and teams regions.
// Invariant: mapped data are the program's own; what is firstprivate is copied when the construct
// is met. A target region is a task: deferred with `nowait`, ordered by `depend`. Its code runs as
// that of an initial thread of its own.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "abi/gomp/runtime.hpp"
#include "abi/gomp/task_clauses.hpp"

#pragma GCC visibility push(default)

using namespace hiroba::abi;
using hiroba::omp::NewTask;
using hiroba::omp::OutlinedFunction;
using hiroba::omp::TargetData;

namespace {

// gcc's include/gomp-constants.h.
constexpr unsigned map_firstprivate = 0xc, flag_nowait = 1, flag_exit_data = 2;
constexpr std::intptr_t argument_id_mask = 0xff00, argument_limit = 2 << 8,
                        argument_has_value_next = 1 << 7;
constexpr unsigned argument_value_shift = 16;

/// The region's function, the addresses it is given, and copies of what is firstprivate: one block
/// that can be moved.
struct Region {
    OutlinedFunction function;
    std::size_t addresses;
    std::uint32_t thread_limit;
    struct Address {
        void* outside;       ///< maybe not an address at all: small values are passed as such
        std::size_t inside;  ///< of a copy: its offset in the block; else 0
    };
};

std::uint32_t thread_limit_of(void** arguments) {
    if (arguments == nullptr) return 0;
    for (std::uint32_t limit = 0;; ++arguments) {
        const auto id = reinterpret_cast<std::intptr_t>(*arguments);
        if (id == 0) return limit;
        const bool next = (id & argument_has_value_next) != 0;
        const std::intptr_t value =
            next ? reinterpret_cast<std::intptr_t>(*++arguments) : id >> argument_value_shift;
        if ((id & argument_id_mask) == argument_limit && value > 0)
            limit = static_cast<std::uint32_t>(value);
    }
}

void run_region(void* block) {
    auto* const bytes = static_cast<std::byte*>(block);
    Region region;
    std::memcpy(&region, bytes, sizeof region);
    std::vector<void*> addresses(region.addresses);
    for (std::size_t i = 0; i < region.addresses; ++i) {
        Region::Address address;
        std::memcpy(&address, bytes + sizeof region + i * sizeof address, sizeof address);
        addresses[i] = address.inside != 0 ? bytes + address.inside : address.outside;
    }
    runtime().run_apart(region.function, addresses.data(), region.thread_limit);
}

std::size_t alignment_in(const unsigned short* kinds, std::size_t count) {
    std::size_t most = alignof(std::max_align_t);
    for (std::size_t i = 0; i < count; ++i)
        most = std::max(most, std::size_t{1} << (kinds[i] >> 8));
    return most;
}

std::vector<std::byte> pack(OutlinedFunction function, std::size_t count, void** addresses,
                            const std::size_t* sizes, const unsigned short* kinds,
                            std::uint32_t thread_limit) {
    const auto alignment_of = [kinds](std::size_t i) { return std::size_t{1} << (kinds[i] >> 8); };
    const auto is_copied = [kinds](std::size_t i) { return (kinds[i] & 0xff) == map_firstprivate; };
    std::vector<Region::Address> packed(count);
    std::size_t end = sizeof(Region) + count * sizeof(Region::Address);
    for (std::size_t i = 0; i < count; ++i) {
        packed[i] = {addresses[i], 0};
        if (!is_copied(i)) continue;
        end = (end + alignment_of(i) - 1) & ~(alignment_of(i) - 1);
        packed[i] = {nullptr, end};
        end += sizes[i];
    }
    std::vector<std::byte> block(end);
    const Region region{function, count, thread_limit};
    std::memcpy(block.data(), &region, sizeof region);
    std::memcpy(block.data() + sizeof region, packed.data(), count * sizeof packed[0]);
    for (std::size_t i = 0; i < count; ++i)
        if (is_copied(i)) std::memcpy(block.data() + packed[i].inside, addresses[i], sizes[i]);
    return block;
}

struct DataConstruct {
    TargetData what{};
    bool nowait = false;
};
void tell_deferred(void* construct) {
    const auto& of = *static_cast<const DataConstruct*>(construct);
    tell_target_data(of.what, of.nowait);
}

/// Data clauses change nothing; what is left of such a construct is its place in the order, and
/// what a tool hears.
void keep_order(DataConstruct construct, void** depend) {
    if (depend != nullptr && construct.nowait) {
        NewTask task;
        task.dependences = read_depend_clause(depend);
        task.is_target = true;
        if (hiroba::omp::tool_listens()) {
            task.function = &tell_deferred;
            task.data = &construct;
            task.bytes = sizeof construct;
            task.alignment = alignof(DataConstruct);
        }
        return runtime().task(task);
    }
    if (depend != nullptr) runtime().task_wait_for(read_depend_clause(depend));
    tell_target_data(construct.what, construct.nowait);
}

}  // namespace

extern "C" {

void GOMP_target_ext(int, OutlinedFunction function, std::size_t count, void** addresses,
                     std::size_t* sizes, unsigned short* kinds, unsigned flags, void** depend,
                     void** arguments) {
    note_caller();
    auto block = pack(function, count, addresses, sizes, kinds, thread_limit_of(arguments));
    NewTask task;
    task.function = &run_region;
    task.data = block.data();
    task.bytes = block.size();
    task.alignment = alignment_in(kinds, count);
    task.always_copied = true;
    task.is_target = true;
    task.deferred = (flags & flag_nowait) != 0;
    if (depend != nullptr) task.dependences = read_depend_clause(depend);
    runtime().task(task);
}
void GOMP_target(int, OutlinedFunction function, const void*, std::size_t, void** addresses,
                 std::size_t*, unsigned char*) {
    note_caller();
    runtime().run_apart(function, addresses, 0);
}

void GOMP_target_data(int, const void*, std::size_t, void**, std::size_t*, unsigned char*) {
    note_caller();
    keep_order({TargetData::enter}, nullptr);
}
void GOMP_target_data_ext(int, std::size_t, void**, std::size_t*, unsigned short*) {
    note_caller();
    keep_order({TargetData::enter}, nullptr);
}
void GOMP_target_end_data() {
    note_caller();
    keep_order({TargetData::exit}, nullptr);
}
void GOMP_target_update(int, const void*, std::size_t, void**, std::size_t*, unsigned char*) {
    note_caller();
    keep_order({TargetData::update}, nullptr);
}
void GOMP_target_update_ext(int, std::size_t, void**, std::size_t*, unsigned short*, unsigned flags,
                            void** depend) {
    note_caller();
    keep_order({TargetData::update, (flags & flag_nowait) != 0}, depend);
}
void GOMP_target_enter_exit_data(int, std::size_t, void**, std::size_t*, unsigned short*,
                                 unsigned flags, void** depend) {
    note_caller();
    const bool exits = (flags & flag_exit_data) != 0;
    keep_order({exits ? TargetData::exit : TargetData::enter, (flags & flag_nowait) != 0}, depend);
}

// A league's teams run one after the other, as in gcc's runtime on a host.
void GOMP_teams_reg(OutlinedFunction function, void* data, unsigned teams, unsigned thread_limit,
                    unsigned) {
    note_caller();
    runtime().league(function, data, teams, thread_limit);
}
void GOMP_teams(unsigned teams, unsigned thread_limit) {
    runtime().next_team(teams, thread_limit, true);
}
bool GOMP_teams4(unsigned teams, unsigned, unsigned thread_limit, bool first) {
    return runtime().next_team(teams, thread_limit, first);
}

}  // extern "C"
