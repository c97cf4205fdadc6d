// SPDX-License-Identifier: BSD-3-Clause
// Role: see program_threads.hpp.
#include "base/program_threads.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/service_thread.hpp"

namespace hiroba {

ProgramThreads::ProgramThreads() noexcept
    : tasks_(::open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}

ProgramThreads::~ProgramThreads() {
    if (tasks_ >= 0) ::close(tasks_);
}

// A directory has two links; the kernel adds one for each thread. A service thread that begins or
// ends meanwhile is counted by the kernel alone, or by neither: then the answer is false.
bool ProgramThreads::is_caller_alone() const noexcept {
    constexpr std::uint64_t links_of_directory = 2;
    const std::uint32_t begun = RunningServiceThread::begun();
    struct stat found {};
    if (tasks_ < 0 || ::fstat(tasks_, &found) != 0) return false;
    const std::uint32_t services = begun - RunningServiceThread::ended();
    return found.st_nlink == links_of_directory + services + 1;
}

}  // namespace hiroba
