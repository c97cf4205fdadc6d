// SPDX-License-Identifier: BSD-3-Clause
// Role: several programs as one job: `hiroba run -n 2 first a : -n 3 second b`, as mpirun writes
// it. Invariant: the words of the command line are kept as they are, and each host finds the
// programs in them by itself. Ranks of the first program come first.
//
// A colon parts programs only where the first one enters main on every node: it is linked with a
// library of ours, or --spmd was given. To any other program it is an argument.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace hiroba::tools {

/// One of them.
struct JoinedProgram {
    std::uint32_t nodes = 0;         ///< 0 of the first one: those that the others leave
    std::vector<std::string> words;  ///< its name and its arguments
    std::string path = {};           ///< of the file, once it is looked up
};

/// The programs in the words behind the options of `hiroba run`; one if no colon parts them. Usage
/// errors: nothing beside a colon, no -n behind one, a number that none may have.
Result<std::vector<JoinedProgram>> split_programs(const std::vector<std::string>& words);

/// Looks the programs of `words` up for a job of `nodes`, or finds that it is one program, whose
/// path is `first`. Usage errors: programs of different libraries, or that none of ours is for.
Result<std::vector<JoinedProgram>> look_up_joined(const std::vector<std::string>& words,
                                                  const std::string& first, std::uint32_t nodes,
                                                  bool spmd);

/// All nodes of the job, where the first program has `first_nodes`. nullopt: it is one program.
Result<std::optional<std::uint32_t>> nodes_of_joined(const std::vector<std::string>& words,
                                                     const std::string& first_nodes, bool spmd);

}  // namespace hiroba::tools
