// SPDX-License-Identifier: BSD-3-Clause
// Role: what the program tells libc by name and libc has no question for: conversions of printf()
// and domains of gettext(). Node 0 writes each such call down; the others repeat them.
// Invariant: the list is in global memory; node 0 alone writes it.
#pragma once

namespace hiroba::abi {

struct Registration;

/// Node 0: the first call, null when there was none.
const Registration* registrations() noexcept;
/// Another node, before its threads run: repeats what it has not yet.
void repeat_registrations(const Registration* first) noexcept;

}  // namespace hiroba::abi
