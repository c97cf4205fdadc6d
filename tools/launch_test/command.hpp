// SPDX-License-Identifier: BSD-3-Clause
// Role: a command under test: started, spoken to, and waited for, each with a time limit.
// Invariant: whatever a test does, the process it started is gone when the object is.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace hiroba::tools {

struct Outcome {
    int status = -1;  ///< exit status, or 128 + signal of the command itself
    std::string out;
    std::string err;
    std::uint64_t took_ns = 0;
};

class Command {
public:
    struct Options {
        std::vector<std::string> variables =
            {};                  ///< "NAME=value", on top of a small fixed environment
        std::string input = {};  ///< what stdin gives; then it ends
        bool terminal = false;   ///< a terminal of its own instead of pipes
        std::vector<std::pair<int, unsigned long>> limits = {};  ///< RLIMIT_..., soft and hard
    };
    Command(std::vector<std::string> words, Options options);
    explicit Command(std::vector<std::string> words) : Command(std::move(words), Options()) {}
    Command(const Command&) = delete;
    Command& operator=(const Command&) = delete;
    ~Command();

    pid_t pid() const { return pid_; }
    /// Reads until stdout (terminal: all output) holds `text` so many times; false at its end
    /// or after 20 s.
    bool await_output(const std::string& text, std::size_t times = 1);
    const std::string& out() const { return out_; }
    void type(const std::string& text);  ///< on the terminal
    void send(int signal_number);
    /// Waits at most 20 s.
    Outcome finish();

private:
    bool read_some(std::uint64_t deadline_ns);
    pid_t pid_ = -1;
    int out_fd_ = -1;
    int err_fd_ = -1;
    std::string out_, err_;
    std::uint64_t started_ns_ = 0;
    bool reaped_ = false;
};

/// Paths in the stage: "bin/hiroba", "programs/launch_node".
std::string stage(const std::string& path);
/// `hiroba run -n nodes launch_node words...`
std::vector<std::string> node_command(int nodes, std::vector<std::string> words);
/// Runs to the end.
Outcome outcome_of(std::vector<std::string> words, Command::Options options = {});
/// The first of a few such runs that took less than `limit_ns`; the last if none did. A busy
/// machine may delay one of them, a wait of the command's own delays all.
Outcome quick_outcome_of(std::uint64_t limit_ns, const std::vector<std::string>& words,
                         const Command::Options& options = {});
/// How often `part` occurs in `text`.
std::size_t occurrences(const std::string& text, const std::string& part);
/// The process's state as in /proc/<pid>/stat (R, S, T, ...); '\0' when it is gone or a zombie.
char state_of(pid_t pid);

}  // namespace hiroba::tools
