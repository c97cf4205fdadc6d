// SPDX-License-Identifier: BSD-3-Clause
// Role: texts of libc's that the program may keep: names of locales, messages, words of a language.
// libc has them in files that each node has mapped somewhere else, or in its own heap.
// Invariant: the program's copy lies in global memory and stays; one text has one copy on a node.
#pragma once

namespace hiroba::abi {

/// The program's copy; `text` itself where it needs none, or where there is no room.
const char* keep_text(const char* text) noexcept;

/// The same for a caller at `return_address`.
char* kept_for(char* text, const void* return_address) noexcept;

}  // namespace hiroba::abi
