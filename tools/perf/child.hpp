// SPDX-License-Identifier: BSD-3-Clause
// Role: programs that a command starts beside itself, waits for and reads.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hiroba::tools {

/// A child process. One that still runs when this is destroyed is ended.
class Child {
public:
    using Settings = std::vector<std::pair<std::string, std::string>>;
    Child() = default;
    /// @param words  the first names the program, as execvp() finds it
    /// @param settings  of its environment, beside this process's own
    /// @param keeps_output  what it writes to stdout and stderr is for finish(); else it is dropped
    Child(const std::vector<std::string>& words, const Settings& settings, bool keeps_output);
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child();

    /// Reads until it ends, or ends it after `seconds`.
    /// @param output  all it wrote
    /// @return its exit status; 128 and its signal's number; 127: there is no such program
    int finish(std::uint32_t seconds, std::string& output);

private:
    int reap();
    pid_t pid_ = -1;
    int output_ = -1;
};

/// Whether execvp() would find a program of this name.
bool is_program(const std::string& name);

}  // namespace hiroba::tools
