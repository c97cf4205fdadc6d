// SPDX-License-Identifier: BSD-3-Clause
// Role: units of Fortran, of which libgfortran's table is each node's own. 5, 6 and 0 are open on
// all: a unit 6 that node 0 has opened on a file would be standard output on another node. Numbers
// that OPEN chooses (newunit=) are the same on all: the program gets them with the node in them.
// Others are seen by the file they open (system_calls.cpp).
// Invariant: without libgfortran in the process they are never called. What a thread of a region
// has written to 6 or 0 is written out before its statement ends.
#include "abi/libc/files/fortran_units.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/process/job_end.hpp"
#include "abi/libc/process/process_state.hpp"
#include "abi/libc/real.hpp"
#include "abi/libc/threads/kept_by_threads.hpp"
#include "abi/world.hpp"
#include "base/fatal.hpp"

namespace hiroba::abi {
namespace {

/// The front of every parameter block of libgfortran (libgfortran/io/io.h, st_parameter_common).
struct Parameters {
    std::uint32_t flags;
    std::int32_t unit;
};
/// Where some have a pointer to what comes out.
constexpr std::size_t newunit_of_open = 296, number_of_inquire = 64;
constexpr std::uint32_t inquires_by_file = 1u << 14, inquires_number = 1u << 9;
constexpr std::uint32_t has_internal_unit = 1u << 14;  ///< of reads and writes
constexpr std::uint32_t has_new_unit = 1u << 23;       ///< of OPEN: `unit` is what comes out

using Statement = void(Parameters*);

/// READ and WRITE of this thread that have begun and not ended: libgfortran has locked their units.
constinit thread_local UnitsHere units_here [[gnu::tls_model("initial-exec")]];

void count_statement(const Parameters& parameters, int by) noexcept {
    const bool is_output = (parameters.flags & has_internal_unit) == 0 && parameters.unit == 6;
    units_here.locked += static_cast<std::uint32_t>(by);
    if (is_output) units_here.locked_output += static_cast<std::uint32_t>(by);
}

/// libgfortran's subroutine FLUSH.
using Flush = void(int* unit);

Statement* find_statement(const char* name) noexcept {
    return reinterpret_cast<Statement*>(find_real(name));
}

/// Numbers that OPEN chooses begin here and go down; a node has so many.
constexpr std::int32_t first_chosen = -10, chosen_by_node = 1 << 20;

std::int32_t own_offset() noexcept {
    return is_node_process() ? static_cast<std::int32_t>(world()->job.self.value) * chosen_by_node
                             : 0;
}

/// What libgfortran of this node calls the program's unit `number`.
// Not inlined, so that test/cluster/switched_off.py can switch it off.
[[gnu::noinline]] std::int32_t number_here(std::int32_t number) noexcept {
    if (number > first_chosen || !spans_nodes()) return number;
    const std::int32_t owner = (first_chosen - number) / chosen_by_node;
    if (is_node_process() && owner != static_cast<std::int32_t>(world()->job.self.value))
        die(exit_environment,
            "Fortran unit %d was opened (newunit=) on node %d, and is none on node %u: use it on "
            "the node that opened it, outside of parallel regions, or run on one node (-n 1)",
            number, owner, world()->job.self.value);
    return number + owner * chosen_by_node;
}

/// The program's number for a unit that has come out at `offset` of a parameter block, which is
/// `expected` if the block is the one that is known.
void show_number(const Parameters& parameters, std::size_t offset, const std::int32_t* expected) {
    std::int32_t* number = nullptr;
    std::memcpy(&number, reinterpret_cast<const std::byte*>(&parameters) + offset, sizeof number);
    if (expected != nullptr && *number != *expected) return;
    if (*number <= first_chosen) *number -= own_offset();
}

bool is_preconnected_number(std::int32_t unit) noexcept {
    return unit == 0 || unit == 5 || unit == 6;
}

constexpr long noted_units = 1024;

/// A bit for each unit that the node has open, in its page; it alone writes there.
std::uint8_t& unit_bits(NodeId node, long unit) noexcept {
    return reinterpret_cast<std::uint8_t&>(page_of_node(node)[page_bytes / 4 * 3 + unit / 8]);
}
std::uint8_t bit_of_unit(long unit) noexcept { return static_cast<std::uint8_t>(1 << unit % 8); }

/// Behind an OPEN or a CLOSE on another node than 0: main would open a file of its own.
// Not inlined, so that test/cluster/switched_off.py can switch it off.
[[gnu::noinline]] void note_open_unit(const Parameters& parameters) noexcept {
    using Number = std::int32_t(const std::int32_t*);
    static auto* const number = reinterpret_cast<Number*>(find_real("_gfortran_fnum_i4"));
    const std::int32_t unit = parameters.unit;
    if (!spans_nodes() || !is_node_process() || world()->job.self.value == 0 || unit < 0 ||
        unit >= noted_units || is_preconnected_number(unit) || number == nullptr)
        return;
    const std::atomic_ref<std::uint8_t> bits{unit_bits(world()->job.self, unit)};
    if (number(&unit) >= 0) {
        bits.fetch_or(bit_of_unit(unit));
    } else {
        bits.fetch_and(static_cast<std::uint8_t>(~bit_of_unit(unit)));
    }
}

bool is_preconnected(const Parameters& parameters) noexcept {
    return is_preconnected_number(parameters.unit);
}

void note_change(const Parameters& parameters, const char* statement) noexcept {
    if (is_preconnected(parameters)) standard_unit_changed(parameters.unit, statement);
}

void check(Parameters& parameters) noexcept {
    if ((parameters.flags & has_internal_unit) != 0) return;
    parameters.unit = number_here(parameters.unit);
    if (is_preconnected(parameters)) return refuse_unit_of_node_0(parameters.unit);
    note_kept_by_thread();  // it is open, or opened by this, on this node alone
}

/// Lines of one region come in the order in which its threads write them, whatever node they run
/// on. Not at a release, as stdout is: a thread may release within a statement, which has the unit.
// Not inlined, so that test/cluster/switched_off.py can switch it off.
[[gnu::noinline]] void write_out(const Parameters& parameters) noexcept {
    static auto* const flush = reinterpret_cast<Flush*>(find_real("_gfortran_flush_i4"));
    const bool is_shared = world()->job.self.value != 0 || world()->omp->place().level > 0;
    int unit = parameters.unit;
    if (is_shared && is_node_process() && flush != nullptr) flush(&unit);
}

}  // namespace

UnitsHere units_of_this_thread() noexcept { return units_here; }

std::optional<NodeId> node_with_unit(long unit) noexcept {
    if (unit < 0 || unit >= noted_units) return std::nullopt;
    for (NodeId node{1}; node.value < world()->job.nodes; ++node.value)
        if ((unit_bits(node, unit) & bit_of_unit(unit)) != 0) return node;
    return std::nullopt;
}

}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

