// SPDX-License-Identifier: BSD-3-Clause
// Role: starts the runtime's own threads. Invariant: they have all signals blocked but those of
// faults and libc's own: the program's signals are for the program's threads.
#pragma once

#include <atomic>
#include <cstdint>
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

/// Counts the service threads: each says that it has begun as its first step and that it ends as
/// its last. What had begun at one moment, less what has ended at a later one, is never more than
/// ran at any moment between them.
class RunningServiceThread {
public:
    RunningServiceThread() noexcept { begun_.fetch_add(1, std::memory_order_acq_rel); }
    RunningServiceThread(const RunningServiceThread&) = delete;
    RunningServiceThread& operator=(const RunningServiceThread&) = delete;
    ~RunningServiceThread() { ended_.fetch_add(1, std::memory_order_acq_rel); }
    static std::uint32_t begun() noexcept { return begun_.load(std::memory_order_acquire); }
    static std::uint32_t ended() noexcept { return ended_.load(std::memory_order_acquire); }

private:
    static inline std::atomic<std::uint32_t> begun_{0}, ended_{0};
};

/// Starts a thread that runs `body`; the process ends with 78 and one line if it cannot: a limit of
/// processes, or a filter of system calls.
/// @param purpose  what it does, to stand behind "the thread that"
template <class Body>
std::thread start_service_thread(const char* purpose, Body&& body) {
    const ServiceThreadStart blocked;
    try {
        return std::thread([body = std::forward<Body>(body)]() mutable {
            const RunningServiceThread counted;
            body();
        });
    } catch (const std::system_error& error) {
        ServiceThreadStart::fail(purpose, error.code().value());
    }
}

}  // namespace hiroba
