// SPDX-License-Identifier: BSD-3-Clause
// Role: builds a node's environment.
#include "tools/run/environment.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <string_view>
#include <utility>

namespace hiroba::tools {

namespace {

constexpr std::string_view rseq_off = "glibc.pthread.rseq=0";

/// The runtime, and what stands in for LLVM's under its names.
std::string preloaded(const std::string& library) {
    if (library.empty()) return library;
    std::string all = library;
    const std::string folder = library.substr(0, library.rfind('/') + 1);
    for (const char* const name : stand_ins)
        if (::access((folder + name).c_str(), R_OK) == 0) all += ':' + folder + name;
    return all;
}

/// What an MPI library of the program is told, where the user says nothing else: it runs on node 0,
/// and there it may neither fork (a launcher of Open MPI's own), nor use segments of System V, nor
/// look into calls that map memory, which the runtime makes while it resolves a fault.
constexpr std::pair<std::string_view, std::string_view> for_mpi[] = {
    {"OMPI_MCA_ess_singleton_isolated", "1"},
    {"OMPI_MCA_shmem", "^sysv"},
    {"UCX_MEM_EVENTS", "n"},
    {"UCX_TLS", "^sysv"}};

/// The value of `name` in `inherited`, or nullptr.
const char* value_of(std::span<const char* const> inherited, std::string_view name) {
    for (const char* entry : inherited) {
        const std::string_view text = entry;
        if (text.size() > name.size() && text.starts_with(name) && text[name.size()] == '=')
            return entry + name.size() + 1;
    }
    return nullptr;
}

}  // namespace

std::vector<std::string> node_environment(std::span<const char* const> inherited,
                                          const RunPlan& plan, const JobIdentity& job,
                                          std::uint32_t rank) {
    // Four digits for every number that could differ, so that all nodes' strings are as long.
    std::vector<std::string> all = {fmt::format("HIROBA_JOB_RANK={:04}", rank),
                                    fmt::format("HIROBA_JOB_NODES={:04}", plan.nodes),
                                    fmt::format("HIROBA_JOB_THREADS={:04}", plan.threads_per_node),
                                    fmt::format("HIROBA_JOB_CONTROL_FD={:04}", job.control_fd),
                                    fmt::format("HIROBA_JOB_HOSTS={:04}", plan.hosts),
                                    fmt::format("HIROBA_JOB_NETWORK={:_<45}", plan.network),
                                    fmt::format("HIROBA_JOB_KEY={:016x}", job.key),
                                    fmt::format("HIROBA_JOB_KEY_HIGH={:016x}", job.key_high)};

    const auto replace = [&](std::string_view name, const std::string& value) {
        if (const char* const given = value_of(inherited, name))
            all.push_back(fmt::format("HIROBA_JOB_SAVED_{}={}", name, given));
        all.push_back(fmt::format("{}={}", name, value));
    };
    const auto join = [](std::string_view first, std::string_view second) {
        const bool both = !first.empty() && !second.empty();
        return fmt::format("{}{}{}", first, both ? ":" : "", second);
    };
    const auto own = [&](std::string_view name) {
        const char* const value = value_of(inherited, name);
        return std::string_view(value ? value : "");
    };
    // Saved even when nothing is preloaded: taking the job's variables out drops all three.
    replace("LD_PRELOAD", join(preloaded(plan.library), own("LD_PRELOAD")));
    // .got.plt shares pages with the program's data: it must not be written later.
    replace("LD_BIND_NOW", "1");
    // The kernel writes a thread's rseq area, which lies in the thread's global memory.
    replace("GLIBC_TUNABLES", join(own("GLIBC_TUNABLES"), rseq_off));

    // The launcher's own choice is none of the program's business.
    const char* const heap = value_of(inherited, "HIROBA_HEAP");
    if (heap != nullptr && value_of(inherited, chose_heap) != nullptr)
        all.push_back(fmt::format("HIROBA_HEAP={}", heap));
    else if (heap != nullptr)
        replace("HIROBA_HEAP", heap);

    for (const auto& [name, value] : for_mpi)
        if (plan.calls_mpi && value_of(inherited, name) == nullptr)
            all.push_back(fmt::format("{}={}", name, value));

    for (const char* entry : inherited) {
        const std::string_view text = entry;
        const bool dropped = text.starts_with("HIROBA_JOB_") || text.starts_with("LD_PRELOAD=") ||
                             text.starts_with("LD_BIND_NOW=") ||
                             text.starts_with("GLIBC_TUNABLES=") ||
                             text.starts_with("HIROBA_HEAP=");
        if (!dropped) all.emplace_back(text);
    }
    return all;
}

}  // namespace hiroba::tools