void _gfortran_st_open(Parameters* parameters) {
    static Statement* const real = find_statement("_gfortran_st_open");
    const bool is_of_program = HIROBA_CALL_OF_PROGRAM();
    const bool chooses = (parameters->flags & has_new_unit) != 0;
    if (is_of_program && !chooses) {
        note_change(*parameters, "OPEN of a standard unit");
        parameters->unit = number_here(parameters->unit);
    }
    if (is_of_program) note_kept_by_thread();
    real(parameters);
    if (!is_of_program || !spans_nodes()) return;
    if (chooses) {
        show_number(*parameters, newunit_of_open, &parameters->unit);
    } else {
        note_open_unit(*parameters);
    }
}

void _gfortran_st_close(Parameters* parameters) {
    static Statement* const real = find_statement("_gfortran_st_close");
    const bool is_of_program = HIROBA_CALL_OF_PROGRAM();
    if (is_of_program) {
        note_change(*parameters, "CLOSE of a standard unit");
        parameters->unit = number_here(parameters->unit);
    }
    real(parameters);
    if (is_of_program) note_open_unit(*parameters);
}

void _gfortran_st_write(Parameters* parameters) {
    static Statement* const real = find_statement("_gfortran_st_write");
    if (HIROBA_CALL_OF_PROGRAM()) check(*parameters);
    count_statement(*parameters, 1);
    real(parameters);
}

