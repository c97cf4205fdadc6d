// SPDX-License-Identifier: BSD-3-Clause
// Invariant: the file libhiroba.so-gdb.gdb beside the runtime is what gdb reads by itself where the
// runtime is mapped, once it may; so whoever attaches gdb without this command is told of it, too.
#include "tools/run/debugger.hpp"

#include <errno.h>
#include <fmt/format.h>
#include <string.h>
#include <unistd.h>

#include <charconv>
#include <vector>

#include "base/fatal.hpp"
#include "tools/become.hpp"
#include "tools/line.hpp"
#include "tools/run/jobs.hpp"
#include "tools/run/plan.hpp"

namespace hiroba::tools {

namespace {

/// The process of a node, of the only job there is or of that which `job` names.
Result<pid_t> node_process(const DebuggerOptions& options) {
    std::uint32_t rank = 0;
    const std::string& text = options.rank;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), rank);
    if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size())
        return Error{ErrorKind::usage,
                     text + " is no rank: a number from 0, as hiroba stacks says"};
    const auto job = find_job(options.job, "hiroba gdb RANK PID");
    if (!job) return job.error();
    const auto nodes = nodes_of(*job);
    const auto found = nodes.find(rank);
    if (found != nodes.end()) return found->second;
    std::string ranks;
    for (const auto& [each, process] : nodes)
        ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", each);
    return Error{
        ErrorKind::usage,
        nodes.empty()
            ? fmt::format("{} has no node on this host. Ask where its nodes run", job->command())
            : fmt::format("{} has no node {} on this host: there are {}. Ask where it runs",
                          job->command(), rank, ranks)};
}

}  // namespace

CommandWords debugger_words(DebuggerOptions& options) {
    CommandWords words("gdb", "Attach gdb to a node of a running job: hiroba gdb RANK [PID]");
    words.add_required("rank", options.rank, "number of the node, from 0");
    words.add_option("pid", options.job,
                     "process number of hiroba run (default: the only job of yours)");
    words.add_option("-e,--execute", options.execute,
                     "command of gdb to be carried out before it leaves, as 'thread apply all bt'");
    return words;
}

int debug_node(const DebuggerOptions& options) {
    const auto process = node_process(options);
    if (!process) return report(process.error());
    const auto runtime = find_library();
    if (!runtime) return report(runtime.error());
    std::vector<std::string> words = {
        "gdb", "-q", "-iex", "add-auto-load-safe-path " + runtime->substr(0, runtime->rfind('/'))};
    if (!options.execute.empty()) words.insert(words.end(), {"-batch", "-ex", options.execute});
    words.insert(words.end(), {"-p", std::to_string(*process)});
    const std::vector<char*> pointers = pointers_to(words);
    ::execvp(pointers[0], pointers.data());
    say_line(fmt::format("gdb cannot be executed: {}. Install it, and put its folder into PATH",
                         ::strerror(errno)));
    return exit_environment;
}

}  // namespace hiroba::tools
