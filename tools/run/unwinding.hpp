// SPDX-License-Identifier: BSD-3-Clause
// Role: looks at the stacks of a running process, with libdwfl.
// Invariant: the process is stopped only while it is looked at, and goes on unharmed. The launcher
// may trace its nodes because they are its children.
#pragma once

#include <elfutils/libdwfl.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hiroba::tools {

using DwflSession = std::unique_ptr<Dwfl, decltype(&::dwfl_end)>;

/// nullptr when the process cannot be traced; dwfl_errmsg(-1) says why.
DwflSession attach_to(pid_t process);

/// The function of the innermost frame of `state`, as people write it; "??": unknown.
std::string function_of(Dwfl_Frame* state, Dwarf_Addr* address = nullptr,
                        std::string* file = nullptr);

/// Registers by their DWARF numbers (psABI x86-64, figure 3.36); 16 is the instruction's address.
using Registers = std::array<std::uint64_t, 17>;
/// Addresses within the calls that a thread of `process` is in, which has these registers and does
/// not run: innermost first, at most `frames_max`. Empty: its memory cannot be read. Stops no
/// thread.
std::vector<std::uint64_t> frames_of(pid_t process, const Registers& registers,
                                     std::size_t frames_max);

/// A frame on a stack.
struct HoldingFrame {
    std::uint64_t code = 0;  ///< an address within the call it is in
    std::string function;
};
/// The frame that holds `address`, if some stack of `process` has it now and, as proof that it is
/// the one meant, a function of `inner` has a frame there too, at most as far out.
std::optional<HoldingFrame> frame_that_holds(pid_t process, std::uint64_t address,
                                             const std::vector<std::string>& inner);

}  // namespace hiroba::tools
