// SPDX-License-Identifier: BSD-3-Clause
// Role: puts together what the node sent, its mappings and its files.
#include "tools/run/crash_report.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include "tools/line.hpp"
#include "tools/run/unwinding.hpp"

namespace hiroba::tools {

namespace {

using net::CrashAccess;
using net::CrashBody;
using net::CrashPlace;

constexpr std::size_t frames_max = 32;

struct Mapping {
    std::string permissions;
    std::string path;
};

/// The line of /proc/<pid>/maps for `address`.
std::optional<Mapping> mapping_at(pid_t process, std::uint64_t address) {
    std::ifstream maps(fmt::format("/proc/{}/maps", process));
    for (std::string line; std::getline(maps, line);) {
        std::istringstream fields(line);
        std::uint64_t begin = 0, end = 0;
        char dash = 0;
        Mapping mapping;
        std::string offset, device, inode;
        fields >> std::hex >> begin >> dash >> end >> mapping.permissions >> offset >> device >>
            inode;
        if (address < begin || address >= end) continue;
        std::getline(fields >> std::ws, mapping.path);
        return mapping;
    }
    return std::nullopt;
}

/// What lies at the crash's address.
std::string place_of(pid_t process, const std::vector<LoadedFile>& files, const CrashBody& crash) {
    const auto thread = fmt::format("thread {} of node {}", crash.place_thread, crash.place_node);
    switch (crash.place) {
        case CrashPlace::stack_guard: return "the guard below the stack of " + thread;
        case CrashPlace::thread_guard:
            return "the guard below the stack of a thread that the program made";
        case CrashPlace::stack: return "the stack of " + thread;
        case CrashPlace::heap: return "heap, freed or not known";
        case CrashPlace::not_known: break;
    }
    if (files.empty()) return "what lies there cannot be read";
    const auto mapping = mapping_at(process, crash.address);
    if (mapping && mapping->permissions.find('x') != std::string::npos)
        if (const auto code = name_code(files, crash.address)) return "code, " + *code;
    if (const auto name = name_address(files, crash.address)) return *name;
    if (!mapping) return "nothing is mapped there";
    return fmt::format("memory of the process, {}{}{}", mapping->permissions.substr(0, 3),
                       mapping->path.empty() ? "" : ", ", mapping->path);
}

std::string_view name_of(CrashAccess access) {
    switch (access) {
        case CrashAccess::read: return "read";
        case CrashAccess::write: return "write";
        case CrashAccess::execute: return "execution";
        case CrashAccess::none: break;
    }
    return "access";
}

std::string_view name_of_signal(int number) {
    switch (number) {
        case SIGSEGV: return "SIGSEGV";
        case SIGBUS: return "SIGBUS";
        case SIGFPE: return "SIGFPE";
        case SIGILL: return "SIGILL";
        default: return "SIGABRT";
    }
}

std::string_view arithmetic(int code) {
    constexpr std::array<std::pair<int, std::string_view>, 7> names = {{
        {FPE_INTDIV, "integer division by zero"},
        {FPE_INTOVF, "integer overflow"},
        {FPE_FLTDIV, "division by zero"},
        {FPE_FLTOVF, "overflow"},
        {FPE_FLTUND, "underflow"},
        {FPE_FLTRES, "inexact result"},
        {FPE_FLTINV, "invalid operation"},
    }};
    for (const auto& [each, name] : names)
        if (each == code) return name;
    return "";
}

/// The line of the innermost frame that has one, and what was called there.
std::string innermost_line(const std::vector<CodeName>& frames) {
    const auto known = std::ranges::find_if(frames, &CodeName::has_line);
    if (known == frames.begin() || known == frames.end()) return frames.front().text;
    return fmt::format("{}, in its call of {}", known->text, std::prev(known)->text);
}

std::string host_name() {
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    return host;
}

/// "SIGFPE (integer division by zero)", "SIGSEGV: write of 0x10 (nothing is mapped there)".
std::string cause_of_crash(const CrashBody& crash, const std::string& place) {
    std::string signal{name_of_signal(crash.signal)};
    if (crash.code <= 0)
        return crash.signal == SIGABRT ? signal : signal + " (sent by the program itself)";
    if (crash.signal == SIGFPE && !arithmetic(crash.code).empty())
        return fmt::format("{} ({})", signal, arithmetic(crash.code));
    if (crash.signal != SIGSEGV && crash.signal != SIGBUS) return signal;
    if (crash.access == CrashAccess::none)
        return signal + ": access to an address that no memory can have";
    return fmt::format("{}: {} of {:#x} ({})", signal, name_of(crash.access), crash.address, place);
}

}  // namespace

std::string describe_crash(std::uint32_t rank, pid_t process, const CrashBody& crash) {
    const std::vector<LoadedFile> files = loaded_files(process);
    std::vector<std::uint64_t> codes = frames_of(process, crash.registers, frames_max);
    const bool cut = codes.size() == frames_max;
    const bool unread = codes.empty();
    if (unread) codes.push_back(crash.registers[CrashBody::instruction]);
    std::vector<CodeName> frames;
    frames.reserve(codes.size());
    const std::string_view unknown = files.empty() ? "" : " in no file";
    for (const std::uint64_t code : codes)
        frames.push_back(find_code(files, code)
                             .value_or(CodeName{"", fmt::format("{:#x}{}", code, unknown), false}));
    // The program has called us, and that is where it crashed.
    std::size_t first = 0;
    while (first < frames.size() && frames[first].object == "libhiroba.so") ++first;
    if (first == frames.size()) first = 0;
    frames.erase(frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(first));
    codes.erase(codes.begin(), codes.begin() + static_cast<std::ptrdiff_t>(first));

    std::string text =
        fmt::format("rank {} (host {}), thread {}: {}", rank, host_name(), crash.thread,
                    cause_of_crash(crash, place_of(process, files, crash)));
    text += ", at " + innermost_line(frames);
    for (std::size_t i = 0; i < frames.size(); ++i)
        text += fmt::format("\n  #{:<2} 0x{:012x} {}", i, codes[i], frames[i].text);
    if (unread)
        text += "\n  The stack cannot be read: allow ptrace in the container's seccomp profile";
    if (cut) text += "\n  and further frames";
    return text;
}

void CrashReport::add(const std::string& report) {
    const std::size_t end = report.find('\n');
    const bool whole = !told_ && end != std::string::npos;
    told_ = true;
    if (!whole) return say_line(report.substr(0, end));
    // In one write, so that lines of nodes do not come between; what cannot be written is lost.
    const std::string text = "hiroba: " + report.substr(0, end) + "." + report.substr(end) + "\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace hiroba::tools
