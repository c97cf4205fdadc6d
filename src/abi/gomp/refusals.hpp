// SPDX-License-Identifier: BSD-3-Clause
// Role: what an entry point is defined by whose construct is not built.
// Invariant: its name lies in a section of its own, where the launcher finds what this build
// refuses.
#pragma once

#include "abi/gomp/runtime.hpp"

#define HIROBA_REFUSED(name, construct)                                                           \
    [[gnu::section("hiroba_refused"), gnu::used]] static constexpr char refused_##name[] = #name; \
    void name() { hiroba::abi::refuse(#name, construct); }
