// SPDX-License-Identifier: BSD-3-Clause
// Role: on which node each unit is, and calls of libgfortran for other nodes. 6 and 0 are open on
// all, and output goes to the same files; where node 0 has opened them otherwise they are its own,
// as 5 is always. Numbers that OPEN chooses (newunit=) have the node in them. Any other unit is on
// the node that has opened it; one that nobody has is node 0's.
// Invariant: a bit for a unit is written by the node that has it open, in its own page.
#include "abi/libc/files/fortran_units.hpp"

#include <atomic>
#include <cstring>

#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/files/fortran_rows.hpp"
#include "abi/libc/files/object_turn.hpp"
#include "abi/libc/files/remote_files.hpp"
#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/process/job_end.hpp"
#include "abi/libc/process/process_state.hpp"
#include "abi/libc/real.hpp"
#include "abi/world.hpp"
#include "base/fatal.hpp"

namespace hiroba::abi {
namespace {

constexpr const char* names[] = {
#define HIROBA_ROW(name) "_gfortran_" #name,
    HIROBA_FORTRAN_ROWS(HIROBA_ROW)
#undef HIROBA_ROW
};

/// Units with these numbers are kept where they are opened; higher ones are all node 0's.
constexpr std::int32_t noted_units = 8192;

std::uint8_t& unit_bits(std::uint32_t node, std::int32_t unit) noexcept {
    return reinterpret_cast<std::uint8_t&>(
        page_of_node(NodeId{node})[page_bytes / 4 * 3 + static_cast<std::size_t>(unit) / 8]);
}
std::uint8_t bit_of_unit(std::int32_t unit) noexcept {
    return static_cast<std::uint8_t>(1 << unit % 8);
}
bool is_noted(std::uint32_t node, std::int32_t unit) noexcept {
    return (unit_bits(node, unit) & bit_of_unit(unit)) != 0;
}

std::uint32_t self() noexcept { return world()->job.self.value; }

/// The node of a unit whose number the program has chosen.
std::uint32_t node_of_numbered(std::int32_t unit, bool opens) noexcept {
    if (unit >= noted_units) return 0;
    if (is_noted(self(), unit)) return self();
    for (std::uint32_t node = 0; node < world()->job.nodes; ++node)
        if (is_noted(node, unit)) return node;
    return opens ? self() : 0;
}

bool may_change_units(FortranRow row) noexcept {
    return row == FortranRow::st_open || row == FortranRow::st_close ||
           row == FortranRow::st_write_done || row == FortranRow::st_read_done;
}

}  // namespace

FortranFunction* real_of(FortranRow row) noexcept {
    static std::atomic<FortranFunction*> found[static_cast<std::size_t>(FortranRow::count)];
    auto& place = found[static_cast<std::size_t>(row)];
    FortranFunction* function = place.load(std::memory_order_relaxed);  // all find the same
    if (function == nullptr) {
        function = reinterpret_cast<FortranFunction*>(find_real(names[static_cast<int>(row)]));
        place.store(function, std::memory_order_relaxed);
    }
    return function;
}

// Not inlined, so that test/cluster/switched_off.py can switch it off.
[[gnu::noinline]] UnitPlace place_of_unit(std::int32_t number, bool opens) noexcept {
    if (!spans_nodes() || !is_node_process()) return {0, number, false};
    std::uint32_t node = self();
    if (number <= first_chosen) {
        node = static_cast<std::uint32_t>(first_chosen - number) / chosen_by_node;
        number += static_cast<std::int32_t>(node) * chosen_by_node;
    } else if (is_preconnected(number)) {
        if (number == 5 || is_unit_of_node_0(number)) node = 0;
    } else if (number >= 0) {
        node = node_of_numbered(number, opens);
    }
    return {node, number, node != self()};
}

// Not inlined, so that test/cluster/switched_off.py can switch it off.
[[gnu::noinline]] void note_open_unit(std::int32_t unit) noexcept {
    if (!spans_nodes() || !is_node_process() || unit < 0 || unit >= noted_units ||
        is_preconnected(unit))
        return;
    const auto is_open =
        static_cast<std::int32_t>(real_of(FortranRow::fnum_i4)(&unit, 0, 0, 0, 0, {})) >= 0;
    if (is_open == is_noted(self(), unit)) return;
    const std::atomic_ref<std::uint8_t> bits{unit_bits(self(), unit)};
    if (is_open) {
        bits.fetch_or(bit_of_unit(unit));
    } else {
        bits.fetch_and(static_cast<std::uint8_t>(~bit_of_unit(unit)));
    }
}

long call_at(std::uint32_t node, FortranRow row, void* first, long second, long third, long fourth,
             long fifth, TypeWords last) noexcept {
    const CallArguments words{
        {static_cast<long>(row), dsm::kernel::as_word(first), second, third, fourth, fifth}};
    long result = 0;
    // What the caller has done comes before what the owner does, and that before what it does next.
    { const ObjectTurn before{first}; }
    const std::int64_t failure = world()->files->call(
        NodeId{node}, static_cast<std::int64_t>(UnitCall::call), words, -1,
        std::as_bytes(std::span(&last, 1)), std::as_writable_bytes(std::span(&result, 1)));
    HIROBA_INVARIANT(failure == 0, "%s for node %u: %ld", names[static_cast<int>(row)], node,
                     static_cast<long>(failure));
    { const ObjectTurn after{first}; }
    return result;
}

std::int64_t call_unit_here(const CallArguments& words, std::byte* data) noexcept {
    const auto row = static_cast<FortranRow>(words.word[0]);
    void* const first = pointer<void>(words.word[1]);
    TypeWords last;
    std::memcpy(&last, data, sizeof last);
    const ObjectTurn turn{first};
    const std::int32_t unit =
        may_change_units(row) ? static_cast<const Parameters*>(first)->unit : first_chosen;
    const long result =
        real_of(row)(first, words.word[2], words.word[3], words.word[4], words.word[5], last);
    note_open_unit(unit);
    std::memcpy(data, &result, sizeof result);
    return 0;
}

}  // namespace hiroba::abi
