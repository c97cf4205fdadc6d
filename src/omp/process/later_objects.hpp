// SPDX-License-Identifier: BSD-3-Clause
// Role: libraries while the dynamic loader is opening them: which ones are new, whether all that
// they need is there, and whether their initializers will run.
// Invariant: reads and writes only what the loader has mapped and listed.
#pragma once

#include <cstdint>
#include <vector>

#include "omp/process/loaded_objects.hpp"

namespace hiroba::omp {

/// The biases of all objects that are loaded now, by which objects_since() knows them.
std::vector<std::uintptr_t> loaded_biases();

/// The objects that are loaded and were not when `known` was made, in the loader's order.
std::vector<LoadedObject> objects_since(const std::vector<std::uintptr_t>& known);

/// Whether every library that one of `objects` needs (DT_NEEDED) is loaded: the loader will map
/// nothing more for them.
bool needs_are_met(const std::vector<LoadedObject>& objects);

/// Below which address the loader of another node must find room to put an object that was opened
/// here, and lies where the first of `objects` does, and what it needs, the others, at the same
/// places.
/// @param top  below which it had room here; another thread, or a search for it, may have mapped
///             something there first. 0: that is certain
std::uintptr_t top_of_room(std::uintptr_t top, const std::vector<LoadedObject>& objects) noexcept;

/// Has the loader find no initializers in `object` (DT_INIT, DT_INIT_ARRAY). Between its mapping
/// and its relocation, when the dynamic section can be written and has been read.
void hold_back_initializers(const LoadedObject& object) noexcept;

/// Whether hold_back_initializers() has been called for it, or it has none.
bool has_no_initializers(const LoadedObject& object) noexcept;

}  // namespace hiroba::omp
