// SPDX-License-Identifier: BSD-3-Clause
// Role: which shared libraries hiroba itself has loaded into the process, and which descriptors
// these have opened: a transport's. They serve the node, not the program, so their data,
// allocations and descriptors stay private to it. Invariant: what was there before a
// LoadingOwnLibraries began is never counted among them: the program may use it too.
#pragma once

#include <cstdint>

namespace hiroba {

/// How an own library ends when the process calls exit().
enum class AtExit : std::uint8_t {
    /// Its finalizers run, as any library's do.
    finalize,
    /// Its finalizers never run. For a transport: other threads still poll it, and what runs at
    /// exit after its finalizers (end of the job, the program's own) still uses shared memory.
    leave_usable,
};

/// While one exists, all objects that are loaded and descriptors that are opened are hiroba's own,
/// and stay so.
/// Thread: one; before the program's first thread.
class LoadingOwnLibraries {
public:
    explicit LoadingOwnLibraries(AtExit at_exit) noexcept;
    ~LoadingOwnLibraries();
    LoadingOwnLibraries(const LoadingOwnLibraries&) = delete;
    LoadingOwnLibraries& operator=(const LoadingOwnLibraries&) = delete;

private:
    AtExit at_exit_;
};

/// Keeps the loader from giving this library to who asks for one of its name, who gets the
/// system's.
/// @param handle  of dlopen()
/// Thread: as LoadingOwnLibraries.
void hide_name(void* handle) noexcept;

/// @param bias  where the object lies, as dl_phdr_info::dlpi_addr
/// Thread: any; takes no lock, allocates nothing.
bool is_own_library(std::uintptr_t bias) noexcept;

/// Whether code at `address` is of such a library. As is_own_library(); a few comparisons.
bool is_own_library_code(std::uintptr_t address) noexcept;

/// Counts in what own libraries have opened since they were loaded, if any was: the program has not
/// begun, so no other thread has. What they open after it has is told apart by its number instead.
/// Thread: as LoadingOwnLibraries.
void note_own_descriptors() noexcept;
/// As is_own_library().
bool is_own_descriptor(int fd) noexcept;

}  // namespace hiroba
