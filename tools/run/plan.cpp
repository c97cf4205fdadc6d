// SPDX-License-Identifier: BSD-3-Clause
// Role: the checks of memory, address space and limits.
#include "tools/run/plan.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/settings.hpp"
#include "dsm/memory/address_map.hpp"
#include "omp/process/stack_sizes.hpp"
#include "tools/build.hpp"

namespace hiroba::tools {

namespace {

/// Where the kernel may put the program (position-independent: from 2/3 of the address space), or
/// its libraries when the stack is unlimited (from 1/3).
constexpr std::uint64_t program_base = 0x5555'5555'4000;
constexpr std::uint64_t low_library_base = 0x2aaa'aaaa'a000;

Error no_room(std::string text) { return {ErrorKind::environment, std::move(text)}; }

}  // namespace

namespace {

/// The program of `rank` among several.
const JoinedProgram& joined_at(const RunPlan& plan, std::uint32_t rank) {
    std::size_t at = 0;
    for (; at + 1 < plan.joined.size() && rank >= plan.joined[at].nodes; ++at)
        rank -= plan.joined[at].nodes;
    return plan.joined[at];
}

}  // namespace

const std::string& RunPlan::program_of(std::uint32_t rank) const {
    return joined.empty() ? program : joined_at(*this, rank).path;
}

const std::vector<std::string>& RunPlan::words_of(std::uint32_t rank) const {
    return joined.empty() ? command : joined_at(*this, rank).words;
}

Result<std::uint64_t> loss_grace_ns() {
    constexpr std::uint64_t hour_ms = 3'600'000;
    const auto grace_ms = setting_number("HIROBA_LOSS_GRACE");
    if (!grace_ms) return grace_ms.error();
    return std::min(*grace_ms, hour_ms) * 1'000'000;
}

Result<SpaceSizes> space_sizes(std::uint32_t threads_per_node) {
    const auto heap = setting_number("HIROBA_HEAP");
    if (!heap) return heap.error();
    const auto stacks = omp::stack_sizes(threads_per_node);
    if (!stacks) return stacks.error();
    return SpaceSizes{*heap, stacks->bytes, stacks->per_node, stacks->bytes_least};
}

std::uint64_t space_bytes(const RunPlan& plan, const SpaceSizes& sizes) {
    const auto nodes = static_cast<unsigned __int128>(plan.nodes);
    const unsigned __int128 all = nodes * sizes.heap_bytes +
                                  nodes * sizes.stacks_per_node * sizes.stack_bytes +
                                  dsm::SpaceShape{}.early_bytes;
    return all > unlimited ? unlimited : static_cast<std::uint64_t>(all);
}

SpaceSizes sizes_that_fit(const RunPlan& plan, const SpaceSizes& sizes, FreeSizes free) {
    // The bytes that the memory of all nodes here may take of a process's 128 TiB. One node's has
    // tables and queues beside the space: a third of it; a process has the space and its tables
    // twice more.
    constexpr std::uint64_t room = std::uint64_t{100} << 40, queues = std::uint64_t{1} << 30;
    SpaceSizes fitting = sizes;
    const auto mapped = [&] {
        const unsigned __int128 one = space_bytes(plan, fitting);
        return (one + one * 3 / 8 + queues) * (plan.nodes_here() + 2);
    };
    while (mapped() > room) {
        const bool heap = free.heap && fitting.heap_bytes > heap_bytes_least;
        const bool stack = free.stack && fitting.stack_bytes > fitting.stack_bytes_least;
        if (!heap && !stack) break;
        if (heap && (!stack || fitting.heap_bytes >= fitting.stack_bytes * fitting.stacks_per_node))
            fitting.heap_bytes /= 2;
        else
            fitting.stack_bytes = std::max(fitting.stack_bytes / 2, fitting.stack_bytes_least);
    }
    return fitting;
}

Result<void> check_room(const RunPlan& plan, const SpaceSizes& sizes, const Machine& machine) {
    const std::uint64_t memory = node_memory_min * plan.nodes_here();
    if (memory > machine.memory_available)
        return no_room(
            fmt::format("too little memory: {} nodes need at least {}, available are {} "
                        "(MemAvailable). Start fewer nodes with -n",
                        plan.nodes_here(), size_text(memory), size_text(machine.memory_available)));
    if (memory > machine.memory_cgroup)
        return no_room(
            fmt::format("too little memory: {} nodes need at least {}, the control group "
                        "leaves {}. Raise its memory.max, or start fewer nodes with -n",
                        plan.nodes_here(), size_text(memory), size_text(machine.memory_cgroup)));

    const std::uint64_t space = space_bytes(plan, sizes);
    const std::uint64_t end = machine.stack_bytes == unlimited ? low_library_base : program_base;
    const std::uint64_t room = end - dsm::AddressMap::main_base;
    if (space > room)
        return no_room(fmt::format(
            "too little address space: {} nodes of {} threads need {}, there "
            "are {}. Lower HIROBA_HEAP (now {} a node) or OMP_STACKSIZE{}",
            plan.nodes, plan.threads_per_node, size_text(space), size_text(room),
            size_text(sizes.heap_bytes),
            machine.stack_bytes == unlimited ? ", or set a stack limit (ulimit -s 8192)" : ""));
    // A node maps the space twice: for the program, and for itself.
    if (machine.address_space_bytes != unlimited && space > machine.address_space_bytes / 2)
        return no_room(fmt::format(
            "address space limit too low: each node maps twice {}, the limit "
            "is {}. Raise ulimit -v, or lower HIROBA_HEAP (now {} a node)",
            size_text(space), size_text(machine.address_space_bytes), size_text(sizes.heap_bytes)));
    if (machine.file_bytes != unlimited && space > machine.file_bytes)
        return no_room(fmt::format(
            "file size limit too low: the memory file of a node has {}, the "
            "limit is {}. Raise ulimit -f, or lower HIROBA_HEAP (now {} a "
            "node)",
            size_text(space), size_text(machine.file_bytes), size_text(sizes.heap_bytes)));
    const std::uint64_t files = 64 + 8 * std::uint64_t{plan.nodes};
    if (files > machine.open_files)
        return no_room(
            fmt::format("open files limit too low: {} nodes need about {}, the limit is "
                        "{}. Raise ulimit -n",
                        plan.nodes, files, machine.open_files));
    return {};
}

Result<std::string> find_library() {
    std::error_code failed;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", failed);
    if (failed)
        return no_room(
            fmt::format("cannot read /proc/self/exe: {}. Mount /proc", failed.message()));
    const auto folder = self.parent_path();
    std::string library =
        (folder / build_runtime_folder / "libhiroba.so").lexically_normal().string();
    if (::access(library.c_str(), R_OK) != 0)
        library = (folder.parent_path() / "lib" / "libhiroba.so").string();
    if (::access(library.c_str(), R_OK) != 0)
        return no_room(
            fmt::format("the runtime {} is missing or cannot be read. Install it beside "
                        "this command, or build all of hiroba",
                        library));
    // The loader splits LD_PRELOAD at these, and knows no way to quote them.
    if (library.find_first_of(": ") != std::string::npos)
        return no_room(
            fmt::format("the runtime's path \"{}\" has a space or a colon, which "
                        "LD_PRELOAD cannot hold. Install it elsewhere",
                        library));
    return library;
}

}  // namespace hiroba::tools
