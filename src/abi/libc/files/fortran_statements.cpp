// SPDX-License-Identifier: BSD-3-Clause
// Role: libgfortran's functions of units as the program calls them: here, or by the node that has
// the unit.
// Invariant: without libgfortran in the process they are never called. The calls of one READ or
// WRITE go to one node. What a thread of a region has written to 6 or 0 is written out before its
// statement ends.
#include <atomic>
#include <cstring>

#include "abi/libc/files/fortran_rows.hpp"
#include "abi/libc/files/fortran_units.hpp"
#include "abi/libc/process/job_end.hpp"
#include "abi/libc/process/process_state.hpp"
#include "abi/libc/real.hpp"
#include "abi/libc/threads/kept_by_threads.hpp"
#include "abi/world.hpp"
#include "base/fatal.hpp"

namespace hiroba::abi {
namespace {

/// Where some parameter blocks have a pointer to what comes out.
constexpr std::size_t newunit_of_open = 296, number_of_inquire = 64;
constexpr std::uint32_t inquires_by_file = 1u << 14, inquires_number = 1u << 9;
constexpr std::uint32_t has_new_unit = 1u << 23;  ///< of OPEN: `unit` is what comes out

/// READ and WRITE of this thread that have begun and not ended: libgfortran has locked their units.
constinit thread_local UnitsHere units_here [[gnu::tls_model("initial-exec")]];
constinit std::atomic<std::uint32_t> reads_under_way{0};

/// Those of them that another node carries out, one within the list of the other.
struct FarStatements {
    static constexpr std::uint32_t most = 8;
    struct {
        const Parameters* parameters = nullptr;
        std::uint32_t node = 0;
    } of[most];
    std::uint32_t count = 0;
};
constinit thread_local FarStatements far [[gnu::tls_model("initial-exec")]];

const std::uint32_t* far_node_of(const Parameters* parameters) noexcept {
    for (std::uint32_t i = far.count; i-- > 0;)
        if (far.of[i].parameters == parameters) return &far.of[i].node;
    return nullptr;
}

void count_statement(const Parameters& parameters, int by) noexcept {
    const bool is_output = (parameters.flags & has_internal_unit) == 0 && parameters.unit == 6;
    units_here.locked += static_cast<std::uint32_t>(by);
    if (is_output) units_here.locked_output += static_cast<std::uint32_t>(by);
}

/// The program's number for a unit that has come out at `offset` of a parameter block, which is
/// `expected` if the block is the one that is known.
void show_number(const Parameters& parameters, std::size_t offset, const std::int32_t* expected,
                 std::uint32_t node) {
    std::int32_t* number = nullptr;
    std::memcpy(&number, reinterpret_cast<const std::byte*>(&parameters) + offset, sizeof number);
    if (expected != nullptr && *number != *expected) return;
    if (*number <= first_chosen) *number -= static_cast<std::int32_t>(node) * chosen_by_node;
}

void note_change(const Parameters& parameters, const char* statement) noexcept {
    if (is_preconnected(parameters.unit)) standard_unit_changed(parameters.unit, statement);
}

/// Lines of one region come in the order in which its threads write them, whatever node they run
/// on. Not at a release, as stdout is: a thread may release within a statement, which has the unit.
// Not inlined, so that test/cluster/switched_off.py can switch it off.
[[gnu::noinline]] void write_out(std::int32_t unit) noexcept {
    const bool is_shared = world()->job.self.value != 0 || world()->omp->place().level > 0;
    if (is_shared && is_node_process()) real_of(FortranRow::flush_i4)(&unit, 0, 0, 0, 0, {});
}

/// The first call of a READ or WRITE.
void begin(FortranRow row, Parameters* parameters, bool is_of_program) noexcept {
    const bool is_external = (parameters->flags & has_internal_unit) == 0;
    if (is_of_program && is_external) {
        const UnitPlace unit = place_of_unit(parameters->unit);
        parameters->unit = unit.number;
        if (unit.is_far) {
            if (far.count == FarStatements::most)
                die(exit_environment,
                    "%u Fortran statements on units of other nodes within each other's lists: "
                    "compute what they call for before, or run on one node (-n 1)",
                    far.count + 1);
            far.of[far.count++] = {parameters, unit.node};
            call_at(unit.node, row, parameters);
            return;
        }
        if (!is_preconnected(unit.number)) note_kept_by_thread();  // it is on this node alone
    }
    count_statement(*parameters, 1);
    if (row == FortranRow::st_read && is_external) reads_under_way.fetch_add(1);
    real_of(row)(parameters, 0, 0, 0, 0, {});
}

/// The last one.
void end(FortranRow row, Parameters* parameters, bool is_of_program) noexcept {
    if (const std::uint32_t* const node = far_node_of(parameters)) {
        call_at(*node, row, parameters);
        --far.count;
        return;
    }
    const Parameters ended = *parameters;
    const bool is_external = (ended.flags & has_internal_unit) == 0;
    real_of(row)(parameters, 0, 0, 0, 0, {});
    count_statement(ended, -1);
    if (row == FortranRow::st_read_done && is_external) reads_under_way.fetch_sub(1);
    if (!is_of_program || !is_external || !spans_nodes()) return;
    if (row == FortranRow::st_write_done && is_preconnected(ended.unit)) write_out(ended.unit);
    note_open_unit(ended.unit);
}

void item(FortranRow row, Parameters* parameters, long second, long third, long fourth, long fifth,
          TypeWords last = {}) noexcept {
    const std::uint32_t* const node = far.count == 0 ? nullptr : far_node_of(parameters);
    if (node != nullptr) {
        call_at(*node, row, parameters, second, third, fourth, fifth, last);
    } else {
        real_of(row)(parameters, second, third, fourth, fifth, last);
    }
}

void statement(FortranRow row, Parameters* parameters, bool is_of_program) noexcept {
    if (!is_of_program) return void(real_of(row)(parameters, 0, 0, 0, 0, {}));
    const UnitPlace unit = place_of_unit(parameters->unit);
    parameters->unit = unit.number;
    if (unit.is_far) return void(call_at(unit.node, row, parameters));
    real_of(row)(parameters, 0, 0, 0, 0, {});
}

long function(FortranRow row, std::int32_t* number, long second, long third, long fourth,
              bool is_of_program) noexcept {
    if (number == nullptr || !is_of_program)
        return real_of(row)(number, second, third, fourth, 0, {});
    const UnitPlace unit = place_of_unit(*number);
    std::int32_t here = unit.number;
    if (unit.is_far) return call_at(unit.node, row, &here, second, third, fourth);
    return real_of(row)(&here, second, third, fourth, 0, {});
}

/// What is called back into the program runs on the thread that has called.
void refuse_if_far(const Parameters* parameters, const char* what) noexcept {
    if (far.count != 0 && far_node_of(parameters) != nullptr)
        die(exit_environment,
            "%s on a Fortran unit that another node has open: use the unit on the node that opened "
            "it, outside of parallel regions, or run on one node (-n 1)",
            what);
}

}  // namespace

UnitsHere units_of_this_thread() noexcept { return units_here; }
bool is_read_under_way() noexcept { return reads_under_way.load() != 0; }

}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

