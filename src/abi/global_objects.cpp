// SPDX-License-Identifier: BSD-3-Clause
#include "abi/global_objects.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "base/settings.hpp"
#include "omp/atomic/locked_functions.hpp"
#include "omp/atomic/rewriter.hpp"
#include "omp/process/system_libraries.hpp"

namespace hiroba::abi {

namespace {

/// Where no trampoline of what is opened now may lie.
dsm::AddressRange keep_room(omp::LibraryRange& place, std::span<const omp::LoadedObject> opened) {
    if (!place.is_open()) return {};
    std::uintptr_t lowest = place.range().end();
    for (const omp::LoadedObject& object : opened)
        if (place.range().contains(object.bias)) lowest = std::min(lowest, object.bias);
    return place.keep_room_below(lowest);
}

}  // namespace

Result<void> rewrite_atomics(World& node, std::span<const omp::LoadedObject> objects) {
    const bool sequential = setting("HIROBA_ATOMICS") == "seq_cst";
    omp::AtomicHooks hooks = omp::hooks_on(*node.memory, sequential);
    hooks.enter_crossing = [](void* address) noexcept {
        world()->locks->lock(reinterpret_cast<std::uintptr_t>(address));
    };
    hooks.leave_crossing = [](void* address) noexcept {
        world()->locks->unlock(reinterpret_cast<std::uintptr_t>(address));
    };
    // Atomics rewritten now may later touch data of libraries opened by dlopen(): that range is
    // global, too.
    if (node.library_range.range().bytes > 0) hooks.global.push_back(node.library_range.range());
    hooks.kept_free = keep_room(node.library_range, objects);
    for (const omp::LoadedObject& object : objects) {
        const bool program = object.kind == omp::LoadedObject::Kind::program;
        omp::RewriteTarget target{.bias = object.bias,
                                  .path = program ? "/proc/self/exe" : object.path,
                                  .executable = {}};
        if (!object.is_global()) {
            if (!omp::has_code_of_program_objects(object.path)) continue;
            if (auto functions = omp::locked_functions(object.bias)) {
                if (functions->empty()) continue;
                target.executable = std::move(*functions);
            }
        }
        const auto summary = omp::rewrite(target, hooks);
        if (!summary) return summary.error();
        log(LogLayer::omp, LogLevel::debug,
            "%s: %zu atomics and %zu flushes, %zu by jump, %zu by trap, %zu left alone; "
            "%zu loops that wait",
            object.path.c_str(), summary->atomics, summary->flushes, summary->jumps, summary->traps,
            summary->left_alone, summary->waits);
    }
    return {};
}

void allow_code_on_stacks(World& node, std::span<const omp::LoadedObject> objects) {
    if (node.executable_stacks) return;
    const auto wants = std::ranges::find_if(objects, &omp::LoadedObject::executable_stack);
    if (wants == objects.end()) return;
    node.executable_stacks = true;
    const dsm::AddressRange first = node.map->stack_slice(0);
    const std::size_t bytes = node.map->early_arena().address - first.address;
    node.memory->allow_execution({first.address, bytes});
    if (node.job.self.value == 0)
        log(LogLayer::abi, LogLevel::info, "stacks are executable: %s has code on them",
            wants->path.c_str());
}

void tell_private_libraries(const World& node,
                            std::span<const omp::LoadedObject> objects) noexcept {
    if (node.job.self.value != 0) return;
    for (const omp::LoadedObject& object : objects) {
        if (object.is_global()) continue;
        log(LogLayer::abi, LogLevel::info, "%s is the system's: its state is each node's own",
            object.path.c_str());
    }
}

Result<void> adopt_libraries(World& node, std::span<const omp::LoadedObject> objects) {
    for (const omp::LoadedObject& object : objects) {
        if (!object.is_global()) continue;
        for (const dsm::AddressRange& range : object.writable) {
            if (auto added = node.map->add_image(range); !added) return added;
            if (auto adopted = node.memory->adopt(range); !adopted) return adopted;
        }
    }
    if (auto rewritten = rewrite_atomics(node, objects); !rewritten) return rewritten.error();
    allow_code_on_stacks(node, objects);
    tell_private_libraries(node, objects);
    return {};
}

}  // namespace hiroba::abi
