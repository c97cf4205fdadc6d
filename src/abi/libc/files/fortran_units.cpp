// SPDX-License-Identifier: BSD-3-Clause
// Role: Fortran's preconnected units. libgfortran's table of units is each node's own, and there 5,
// 6 and 0 are always open: a unit 6 that node 0 has opened on a file would be standard output on
// another node. Other units are seen by the file they open (system_calls.cpp).
// Invariant: without libgfortran in the process they are never called. What a thread of a region
// has written to 6 or 0 is written out before its statement ends.
#include <dlfcn.h>

#include <cstdint>

#include "abi/libc/process/job_end.hpp"
#include "abi/libc/process/process_state.hpp"
#include "abi/libc/real.hpp"
#include "abi/libc/threads/kept_by_threads.hpp"
#include "abi/world.hpp"

namespace hiroba::abi {
namespace {

/// The front of every parameter block of libgfortran (libgfortran/io/io.h, st_parameter_common).
struct Parameters {
    std::uint32_t flags;
    std::int32_t unit;
};
constexpr std::uint32_t has_internal_unit = 1u << 14;  ///< of reads and writes
constexpr std::uint32_t has_new_unit = 1u << 23;       ///< of OPEN: `unit` is what comes out

using Statement = void(Parameters*);

/// libgfortran's subroutine FLUSH.
using Flush = void(int* unit);

Statement* find_statement(const char* name) noexcept {
    return reinterpret_cast<Statement*>(find_real(name));
}

bool is_preconnected(const Parameters& parameters) noexcept {
    return parameters.unit == 0 || parameters.unit == 5 || parameters.unit == 6;
}

void note_change(const Parameters& parameters, const char* statement) noexcept {
    if (is_preconnected(parameters)) standard_unit_changed(parameters.unit, statement);
}

void check(const Parameters& parameters) noexcept {
    if ((parameters.flags & has_internal_unit) != 0) return;
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
}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

void _gfortran_st_open(Parameters* parameters) {
    static Statement* const real = find_statement("_gfortran_st_open");
    if (HIROBA_CALL_OF_PROGRAM() && (parameters->flags & has_new_unit) == 0)
        note_change(*parameters, "OPEN of a standard unit");
    if (HIROBA_CALL_OF_PROGRAM()) note_kept_by_thread();
    real(parameters);
}

void _gfortran_st_close(Parameters* parameters) {
    static Statement* const real = find_statement("_gfortran_st_close");
    if (HIROBA_CALL_OF_PROGRAM()) note_change(*parameters, "CLOSE of a standard unit");
    real(parameters);
}

void _gfortran_st_write(Parameters* parameters) {
    static Statement* const real = find_statement("_gfortran_st_write");
    if (HIROBA_CALL_OF_PROGRAM()) check(*parameters);
    real(parameters);
}

void _gfortran_st_write_done(Parameters* parameters) {
    static Statement* const real = find_statement("_gfortran_st_write_done");
    const bool is_standard = HIROBA_CALL_OF_PROGRAM() && spans_nodes() &&
                             (parameters->flags & has_internal_unit) == 0 &&
                             is_preconnected(*parameters);
    const Parameters written = *parameters;
    real(parameters);
    if (is_standard) write_out(written);
}

void _gfortran_st_read(Parameters* parameters) {
    static Statement* const real = find_statement("_gfortran_st_read");
    if (HIROBA_CALL_OF_PROGRAM()) check(*parameters);
    real(parameters);
}

}  // extern "C"
