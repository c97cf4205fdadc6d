// SPDX-License-Identifier: BSD-3-Clause
// Role: what a Fortran program's main hands to libgfortran, for the other nodes' libgfortran, and
// the streams of its random numbers.
#pragma once

#include <array>
#include <cstdint>

namespace hiroba::abi {

/// The calls of gfortran's main, in their order; none: the program is none of Fortran's.
struct FortranStart {
    enum Setting : std::uint8_t { convert, record_marker, subrecord_length, fpe, settings };
    bool has_arguments = false, has_options = false;
    int count = 0;
    char** arguments = nullptr;
    int options_count = 0;
    int* options = nullptr;  ///< of the program's image
    std::array<bool, settings> has{};
    std::array<int, settings> value{};

    bool operator==(const FortranStart&) const = default;
};

/// This node's.
FortranStart fortran_start() noexcept;
/// Makes the same calls here, unless they have been made.
void start_fortran_as(const FortranStart& wanted) noexcept;

/// The calling thread is a new one to the program: it takes a stream of its own when it draws.
void forget_fortran_stream() noexcept;

}  // namespace hiroba::abi