void _gfortran_st_open(Parameters* parameters) {
    const bool is_of_program = HIROBA_CALL_OF_PROGRAM();
    const bool chooses = (parameters->flags & has_new_unit) != 0;
    UnitPlace unit{0, 0, false};
    if (is_of_program && !chooses) {
        note_change(*parameters, "OPEN of a standard unit");
        unit = place_of_unit(parameters->unit, true);
        parameters->unit = unit.number;
    }
    if (unit.is_far) return void(call_at(unit.node, FortranRow::st_open, parameters));
    if (is_of_program) note_kept_by_thread();
    const std::int32_t number = parameters->unit;
    real_of(FortranRow::st_open)(parameters, 0, 0, 0, 0, {});
    if (!is_of_program || !is_node_process()) return;
    if (chooses) {
        show_number(*parameters, newunit_of_open, &parameters->unit, world()->job.self.value);
    } else {
        note_open_unit(number);
    }
}

void _gfortran_st_close(Parameters* parameters) {
    const bool is_of_program = HIROBA_CALL_OF_PROGRAM();
    if (is_of_program) note_change(*parameters, "CLOSE of a standard unit");
    const std::int32_t number = parameters->unit;
    statement(FortranRow::st_close, parameters, is_of_program);
    if (is_of_program && !place_of_unit(number).is_far) note_open_unit(number);
}

