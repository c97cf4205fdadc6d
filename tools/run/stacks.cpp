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

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string_view>
#include <utility>

#include "base/fatal.hpp"
#include "tools/line.hpp"
#include "tools/run/jobs.hpp"
#include "tools/run/symbol.hpp"
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
    {"Table::lock", "a lock of the program or of the runtime"},
    {"LocalBarrier::", "threads of its own node"},
    {"Gate::", "threads of its own node"},
    {"Endpoint::serve", "messages (the node's service thread)"},
    {"run_exit", "an exit of the program on another node"},
    {"Endpoint::", "messages of other nodes"},
}};

int add_frame(Dwfl_Frame* state, void* frames_at) {
    auto& frames = *static_cast<std::vector<CallFrame>*>(frames_at);
    CallFrame frame{0, "??", "no file"};
    frame.function = function_of(state, &frame.address, &frame.file);
    frames.push_back(std::move(frame));
    return frames.size() < frames_max ? DWARF_CB_OK : DWARF_CB_ABORT;
}

std::vector<std::string> functions_of(std::span<const CallFrame> frames) {
    std::vector<std::string> functions;
    functions.reserve(frames.size());
    for (const CallFrame& frame : frames) functions.push_back(frame.function);
    return functions;
}

void print_thread(std::uint32_t rank, pid_t thread, const std::vector<CallFrame>& frames) {
    const std::string wait = waits_for(functions_of(frames));
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
    std::vector<CallFrame> frames;
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

/// Libraries whose calls are what a thread waits in.
bool is_of_system(const std::string& file) {
    constexpr std::array<std::string_view, 9> names = {
        "libhiroba.so",       "libc.so",        "libpthread.so",
        "ld-linux-x86-64.so", "libstdc++.so",   "libgcc_s.so",
        "libc++.so",          "libgfortran.so", "[vdso]"};
    return file == "no file" || std::ranges::any_of(names, [&](std::string_view name) {
               return file.starts_with(name);
           });
}

struct WaitingThread {
    pid_t thread = 0;
    ProgramWait wait;
};

/// What threads of one node wait for.
struct NodeWaits {
    pid_t process = 0;
    std::vector<WaitingThread> threads;
    bool paced = false;  ///< one waits for a time, or for somebody who types
};

/// Whether the thread reads the terminal that is its standard input.
bool reads_terminal(pid_t process, pid_t thread) {
    std::ifstream file(fmt::format("/proc/{}/task/{}/syscall", process, thread));
    long call = -1;
    std::string descriptor;
    if (!(file >> call >> descriptor) || call != SYS_read || descriptor != "0x0") return false;
    std::error_code failure;
    const auto target =
        std::filesystem::read_symlink(fmt::format("/proc/{}/fd/0", process), failure).string();
    return target.starts_with("/dev/pts/") || target.starts_with("/dev/tty");
}

int add_wait(Dwfl_Thread* thread, void* waits_at) {
    auto& waits = *static_cast<NodeWaits*>(waits_at);
    std::vector<CallFrame> frames;
    dwfl_thread_getframes(thread, &add_frame, &frames);
    const auto wait = wait_of(frames);
    const pid_t number = dwfl_thread_tid(thread);
    waits.paced |= reads_terminal(waits.process, number);
    if (!wait) return DWARF_CB_OK;
    waits.paced |= wait->what.find("sleep") != std::string::npos;
    waits.threads.push_back({number, *wait});
    return DWARF_CB_OK;
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

std::optional<ProgramWait> wait_of(const std::vector<CallFrame>& frames) {
    const auto own = std::ranges::find_if(
        frames, [](const CallFrame& frame) { return !is_of_system(frame.file); });
    if (own == frames.begin() || own == frames.end() || own->function == "_start")
        return std::nullopt;
    const std::span<const CallFrame> inner(frames.begin(), own);
    const std::string& called = inner.back().function;
    const bool is_openmp = called.starts_with("hiroba::") || called.starts_with("GOMP_") ||
                           called.starts_with("__kmpc_") || called.starts_with("omp_");
    const std::string wait = is_openmp ? waits_for(functions_of(inner)) : "";
    return ProgramWait{wait.empty() ? "in " + called.substr(0, called.find('(')) : "for " + wait,
                       own->address - 1};
}

void tell_waits(const std::vector<NodeProcess>& nodes, std::uint32_t first_rank) {
    constexpr std::size_t told_max = 4;
    std::size_t found = 0;
    std::string text;
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
        if (!nodes[i].alive) continue;
        NodeWaits waits{nodes[i].pid, {}, false};
        const DwflSession session = attach_to(nodes[i].pid);
        if (session == nullptr) return;
        dwfl_getthreads(session.get(), &add_wait, &waits);
        if (waits.paced) return;
        const auto files = loaded_files(nodes[i].pid);
        for (const WaitingThread& each : waits.threads)
            if (++found <= told_max)
                text += fmt::format("{}rank {}, thread {} waits {} at {}", text.empty() ? "" : "; ",
                                    first_rank + i, each.thread, each.wait.what,
                                    name_code(files, each.wait.address).value_or("?"));
    }
    if (found == 0) return;
    if (found > told_max) text += fmt::format("; and {} more", found - told_max);
    say_line("nothing has run for a while: " + text + ". `hiroba stacks` shows all");
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
