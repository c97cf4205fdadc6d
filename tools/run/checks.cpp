// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/checks.hpp"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <charconv>

#include "tools/run/program.hpp"

namespace hiroba::tools {

Result<std::uint32_t> count_option(const char* option, const std::string& text, std::uint32_t max) {
    std::uint32_t value = 0;
    const char* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, value);
    if (parsed.ec != std::errc() || parsed.ptr != end || value < 1 || value > max)
        return Error{ErrorKind::usage, fmt::format("{} {}: wanted a whole number from 1 to {}. "
                                                   "Change {}",
                                                   option, text, max, option)};
    return value;
}

void fill_standard_descriptors() {
    int fd;
    do {
        fd = ::open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) ::close(fd);
}

Result<void> look_up_program(RunPlan& plan) {
    auto program = find_program(plan.command[0]);
    if (!program) return program.error();
    plan.program = *program;
    if (!plan.spmd) plan.spmd = is_acp_program(plan.program);
    auto joined = look_up_joined(plan.command, plan.program, plan.nodes, plan.spmd);
    if (!joined) return joined.error();
    plan.joined = std::move(*joined);
    if (plan.spmd) return {};
    plan.calls_mpi = plan.nodes > 1 && calls_mpi(plan.program);
    if (const std::string library = spmd_library_of(plan.program);
        plan.nodes > 1 && !library.empty())
        return Error{
            ErrorKind::usage,
            fmt::format("{} is linked with {}: every node is to enter its main. Use hiroba "
                        "run --spmd",
                        plan.command[0], library)};
    if (auto fit = check_can_take_over(plan.program); !fit) return fit.error();
    if (plan.nodes > 1)
        if (auto fixed = check_can_be_fixed(plan.program); !fixed) return fixed.error();
    auto library = find_library();
    if (!library) return library.error();
    plan.library = *library;
    if (auto known = check_versions(plan.program, plan.library); !known) return known;
    return check_names(plan.program, plan.library);
}

namespace {

Error denied(const std::string& call, const std::string& why) {
    return Error{
        ErrorKind::environment,
        fmt::format("{} was refused: {}. Allow the call in the container's seccomp profile "
                    "(docker run --security-opt seccomp=unconfined)",
                    call, why)};
}

/// Tries here the calls that every node needs from its start, since a line can say here what is
/// missing.
Result<void> check_calls() {
    constexpr std::size_t bytes = 4096;
    void* const page =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return denied("mmap", ::strerror(errno));
    int error = ::madvise(page, bytes, MADV_DONTNEED) == 0 ? 0 : errno;
    ::munmap(page, bytes);
    if (error != 0) return denied("madvise", ::strerror(error));
    stack_t stack{};
    if (::sigaltstack(nullptr, &stack) != 0) return denied("sigaltstack", ::strerror(errno));
    struct sigaction action {};
    if (::sigaction(SIGBUS, nullptr, &action) != 0)
        return denied("rt_sigaction", ::strerror(errno));
    return {};
}

}  // namespace

Result<void> check_machine(const RunPlan& plan, const Machine& machine) {
    const auto sizes = space_sizes(plan.threads_per_node);
    if (!sizes) return sizes.error();
    if (auto room = check_room(plan, *sizes, machine); !room) return room;
    if (!fix_addresses())
        return Error{ErrorKind::environment,
                     fmt::format("personality(ADDR_NO_RANDOMIZE = 0x40000) was refused: {}. Nodes "
                                 "must be loaded at equal addresses: allow the call in the "
                                 "container's seccomp profile (docker run --security-opt "
                                 "seccomp=unconfined)",
                                 ::strerror(errno))};
    return check_calls();
}

}  // namespace hiroba::tools
