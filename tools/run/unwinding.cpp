// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/unwinding.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <tuple>
#include <vector>

namespace hiroba::tools {

namespace {

constexpr unsigned stack_pointer_register = 7;  // DWARF's number of rsp (psABI, figure 3.36)
constexpr std::size_t frames_max = 256;
/// No frame is larger; farther apart, two lie on different stacks.
constexpr std::uint64_t frame_bytes_max = std::uint64_t{64} << 20;

using FrameRegister = int(Dwfl_Frame*, unsigned, Dwarf_Word*);
/// dwfl_frame_reg(), which libdw has since 0.188. nullptr: older, and frames of variables are not
/// named.
FrameRegister* frame_register() {
    static auto* const found =
        reinterpret_cast<FrameRegister*>(::dlsym(RTLD_DEFAULT, "dwfl_frame_reg"));
    return found;
}

std::string readable(const char* name) {
    // A name of C stays as it is: it might be a type's short name.
    if (!std::string_view(name).starts_with("_Z")) return name;
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
    FrameRegister* const read = frame_register();
    if (read == nullptr || read(state, stack_pointer_register, &stack_pointer) != 0)
        return DWARF_CB_ABORT;
    frame.stack_pointer = stack_pointer;
    Dwarf_Addr code = 0;
    frame.is.function = function_of(state, &code, &frame.file);
    frame.is.code = code - 1;  // a return address lies behind the call
    frames.push_back(std::move(frame));
    return frames.size() < frames_max ? DWARF_CB_OK : DWARF_CB_ABORT;
}

/// Looks for the frame that holds the address: a frame's variables lie between its own stack
/// pointer and that of its caller.
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

/// A thread that waits, and how libdwfl gets at it.
struct Waiting {
    pid_t process;
    int memory;
    Registers registers;
    std::size_t frames_max;
    std::vector<std::uint64_t> codes;
};

pid_t next_thread(Dwfl*, void* waiting, void** thread) {
    if (*thread != nullptr) return 0;
    *thread = waiting;
    return static_cast<Waiting*>(waiting)->process;
}

bool get_thread(Dwfl*, pid_t, void* waiting, void** thread) {
    *thread = waiting;
    return true;
}

bool read_word(int memory, std::uint64_t address, std::uint64_t& word) {
    return ::pread(memory, &word, sizeof word, static_cast<off_t>(address)) == sizeof word;
}

bool read_memory(Dwfl*, Dwarf_Addr address, Dwarf_Word* result, void* waiting) {
    std::uint64_t word = 0;
    if (!read_word(static_cast<Waiting*>(waiting)->memory, address, word)) return false;
    *result = word;
    return true;
}

bool set_registers(Dwfl_Thread* thread, void* waiting) {
    const Registers& registers = static_cast<Waiting*>(waiting)->registers;
    std::array<Dwarf_Word, std::tuple_size_v<Registers>> words;
    std::ranges::copy(registers, words.begin());
    ::dwfl_thread_state_register_pc(thread, words.back());
    return ::dwfl_thread_state_registers(thread, 0, words.size(), words.data());
}

int add_code(Dwfl_Frame* state, void* waiting_at) {
    auto& waiting = *static_cast<Waiting*>(waiting_at);
    Dwarf_Addr code = 0;
    bool is_activation = false;
    if (!::dwfl_frame_pc(state, &code, &is_activation)) return DWARF_CB_ABORT;
    waiting.codes.push_back(is_activation ? code : code - 1);
    return waiting.codes.size() < waiting.frames_max ? DWARF_CB_OK : DWARF_CB_ABORT;
}

int no_other_file(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*,
                  GElf_Word, char**) {
    return -1;
}

/// Whether `address` lies in a file of code, and not in a mapping of our own memory, or in none.
bool is_in_file(Dwfl* session, std::uint64_t address) {
    Dwfl_Module* const module = ::dwfl_addrmodule(session, address);
    GElf_Addr bias = 0;
    return module != nullptr && ::dwfl_module_getelf(module, &bias) != nullptr;
}

/// Where an instruction was before the rewriter of atomics has moved it, with the registers it has
/// there, to no file's memory: a jump to what followed it follows it there (omp/atomic/trampoline).
std::optional<std::uint64_t> place_of_moved(Dwfl* session, int memory, std::uint64_t code) {
    constexpr std::uint8_t jump = 0xe9;
    constexpr std::size_t instruction_bytes_max = 15;
    for (std::size_t length = 1; length <= instruction_bytes_max; ++length) {
        std::uint64_t word = 0;
        if (!read_word(memory, code + length, word)) return std::nullopt;
        const auto distance = static_cast<std::int32_t>(word >> 8);
        const std::uint64_t behind =
            code + length + 5 + static_cast<std::uint64_t>(std::int64_t{distance});
        if ((word & 0xff) == jump && is_in_file(session, behind)) return behind - 1;
    }
    return std::nullopt;
}

/// A call to where no code is: its return address is all that it has pushed.
void leave_nowhere(Waiting& waiting) {
    std::uint64_t& code = waiting.registers.back();
    std::uint64_t& stack = waiting.registers[stack_pointer_register];
    waiting.codes.push_back(code);
    if (read_word(waiting.memory, stack, code)) code -= 1;
    stack += sizeof code;
}

/// What `process` has mapped; nullptr when that cannot be read.
DwflSession modules_of(pid_t process, const Dwfl_Callbacks& callbacks) {
    DwflSession session(::dwfl_begin(&callbacks), &::dwfl_end);
    if (!session || ::dwfl_linux_proc_report(session.get(), process) != 0 ||
        ::dwfl_report_end(session.get(), nullptr, nullptr) != 0)
        session.reset();
    return session;
}

}  // namespace

DwflSession attach_to(pid_t process) {
    static char* no_debug_path = nullptr;
    static const Dwfl_Callbacks callbacks = {dwfl_linux_proc_find_elf, dwfl_standard_find_debuginfo,
                                             nullptr, &no_debug_path};
    DwflSession session = modules_of(process, callbacks);
    if (session && ::dwfl_linux_proc_attach(session.get(), process, false) != 0) session.reset();
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

std::vector<std::uint64_t> frames_of(pid_t process, const Registers& registers,
                                     std::size_t frames_max) {
    // Unwinding needs .eh_frame alone, and waiting for a server of debug information is no option.
    static const Dwfl_Callbacks callbacks = {dwfl_linux_proc_find_elf, &no_other_file, nullptr,
                                             nullptr};
    static const Dwfl_Thread_Callbacks thread = {&next_thread,   &get_thread, &read_memory,
                                                 &set_registers, nullptr,     nullptr};
    const int memory =
        ::open(("/proc/" + std::to_string(process) + "/mem").c_str(), O_RDONLY | O_CLOEXEC);
    const DwflSession session = modules_of(process, callbacks);
    Waiting waiting{process, memory, registers, frames_max, {}};
    if (memory >= 0 && session != nullptr) {
        std::uint64_t& code = waiting.registers.back();
        if (!is_in_file(session.get(), code)) {
            if (const auto moved = place_of_moved(session.get(), memory, code))
                code = *moved;
            else
                leave_nowhere(waiting);
        }
        if (::dwfl_attach_state(session.get(), nullptr, process, &thread, &waiting))
            ::dwfl_getthread_frames(session.get(), process, &add_code, &waiting);
    }
    if (memory >= 0) ::close(memory);
    return waiting.codes;
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
