// SPDX-License-Identifier: BSD-3-Clause
// Role: before a crash of the program ends its node, the launcher reads the stack and prints where.
// Invariant: how the process ends stays as it was: by the signal, at the instruction that failed.
// The program sees nothing of our handlers; with one of its own it is as without hiroba.
#pragma once

#include <signal.h>

namespace hiroba::abi {

/// From here on crashes of this process are told. On several nodes, before the program begins.
void tell_of_crashes() noexcept;

/// The action that takes the place of the default one of `number`; nullptr: the default does.
const struct sigaction* action_that_tells(int number) noexcept;
/// Whether `action` is the one above: the program is to see the default action.
bool is_action_that_tells(int number, const struct sigaction& action) noexcept;

}  // namespace hiroba::abi
