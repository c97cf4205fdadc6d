// SPDX-License-Identifier: BSD-3-Clause
// Role: unwinds the threads of the nodes with libdw, by ptrace.
#include "tools/run/stacks.hpp"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "base/fatal.hpp"
#include "tools/line.hpp"
#include "tools/run/jobs.hpp"
#include "tools/run/unwinding.hpp"

namespace hiroba::tools {

namespace {

constexpr std::size_t frames_max = 32;

/// Functions a thread waits in, and for what. The innermost on a stack decides.
constexpr std::array<std::pair<std::string_view, std::string_view>, 11> waits = {{
    {"TeamLink::await_fork", "the next parallel region"},
    {"TeamLink::join", "the other nodes at the end of the region"},
    {"TeamLink::finish_barrier", "the other nodes at a barrier"},
    {"TeamLink::receive", "a message of another node of its team"},
    {"BlockLock::", "the lock of a block of memory"},
    {"LockTable", "a lock of the program or of the runtime"},
    {"LocalBarrier::", "threads of its own node"},
    {"Gate::", "threads of its own node"},
    {"Endpoint::serve", "messages (the node's service thread)"},
    {"run_exit", "an exit of the program on another node"},
    {"Endpoint::", "messages of other nodes"},
}};

struct Frame {
    Dwarf_Addr address;
    std::string function;
    std::string file;
};

int add_frame(Dwfl_Frame* state, void* frames_at) {
    auto& frames = *static_cast<std::vector<Frame>*>(frames_at);
    Frame frame{0, "??", "no file"};
    frame.function = function_of(state, &frame.address, &frame.file);
    frames.push_back(std::move(frame));
    return frames.size() < frames_max ? DWARF_CB_OK : DWARF_CB_ABORT;
}

void print_thread(std::uint32_t rank, pid_t thread, const std::vector<Frame>& frames) {
    std::vector<std::string> functions;
    functions.reserve(frames.size());
    for (const Frame& frame : frames) functions.push_back(frame.function);
    const std::string wait = waits_for(functions);
    std::string text = fmt::format("rank {}, thread {}: {}\n", rank, thread,
                                   frames.empty() ? "its stack cannot be read"
                                   : wait.empty() ? "runs"
                                                  : "waits for " + wait);
    for (std::size_t i = 0; i < frames.size(); ++i)
        text += fmt::format("  #{:<2} 0x{:012x} {} ({})\n", i, frames[i].address,
                            frames[i].function, frames[i].file);
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

int print_one(Dwfl_Thread* thread, void* rank) {
    std::vector<Frame> frames;
    dwfl_thread_getframes(thread, &add_frame, &frames);
    print_thread(*static_cast<const std::uint32_t*>(rank), dwfl_thread_tid(thread), frames);
    return DWARF_CB_OK;
}

void print_node(std::uint32_t rank, pid_t process) {
    const DwflSession session = attach_to(process);
    if (session == nullptr || dwfl_getthreads(session.get(), &print_one, &rank) != DWARF_CB_OK)
        say_line(
            fmt::format("the stacks of rank {} (process {}) cannot be read: {}. Allow ptrace "
                        "in the container's seccomp profile",
                        rank, process, dwfl_errmsg(-1)));
}

/// A mask of /proc/<pid>/.../status, by its name; all zero when it cannot be read.
std::uint64_t signal_mask(const std::filesystem::path& status, std::string_view name) {
    std::ifstream file(status);
    for (std::string line; std::getline(file, line);)
        if (line.starts_with(name))
            return std::strtoull(line.c_str() + name.size() + 1, nullptr, 16);
    return 0;
}

/// Whether the thread would not die of the signals in `bits`: it blocks them, or awaits signals,
/// during which the kernel shows them as open. It may go from one to the other between two looks.
bool holds_back(const std::filesystem::path& task, std::uint64_t bits) {
    const auto blocks = [&] { return (signal_mask(task / "status", "SigBlk:") & bits) == bits; };
    const auto awaits = [&] {
        std::ifstream file(task / "syscall");
        long call = -1;
        return file >> call && call == SYS_rt_sigtimedwait;
    };
    return blocks() || awaits() || blocks();
}

}  // namespace

std::string waits_for(const std::vector<std::string>& functions) {
    // Endpoint waits on behalf of its caller: the next frames say whose.
    std::string general;
    for (const std::string& function : functions)
        for (const auto& [part, wait] : waits) {
            if (function.find(part) == std::string::npos) continue;
            const bool is_general = part == "Endpoint::" || part == "TeamLink::receive";
            if (!is_general) return std::string(wait);
            if (general.empty() || part == "TeamLink::receive") general = wait;
            break;
        }
    return general;
}

void print_stacks(const std::vector<NodeProcess>& nodes, std::uint32_t first_rank) {
    for (std::uint32_t i = 0; i < nodes.size(); ++i)
        if (nodes[i].alive) print_node(first_rank + i, nodes[i].pid);
}

bool uses_user_signal(pid_t process) {
    constexpr std::uint64_t bit = std::uint64_t{1} << (SIGUSR1 - 1);
    const std::filesystem::path root = fmt::format("/proc/{}", process);
    if (((signal_mask(root / "status", "SigCgt:") | signal_mask(root / "status", "SigIgn:")) &
         bit) != 0)
        return true;
    std::error_code failure;
    bool all_hold_back = true;
    for (const auto& task : std::filesystem::directory_iterator(root / "task", failure))
        all_hold_back = all_hold_back && holds_back(task.path(), bit);
    return all_hold_back;
}

int ask_for_stacks(const std::string& process) {
    const auto job = find_job(process, "hiroba stacks PID");
    if (!job) return report(job.error());
    const pid_t pid = job->launcher;
    sigval value{};
    value.sival_int = stacks_request;
    if (::sigqueue(pid, SIGUSR1, value) == 0) return 0;
    say_line(fmt::format("process {} cannot be signalled: {}. Ask as the user who runs it", pid,
                         ::strerror(errno)));
    return exit_environment;
}

}  // namespace hiroba::tools
