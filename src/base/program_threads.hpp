// SPDX-License-Identifier: BSD-3-Clause
// Role: whether the calling thread is the only one of the program in this process, for libraries
// that replace no function which starts threads.
#pragma once

#include <cstdint>

namespace hiroba {

class ProgramThreads {
public:
    ProgramThreads() noexcept;
    ProgramThreads(const ProgramThreads&) = delete;
    ProgramThreads& operator=(const ProgramThreads&) = delete;
    ~ProgramThreads();

    /// Whether all threads but the caller are service threads (base/service_thread.hpp). False
    /// where others cannot be told from those of the program: a library's own, or no /proc.
    /// One system call, of some 300 ns.
    bool is_caller_alone() const noexcept;

private:
    int tasks_ = -1;  ///< /proc/self/task, whose number of links counts the threads
};

}  // namespace hiroba
