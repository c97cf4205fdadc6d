// SPDX-License-Identifier: BSD-3-Clause
// Role: what must be equal on all nodes before one program can run over them: objects, addresses,
// stack limit, processor features. Addresses of code and of libraries lie in shared data, so a
// difference would be a wrong jump much later.
// Invariant: a fingerprint is plain bytes of one size, fit for ControlChannel::all_gather().
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "omp/process/loaded_objects.hpp"

namespace hiroba::omp {

/// One object as other nodes see it.
struct ObjectRecord {
    std::uint64_t bias = 0;
    std::uint64_t layout = 0;    ///< digest of its segments' addresses and sizes
    std::uint64_t contents = 0;  ///< digest of its code where it has no build id, else 0
    BuildId build_id;
    char name[59] = {};  ///< end of the path
};

/// Everything compared. Padding is zero, so equal processes have equal bytes.
struct Fingerprint {
    static constexpr std::size_t objects_max = 96;

    std::uint64_t everything = 0;     ///< digest of all objects, also of those beyond objects_max
    std::uint64_t stack_limit = 0;    ///< RLIMIT_STACK, soft
    std::uint64_t processor[4] = {};  ///< feature words of CPUID
    std::uint32_t objects = 0;
    std::uint32_t threads_per_node = 0;
    char program[256] = {};  ///< end of the path
    ObjectRecord object[objects_max];
};

/// Fingerprint of this process. Takes the features and limits from the machine.
Fingerprint take_fingerprint(std::span<const LoadedObject> objects, std::uint32_t threads_per_node);

/// Digest of all of `print`: where two are equal, the prints are, but for chance.
std::uint64_t digest_of(const Fingerprint& print) noexcept;

/// One line on the first thing in which `theirs`, from node `other`, differs from node 0's;
/// nothing when they can run one program together.
std::optional<std::string> first_difference(const Fingerprint& node_0, const Fingerprint& theirs,
                                            std::uint32_t other);

}  // namespace hiroba::omp
