// SPDX-License-Identifier: BSD-3-Clause
// Role: the functions of libgfortran that belong to a unit, as rows; and what of their parameters
// is looked at (libgfortran/io/io.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace hiroba::abi {

// clang-format off
/// Items of a READ or WRITE in progress.
#define HIROBA_FORTRAN_ITEMS(row)                                                                \
    row(transfer_integer) row(transfer_integer_write) row(transfer_real) row(transfer_real_write) \
    row(transfer_logical) row(transfer_logical_write) row(transfer_complex)                       \
    row(transfer_complex_write) row(transfer_character) row(transfer_character_write)             \
    row(transfer_character_wide) row(transfer_character_wide_write) row(transfer_array)           \
    row(transfer_array_write) row(transfer_real128) row(transfer_real128_write)                   \
    row(transfer_complex128) row(transfer_complex128_write) row(st_set_nml_var_dim)
/// Statements of one call.
#define HIROBA_FORTRAN_STATEMENTS(row)                                              \
    row(st_backspace) row(st_rewind) row(st_endfile) row(st_flush) row(st_wait) \
    row(st_wait_async)
/// Functions whose first argument is the place of a unit's number.
#define HIROBA_FORTRAN_FUNCTIONS(row)                                                         \
    row(flush_i4) row(fnum_i4) row(isatty_l4) row(isatty_l8) row(ftell) row(ftell_i1_sub)     \
    row(ftell_i2_sub) row(ftell_i4_sub) row(ftell_i8_sub) row(fseek_sub) row(fgetc)           \
    row(fgetc_i1_sub) row(fgetc_i2_sub) row(fgetc_i4_sub) row(fgetc_i8_sub) row(fputc)        \
    row(fputc_i1_sub) row(fputc_i2_sub) row(fputc_i4_sub) row(fputc_i8_sub)
/// Those that have definitions of their own.
#define HIROBA_FORTRAN_OTHERS(row)                                                         \
    row(st_open) row(st_close) row(st_inquire) row(st_read) row(st_read_done) row(st_write) \
    row(st_write_done) row(st_set_nml_var)
#define HIROBA_FORTRAN_ROWS(row)                                                           \
    HIROBA_FORTRAN_OTHERS(row) HIROBA_FORTRAN_ITEMS(row) HIROBA_FORTRAN_STATEMENTS(row)    \
    HIROBA_FORTRAN_FUNCTIONS(row)
// clang-format on

enum class FortranRow : std::uint8_t {
#define HIROBA_ROW(name) name,
    HIROBA_FORTRAN_ROWS(HIROBA_ROW)
#undef HIROBA_ROW
        count
};

/// The front of every parameter block (st_parameter_common).
struct Parameters {
    std::uint32_t flags;
    std::int32_t unit;
};
inline constexpr std::uint32_t has_internal_unit = 1u << 14;  ///< of reads and writes

/// The last argument of st_set_nml_var, a type's description: it is passed on the stack.
struct TypeWords {
    long word[2];
};
/// Any of the functions: integers and pointers come in registers, the others ignore what is more.
using FortranFunction = long(void*, long, long, long, long, TypeWords);
FortranFunction* real_of(FortranRow row) noexcept;

/// Numbers that OPEN chooses begin here and go down; a node has so many.
inline constexpr std::int32_t first_chosen = -10, chosen_by_node = 1 << 20;

inline bool is_preconnected(std::int32_t unit) noexcept {
    return unit == 0 || unit == 5 || unit == 6;
}

/// A unit: the node that has it, and its number in libgfortran there.
struct UnitPlace {
    std::uint32_t node;
    std::int32_t number;
    bool is_far;  ///< another node than this one has it
};
/// Where the program's unit `number` is, or is to be opened.
/// @param opens  an OPEN asks, which keeps a new unit on its node
UnitPlace place_of_unit(std::int32_t number, bool opens = false) noexcept;

/// Behind a statement of this node that may have opened or closed a unit with a number.
void note_open_unit(std::int32_t unit) noexcept;

/// Has `node` call the function, with all memory as this thread sees it, and this thread see what
/// it has done.
long call_at(std::uint32_t node, FortranRow row, void* first, long second = 0, long third = 0,
             long fourth = 0, long fifth = 0, TypeWords last = {}) noexcept;

}  // namespace hiroba::abi
