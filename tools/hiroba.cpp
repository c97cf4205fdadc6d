// SPDX-License-Identifier: BSD-3-Clause
// Role: the `hiroba` command: reads the command line and hands over to a subcommand.
// Invariant: wrong words end with one line and status 64; nothing has been started then.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include "base/fatal.hpp"
#include "tools/build.hpp"
#include "tools/hosts/agent.hpp"
#include "tools/info/info.hpp"
#include "tools/line.hpp"
#include "tools/perf/perf.hpp"
#include "tools/run/run.hpp"
#include "tools/run/stacks.hpp"

namespace {

using namespace hiroba::tools;

/// How many of `words` (argv of `hiroba run`) are the launcher's: all before the program's name.
std::size_t launcher_words(const std::vector<std::string>& words) {
    std::size_t at = 2;
    for (; at < words.size() && words[at].starts_with('-') && words[at] != "--"; ++at) {
        const std::string& word = words[at];
        for (const char* const with_value :
             {"-n", "--nodes", "-t", "--threads", "--hosts", "--ssh", "--starter-memory"})
            if (word == with_value) ++at;
    }
    return std::min(at, words.size());
}

void add_run_words(CLI::App& words, RunOptions& options) {
    CLI::Option* const nodes =
        words.add_option("-n,--nodes", options.nodes, "number of node processes, 1 to 64");
    words.add_option("-t,--threads", options.threads,
                     "threads of each node (default: the cores this job may use / nodes)");
    CLI::Option* const hosts = words.add_option(
        "--hosts", options.hosts,
        "hosts to run on, each with its number of nodes: a,b:2 (default: this one)");
    words.add_option("--ssh", options.ssh,
                     "command that runs a command on a host (default: HIROBA_SSH, ssh)");
    words.add_flag("-v,--verbose", options.verbose, "say what runs where, and over which device");
    words.add_flag("--spmd", options.spmd,
                   "every node enters main: for programs linked with hiroba's own interface");
    words.add_option("--starter-memory", options.starter_memory,
                     "of each rank of an ACP program, as 1M (HIROBA_ACP_STARTER)");
    words.footer(
        "The first word that is no option names the program; all that follow are its arguments.");
    words.final_callback([nodes, hosts, &options] {
        if (hosts->count() != 0 && options.hosts.empty())
            throw CLI::ValidationError(
                "--hosts names no host. Give some, as in a,b:2, or leave it out");
        if (options.hosts.empty() && nodes->count() == 0) throw CLI::RequiredError("--nodes");
    });
}

void add_perf_words(CLI::App& words, PerfOptions& options) {
    words.add_option("test", options.test, "what to measure; --list names all");
    words.add_flag("--list", options.list, "what can be measured, and beside which floor");
    words.add_option("--provider", options.provider, "transport (default: HIROBA_PROVIDER)");
    words.add_option("--offload", options.offload, "auto, always or never (HIROBA_OFFLOAD)");
    words.add_option("-n,--nodes", options.nodes, "number of node processes (the fewest: 2 or 3)");
    words.add_option("-t,--threads", options.threads, "threads of each node that ask (1)");
    words.add_option("--bytes", options.bytes, "size of one operation (the test's own)");
    words.add_option("--repeat", options.repeat, "measure as often, and give an interval (1)");
    words.add_option("--milliseconds", options.milliseconds, "length of one measurement (300)");
    words.add_option("--change", options.change, "dsm_release: byte, page or doubles (byte)");
    words.add_option("--home", options.home, "dsm_release: here or elsewhere (here)");
    words.add_flag("--json", options.json, "one object a line");
}

int parse_and_run(const std::vector<std::string>& words) {
    CLI::App app{"Runs OpenMP programs, unmodified, over several node processes.", "hiroba"};
    app.set_version_flag("--version", std::string("hiroba ") + build_version);
    app.require_subcommand(1);

    RunOptions run_options;
    CLI::App* const run_words =
        app.add_subcommand("run", "Run a program: hiroba run -n N [--threads T] [--] PROGRAM ...");
    add_run_words(*run_words, run_options);
    // What `run --hosts` starts on each host.
    CLI::App* const agent_words = app.add_subcommand("agent")->group("");

    InfoOptions info_options;
    CLI::App* const info_words =
        app.add_subcommand("info", "Show the build, the machine, the settings");
    info_words->add_flag("--json", info_options.json, "as JSON");
    info_words->add_flag("-c,--config", info_options.settings,
                         "every setting with value, default, origin and help");
    info_words->add_flag("-l,--limits", info_options.limits,
                         "check the limits; status 78 when one is too low");
    PerfOptions perf_options;
    CLI::App* const perf_words =
        app.add_subcommand("perf", "Measure communication beside what the machine allows");
    add_perf_words(*perf_words, perf_options);

    std::string launcher;
    CLI::App* const stacks_words = app.add_subcommand(
        "stacks", "Have a running job print the stacks of all its threads: hiroba stacks PID");
    stacks_words->add_option("pid", launcher, "process number of hiroba run")->required();
    const bool is_run = words.size() > 1 && words[1] == "run";
    const std::size_t ours = is_run ? launcher_words(words) : words.size();
    if (words.size() > 1 && !words[1].starts_with('-') && words[1] != "run" && words[1] != "info" &&
        words[1] != "stacks" && words[1] != "perf" && words[1] != "agent") {
        say_line("there is no command " + words[1] + ". See hiroba --help");
        return hiroba::exit_usage;
    }
    try {
        // CLI11 takes the words from the back.
        app.parse(std::vector<std::string>(words.rend() - static_cast<std::ptrdiff_t>(ours),
                                           words.rend() - 1));
    } catch (const CLI::Success& wanted) {
        return app.exit(wanted);  // --help, --version
    } catch (const CLI::ParseError& wrong) {
        say_line(std::string(wrong.what()) + ". See hiroba --help");
        return hiroba::exit_usage;
    }
    if (info_words->parsed()) return info(info_options);
    if (agent_words->parsed()) return agent();
    if (stacks_words->parsed()) return ask_for_stacks(launcher);
    if (perf_words->parsed()) return perf(perf_options, words);

    auto program = words.begin() + static_cast<std::ptrdiff_t>(ours);
    if (program != words.end() && *program == "--") ++program;
    run_options.command.assign(program, words.end());
    return run(run_options);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return parse_and_run({argv, argv + argc});
    } catch (const std::exception& unexpected) {
        // Nodes that run already die with this process.
        say_line(std::string("stopped: ") + unexpected.what());
        return 70;
    }
}