void _gfortran_st_write_done(Parameters* parameters) {
    static Statement* const real = find_statement("_gfortran_st_write_done");
    const bool is_standard = HIROBA_CALL_OF_PROGRAM() && spans_nodes() &&
                             (parameters->flags & has_internal_unit) == 0 &&
                             is_preconnected(*parameters);
    const Parameters written = *parameters;
    real(parameters);
    count_statement(written, -1);
    if (is_standard) write_out(written);
}

void _gfortran_st_read(Parameters* parameters) {
    static Statement* const real = find_statement("_gfortran_st_read");
    if (HIROBA_CALL_OF_PROGRAM()) check(*parameters);
    count_statement(*parameters, 1);
    real(parameters);
}

void _gfortran_st_read_done(Parameters* parameters) {
    static Statement* const real = find_statement("_gfortran_st_read_done");
    const Parameters read = *parameters;
    real(parameters);
    count_statement(read, -1);
}

void _gfortran_st_inquire(Parameters* parameters) {
    static Statement* const real = find_statement("_gfortran_st_inquire");
    const bool is_of_program = HIROBA_CALL_OF_PROGRAM() && spans_nodes();
    if (is_of_program && (parameters->flags & inquires_by_file) == 0)
        parameters->unit = number_here(parameters->unit);
    real(parameters);
    if (is_of_program && (parameters->flags & inquires_number) != 0)
        show_number(*parameters, number_of_inquire, nullptr);
}

#define HIROBA_UNIT_STATEMENT(name)                                                     \
    void name(Parameters* parameters) {                                                 \
        static Statement* const real = find_statement(#name);                           \
        if (HIROBA_CALL_OF_PROGRAM()) parameters->unit = number_here(parameters->unit); \
        real(parameters);                                                               \
    }
HIROBA_UNIT_STATEMENT(_gfortran_st_backspace)
HIROBA_UNIT_STATEMENT(_gfortran_st_rewind)
HIROBA_UNIT_STATEMENT(_gfortran_st_endfile)
HIROBA_UNIT_STATEMENT(_gfortran_st_flush)
HIROBA_UNIT_STATEMENT(_gfortran_st_wait)
HIROBA_UNIT_STATEMENT(_gfortran_st_wait_async)
#undef HIROBA_UNIT_STATEMENT

/// Functions of a unit, whose first argument it is: FLUSH, FNUM, FTELL, ISATTY.
#define HIROBA_UNIT_FUNCTION(type, name, unit_type)                              \
    type name(unit_type* unit) {                                                 \
        using Function = type(unit_type*);                                       \
        static auto* const real = reinterpret_cast<Function*>(find_real(#name)); \
        if (unit == nullptr || !HIROBA_CALL_OF_PROGRAM()) return real(unit);     \
        unit_type here = number_here(static_cast<std::int32_t>(*unit));          \
        return real(&here);                                                      \
    }
HIROBA_UNIT_FUNCTION(void, _gfortran_flush_i4, std::int32_t)
HIROBA_UNIT_FUNCTION(void, _gfortran_flush_i8, std::int64_t)
HIROBA_UNIT_FUNCTION(std::int32_t, _gfortran_fnum_i4, std::int32_t)
HIROBA_UNIT_FUNCTION(std::int64_t, _gfortran_fnum_i8, std::int64_t)
HIROBA_UNIT_FUNCTION(std::int64_t, _gfortran_ftell, std::int32_t)
HIROBA_UNIT_FUNCTION(std::int32_t, _gfortran_isatty_l4, std::int32_t)
HIROBA_UNIT_FUNCTION(std::int64_t, _gfortran_isatty_l8, std::int64_t)
#undef HIROBA_UNIT_FUNCTION

}  // extern "C"
