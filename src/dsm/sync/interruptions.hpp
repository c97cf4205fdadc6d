// SPDX-License-Identifier: BSD-3-Clause
// Role: what a long wait in the runtime is interrupted for: signal handlers of the program, which
// run only while their thread executes the program.
// Invariant: nothing of the runtime is held while `serve` is called.
#pragma once

namespace hiroba::dsm {

struct Interruptions {
    bool (*pending)() noexcept = nullptr;  ///< asked while waiting, on the runtime stack
    void (*serve)() noexcept = nullptr;    ///< called while it says so, on the program's

    bool are_pending() const noexcept { return pending != nullptr && pending(); }
};

}  // namespace hiroba::dsm
