// SPDX-License-Identifier: BSD-3-Clause
// Role: calls that name a file from a directory which another node has opened: the directory's path
// is asked for, and the call made here with a whole path.
// Invariant: all nodes see the same files; a path that is whole or a directory of this node's is
// left as it is.
#pragma once

#include "abi/libc/calls/system_calls.hpp"

namespace hiroba::abi {

/// The arguments of such a call with whole paths in them, for the scope.
class WholePaths {
public:
    WholePaths(long number, const CallArguments& given) noexcept;

    /// 0, or the negated error number the call ends with.
    long failure() const noexcept { return failure_; }
    const CallArguments& arguments() const noexcept { return arguments_; }

private:
    void complete(unsigned directory, unsigned path, char* room) noexcept;

    static constexpr unsigned path_bytes = 4096;
    CallArguments arguments_;
    long failure_ = 0;
    char rooms_[2][path_bytes];
};

/// Whether a call has a path that begins at a descriptor of another node.
bool begins_elsewhere(long number, const CallArguments& given) noexcept;

}  // namespace hiroba::abi
