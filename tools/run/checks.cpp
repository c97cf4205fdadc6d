// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/checks.hpp"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
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
    if (plan.spmd) return {};
    if (const std::string library = spmd_library_of(plan.program);
        plan.nodes > 1 && !library.empty())
        return Error{
            ErrorKind::usage,
            fmt::format("{} is linked with {}: every node is to enter its main. Use hiroba "
                        "run --spmd",
                        plan.command[0], library)};
    if (auto fit = check_can_take_over(plan.program); !fit) return fit.error();
    auto library = find_library();
    if (!library) return library.error();
    plan.library = *library;
    return {};
}

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
    return {};
}

}  // namespace hiroba::tools
