// SPDX-License-Identifier: BSD-3-Clause
// Role: starts the runtime's own threads. Invariant: they have all signals blocked but those of
// faults: the program's signals are for the program's threads.
#pragma once

#include <thread>
#include <utility>

namespace hiroba {

/// Says what to change when a thread did not start with `error`, as the end of a line.
const char* thread_advice(int error) noexcept;

/// Blocks signals for the thread that is to be started; puts the caller's mask back.
class ServiceThreadStart {
public:
    ServiceThreadStart() noexcept;
    ServiceThreadStart(const ServiceThreadStart&) = delete;
    ServiceThreadStart& operator=(const ServiceThreadStart&) = delete;
    ~ServiceThreadStart();
    /// One line and exit status 78.
    [[noreturn]] static void fail(const char* purpose, int error) noexcept;

private:
    unsigned long former_ = 0;  ///< the kernel's sigset_t
};

/// Starts a thread that runs `body`; the process ends with 78 and one line if it cannot: a limit of
/// processes, or a filter of system calls.
/// @param purpose  what it does, to stand behind "the thread that"
template <class Body>
std::thread start_service_thread(const char* purpose, Body&& body) {
    const ServiceThreadStart blocked;
    try {
        return std::thread(std::forward<Body>(body));
    } catch (const std::system_error& error) {
        ServiceThreadStart::fail(purpose, error.code().value());
    }
}

}  // namespace hiroba
