// SPDX-License-Identifier: BSD-3-Clause
// Role: record locks of a process (fcntl with F_SETLK and its kin, lockf). To the program all nodes
// are one process, to the kernel each is one: so node 0 has the locks of all.
// Invariant: node 0 has at most one descriptor open of its own for such a file, or closes none: the
// kernel frees all locks that a process has on a file as soon as it closes any of its descriptors.
// Locks of an open file (F_OFD_SETLK, flock) are as ever.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "abi/libc/calls/interruptions.hpp"
#include "base/bytes.hpp"

namespace hiroba::abi {

struct CallArguments;

/// Numbered behind those of signals.
enum class LockCall : std::int64_t {
    request = record_lock_call,  ///< fcntl() on node 0
    note,                        ///< the owner of a descriptor is told that its file has locks
    drop                         ///< a descriptor has been closed
};

/// A call that is one for node 0, which has the file otherwise: its outcome. None: any other.
std::optional<long> lock_for_job(long number, const CallArguments& arguments) noexcept;

/// For another node, in a thread that serves it.
std::int64_t note_locks_here(const CallArguments& words) noexcept;
std::int64_t drop_locks_here(const CallArguments& words) noexcept;
/// Makes the call that is to be made of a request: fcntl() of a descriptor here.
/// @return 0 or a negated error number
std::int64_t prepare_lock_here(CallArguments& words, std::byte* data) noexcept;

/// While it exists, the program closes a descriptor of this node: as on one machine, the locks on
/// its file end.
class ClosingFile {
public:
    explicit ClosingFile(long fd) noexcept;
    ~ClosingFile();
    ClosingFile(const ClosingFile&) = delete;
    ClosingFile& operator=(const ClosingFile&) = delete;

private:
    dev_t device_ = 0;
    ino_t file_ = 0;
    bool has_locks_ = false;
};

/// Closes a descriptor that is not the program's, or keeps it where that would end locks.
void close_beside_locks(int fd) noexcept;

}  // namespace hiroba::abi
