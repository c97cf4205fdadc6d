// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/unwinding.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

namespace hiroba::tools {

namespace {

constexpr unsigned stack_pointer_register = 7;  // DWARF's number of rsp (psABI, figure 3.36)
constexpr std::size_t frames_max = 256;
/// No frame is larger; farther apart, two lie on different stacks.
constexpr std::uint64_t frame_bytes_max = std::uint64_t{64} << 20;

std::string readable(const char* name) {
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> text(
        abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
    return status == 0 ? text.get() : name;
}

struct Frame {
    std::uint64_t stack_pointer = 0;
    HoldingFrame is;
    std::string file;
};

struct Search {
    std::uint64_t address;
    const std::vector<std::string>& inner;
    std::vector<Frame> frames;
    std::optional<HoldingFrame> found;
};

int add_frame(Dwfl_Frame* state, void* search_at) {
    auto& frames = static_cast<Search*>(search_at)->frames;
    Frame frame;
    Dwarf_Word stack_pointer = 0;
    if (::dwfl_frame_reg(state, stack_pointer_register, &stack_pointer) != 0) return DWARF_CB_ABORT;
    frame.stack_pointer = stack_pointer;
    Dwarf_Addr code = 0;
    frame.is.function = function_of(state, &code, &frame.file);
    frame.is.code = code - 1;  // a return address lies behind the call
    frames.push_back(std::move(frame));
    return frames.size() < frames_max ? DWARF_CB_OK : DWARF_CB_ABORT;
}

/// From where a frame's stack pointer is up to where the next one's is lie its variables.
int search_thread(Dwfl_Thread* thread, void* search_at) {
    auto& search = *static_cast<Search*>(search_at);
    search.frames.clear();
    ::dwfl_thread_getframes(thread, &add_frame, search_at);
    bool inner_seen = false;
    for (std::size_t i = 0; i + 1 < search.frames.size(); ++i) {
        const Frame& frame = search.frames[i];
        inner_seen |= std::ranges::find(search.inner, frame.is.function) != search.inner.end();
        const std::uint64_t bytes = search.frames[i + 1].stack_pointer - frame.stack_pointer;
        const bool holds = search.address - frame.stack_pointer < bytes && bytes < frame_bytes_max;
        if (!holds || !inner_seen) continue;
        search.found = frame.is;
        return DWARF_CB_ABORT;
    }
    return DWARF_CB_OK;
}

}  // namespace

DwflSession attach_to(pid_t process) {
    static char* no_debug_path = nullptr;
    static const Dwfl_Callbacks callbacks = {dwfl_linux_proc_find_elf, dwfl_standard_find_debuginfo,
                                             nullptr, &no_debug_path};
    DwflSession session(::dwfl_begin(&callbacks), &::dwfl_end);
    const bool attached = session && ::dwfl_linux_proc_report(session.get(), process) == 0 &&
                          ::dwfl_report_end(session.get(), nullptr, nullptr) == 0 &&
                          ::dwfl_linux_proc_attach(session.get(), process, false) == 0;
    if (!attached) session.reset();
    return session;
}

std::string function_of(Dwfl_Frame* state, Dwarf_Addr* address, std::string* file) {
    Dwarf_Addr code = 0;
    bool is_activation = false;
    if (!::dwfl_frame_pc(state, &code, &is_activation)) return "??";
    if (address != nullptr) *address = code;
    // A return address may lie behind the function that made the call.
    const Dwarf_Addr looked_up = is_activation ? code : code - 1;
    Dwfl* const process = ::dwfl_thread_dwfl(::dwfl_frame_thread(state));
    Dwfl_Module* const module = ::dwfl_addrmodule(process, looked_up);
    if (module == nullptr) return "??";
    const char* const path =
        ::dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
    if (file != nullptr && path != nullptr) *file = std::filesystem::path(path).filename().string();
    const char* const name = ::dwfl_module_addrname(module, looked_up);
    return name != nullptr ? readable(name) : "??";
}

std::optional<HoldingFrame> frame_that_holds(pid_t process, std::uint64_t address,
                                             const std::vector<std::string>& inner) {
    const DwflSession session = attach_to(process);
    if (session == nullptr) return std::nullopt;
    Search search{address, inner, {}, std::nullopt};
    ::dwfl_getthreads(session.get(), &search_thread, &search);
    return search.found;
}

}  // namespace hiroba::tools
