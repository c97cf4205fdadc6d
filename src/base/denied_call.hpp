// SPDX-License-Identifier: BSD-3-Clause
// Role: tells a system call that is not allowed from one that lacks something. The errors are those
// that the profiles of containers give.
#pragma once

#include <cerrno>

namespace hiroba {

/// @param error  the errno of a call that needs no privilege
constexpr bool is_denied_call(int error) noexcept { return error == EPERM || error == ENOSYS; }

/// Follows the name of the call and its error in a line for people.
inline constexpr const char* denied_call_advice =
    "the system refuses the call itself: allow it in the container's seccomp profile (docker run "
    "--security-opt seccomp=unconfined)";

}  // namespace hiroba
