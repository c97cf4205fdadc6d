// SPDX-License-Identifier: BSD-3-Clause
// Role: notes on node 0 what gfortran's main tells libgfortran (arguments, options, conversion,
// record markers, traps), and repeats it on the others, where main does not run.
// Invariant: without libgfortran in the process nothing here is called.
#include "abi/libc/process/fortran_start.hpp"

#include <cstdint>
#include <mutex>

#include "abi/libc/process/process_state.hpp"
#include "abi/libc/real.hpp"
#include "base/latch.hpp"
#include "omp/team/floating_point.hpp"

namespace hiroba::abi {
namespace {

constinit Latch noting;
constinit FortranStart noted;

constexpr const char* setters[FortranStart::settings] = {
    "_gfortran_set_convert", "_gfortran_set_record_marker", "_gfortran_set_max_subrecord_length",
    "_gfortran_set_fpe"};

using SetArguments = void(int, char**);
using SetOptions = void(int, int*);
using SetOne = void(int);

template <class Function>
Function* find(const char* name) noexcept {
    return reinterpret_cast<Function*>(find_real(name));
}

template <class Note>
void note(Note change, const char* call) noexcept {
    {
        const std::scoped_lock guard{noting};
        change(noted);
    }
    process_state_changed(call);
}

void set_one(FortranStart::Setting setting, int value, bool by_program) {
    find<SetOne>(setters[setting])(value);
    if (!by_program) return;
    note(
        [&](FortranStart& start) {
            start.has[setting] = true;
            start.value[setting] = value;
        },
        setters[setting]);
}

}  // namespace

FortranStart fortran_start() noexcept {
    const std::scoped_lock guard{noting};
    return noted;
}

void start_fortran_as(const FortranStart& wanted) noexcept {
    if (wanted == fortran_start()) return;
    // The thread's own traps are its leader's.
    const omp::FloatingPoint before = omp::floating_point();
    if (wanted.has_arguments)
        find<SetArguments>("_gfortran_set_args")(wanted.count, wanted.arguments);
    if (wanted.has_options)
        find<SetOptions>("_gfortran_set_options")(wanted.options_count, wanted.options);
    for (unsigned i = 0; i < FortranStart::settings; ++i)
        if (wanted.has[i]) find<SetOne>(setters[i])(wanted.value[i]);
    omp::set_floating_point(before);
    const std::scoped_lock guard{noting};
    noted = wanted;
}

}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

void _gfortran_set_args(int count, char** arguments) {
    find<SetArguments>("_gfortran_set_args")(count, arguments);
    if (!HIROBA_CALL_OF_PROGRAM()) return;
    note(
        [&](FortranStart& start) {
            start.has_arguments = true;
            start.count = count;
            start.arguments = arguments;
        },
        "_gfortran_set_args");
}

void _gfortran_set_options(int count, int* options) {
    find<SetOptions>("_gfortran_set_options")(count, options);
    if (!HIROBA_CALL_OF_PROGRAM()) return;
    note(
        [&](FortranStart& start) {
            start.has_options = true;
            start.options_count = count;
            start.options = options;
        },
        "_gfortran_set_options");
}

void _gfortran_set_convert(int value) {
    set_one(FortranStart::convert, value, HIROBA_CALL_OF_PROGRAM());
}
void _gfortran_set_record_marker(int value) {
    set_one(FortranStart::record_marker, value, HIROBA_CALL_OF_PROGRAM());
}
void _gfortran_set_max_subrecord_length(int value) {
    set_one(FortranStart::subrecord_length, value, HIROBA_CALL_OF_PROGRAM());
}
void _gfortran_set_fpe(int value) { set_one(FortranStart::fpe, value, HIROBA_CALL_OF_PROGRAM()); }

}  // extern "C"
