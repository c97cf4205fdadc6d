// SPDX-License-Identifier: BSD-3-Clause
// Role: gives all that a run allocates the same addresses in every run, so that pointers on stacks
// do not make equal states look different. Programs linked with run_arena.cpp only. Invariant:
// memory of a run is gone with it; nothing that outlives a run is allocated in one but under
// OutsideRunArena. One thread.
#pragma once

namespace hiroba::sim_test {

/// While one lives, operator new takes from the arena, which begins anew with each.
class RunArena {
public:
    RunArena() noexcept;
    RunArena(const RunArena&) = delete;
    ~RunArena();
};

/// While one lives, operator new takes from the heap as ever.
class OutsideRunArena {
public:
    OutsideRunArena() noexcept;
    OutsideRunArena(const OutsideRunArena&) = delete;
    ~OutsideRunArena();

private:
    bool inside_;
};

}  // namespace hiroba::sim_test
