// SPDX-License-Identifier: BSD-3-Clause
// Role: reads a program and its libraries, and says what a run would make of them.
// Invariant: nothing of them is executed. What counts is what they ask for by name: a library that
// the program opens later is not seen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "tools/check/endings.hpp"

namespace hiroba::tools {

/// Something that stands against a run, or may.
struct Finding {
    std::string name;  ///< of a function or entry point
    Effect effect = Effect::ends;
    std::string why;
    std::vector<std::string> places;  ///< "main.c:12 (work)" where the code calls it
};

struct AtomicsFound {
    std::size_t atomics = 0, flushes = 0;
    std::size_t by_trap = 0;     ///< of both: no room for a jump, so each costs more than 1 us
    std::size_t left_alone = 0;  ///< thread-local, or of a form that has no trampoline
    std::size_t undecodable_bytes = 0;
};

struct ObjectFound {
    std::string path;
    std::string asked_as;     ///< how it is needed; empty: the program
    std::string why_private;  ///< empty: its variables are shared by all nodes
    std::vector<std::string> compilers;
    std::vector<std::string> entry_points;  ///< of OpenMP runtimes, that it asks for
    AtomicsFound atomics;
    std::vector<Finding> findings;
    bool code_on_stack = false;
    std::string error;  ///< it cannot be read
};

struct Survey {
    std::string program;
    std::string refusal;                ///< why the program cannot be taken over; empty: it can
    std::vector<std::string> runtimes;  ///< libraries that hiroba stands in for
    std::vector<std::string> missing;   ///< libraries that are nowhere
    std::vector<ObjectFound> objects;   ///< the program first
    /// Whether nothing ends the run for certain.
    bool would_run() const;
};

/// @param library  libhiroba.so, which knows the entry points it refuses; empty: none
Survey survey(const std::string& program, const std::string& library);

}  // namespace hiroba::tools