void _gfortran_st_inquire(Parameters* parameters) {
    const bool is_of_program = HIROBA_CALL_OF_PROGRAM() && is_node_process();
    std::uint32_t node = is_of_program ? world()->job.self.value : 0;
    if (is_of_program && (parameters->flags & inquires_by_file) == 0)
        node = place_of_unit(parameters->unit).node;
    statement(FortranRow::st_inquire, parameters,
              is_of_program && (parameters->flags & inquires_by_file) == 0);
    if (is_of_program && (parameters->flags & inquires_number) != 0)
        show_number(*parameters, number_of_inquire, nullptr, node);
}

void _gfortran_st_write(Parameters* parameters) {
    begin(FortranRow::st_write, parameters, HIROBA_CALL_OF_PROGRAM());
}
void _gfortran_st_write_done(Parameters* parameters) {
    end(FortranRow::st_write_done, parameters, HIROBA_CALL_OF_PROGRAM());
}
void _gfortran_st_read(Parameters* parameters) {
    begin(FortranRow::st_read, parameters, HIROBA_CALL_OF_PROGRAM());
}
void _gfortran_st_read_done(Parameters* parameters) {
    end(FortranRow::st_read_done, parameters, HIROBA_CALL_OF_PROGRAM());
}

void _gfortran_st_set_nml_var(Parameters* parameters, long variable, long name, long length,
                              long characters, TypeWords type) {
    item(FortranRow::st_set_nml_var, parameters, variable, name, length, characters, type);
}

#define HIROBA_ROW(name)                                                                \
    void _gfortran_##name(Parameters* parameters, long second, long third, long fourth, \
                          long fifth) {                                                 \
        item(FortranRow::name, parameters, second, third, fourth, fifth);               \
    }
HIROBA_FORTRAN_ITEMS(HIROBA_ROW)
#undef HIROBA_ROW

#define HIROBA_ROW(name)                                                   \
    void _gfortran_##name(Parameters* parameters) {                        \
        statement(FortranRow::name, parameters, HIROBA_CALL_OF_PROGRAM()); \
    }
HIROBA_FORTRAN_STATEMENTS(HIROBA_ROW)
#undef HIROBA_ROW

#define HIROBA_ROW(name)                                                                          \
    long _gfortran_##name(std::int32_t* unit, long second, long third, long fourth) {             \
        return function(FortranRow::name, unit, second, third, fourth, HIROBA_CALL_OF_PROGRAM()); \
    }
HIROBA_FORTRAN_FUNCTIONS(HIROBA_ROW)
#undef HIROBA_ROW

/// Numbers of eight bytes.
#define HIROBA_WIDE_FUNCTION(name, row)                                                            \
    long name(const std::int64_t* unit) {                                                          \
        if (unit == nullptr)                                                                       \
            return function(FortranRow::row, nullptr, 0, 0, 0, HIROBA_CALL_OF_PROGRAM());          \
        auto number = static_cast<std::int32_t>(*unit);                                            \
        const long result = function(FortranRow::row, &number, 0, 0, 0, HIROBA_CALL_OF_PROGRAM()); \
        return static_cast<std::int32_t>(result);                                                  \
    }
HIROBA_WIDE_FUNCTION(_gfortran_flush_i8, flush_i4)
HIROBA_WIDE_FUNCTION(_gfortran_fnum_i8, fnum_i4)
#undef HIROBA_WIDE_FUNCTION

/// Transfers a value whose type has an input or output procedure of its own.
void _gfortran_transfer_derived(Parameters* parameters, void* object, void* procedure) {
    using Function = void(Parameters*, void*, void*);
    static auto* const real = reinterpret_cast<Function*>(find_real("_gfortran_transfer_derived"));
    refuse_if_far(parameters, "a derived type's own input or output");
    real(parameters, object, procedure);
}

}  // extern "C"
