// SPDX-License-Identifier: BSD-3-Clause
// Role: the `hiroba` command: reads the command line and hands over to a subcommand.
// Invariant: wrong words end with one line and status 64; nothing has been started then.
#include <stdlib.h>

#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "base/fatal.hpp"
#include "tools/become.hpp"
#include "tools/build.hpp"
#include "tools/check/check.hpp"
#include "tools/exec/exec.hpp"
#include "tools/exec/join.hpp"
#include "tools/hosts/agent.hpp"
#include "tools/info/info.hpp"
#include "tools/line.hpp"
#include "tools/perf/words.hpp"
#include "tools/predict/predict.hpp"
#include "tools/report/report.hpp"
#include "tools/report/top.hpp"
#include "tools/run/debugger.hpp"
#include "tools/run/run.hpp"
#include "tools/run/stacks.hpp"
#include "tools/sim/sim.hpp"
#include "tools/words/command_words.hpp"
#include "tools/words/pages.hpp"

namespace {

using namespace hiroba::tools;

/// How many of `words` (argv of `hiroba run` and others that start a program) are the launcher's:
/// all before the program's name.
std::size_t launcher_words(const std::vector<std::string>& words, const CommandWords& run) {
    std::size_t at = 2;
    for (; at < words.size() && words[at].starts_with('-') && words[at] != "--"; ++at)
        if (run.takes_value(words[at])) ++at;
    return std::min(at, words.size());
}

/// Whether a batch system may name the hosts.
bool in_allocation() {
    return ::getenv("SLURM_JOB_NODELIST") != nullptr || ::getenv("PBS_NODEFILE") != nullptr;
}

/// Words that both ways to start a program have.
void add_words_of_each_start(CommandWords& words, RunOptions& options) {
    words.add_option(
        "--provider", options.provider,
        "transport between the nodes (default: HIROBA_PROVIDER); hiroba info lists them");
    words.offer(values_of_setting("HIROBA_PROVIDER"));
    words.add_flag("-v,--verbose", options.verbose, "say what runs where, and over which device");
    words.add_flag("--spmd", options.spmd,
                   "every node enters main: for programs linked with hiroba's own interface");
}

CommandWords run_words(RunOptions& options) {
    CommandWords words("run", "Run a program: hiroba run -n N [--threads T] [--] PROGRAM ...");
    words.add_option("-n,--nodes", options.nodes, "number of node processes, 1 to 1024");
    words.add_option("-t,--threads", options.threads,
                     "threads of each node (default: the cores this job may use / nodes)");
    words.add_option("--bind-to", options.bind_to,
                     "core, numa or none: processors of its own for each node (default: none)");
    words.offer("core|numa|none");
    words.add_option("--hosts", options.hosts,
                     "hosts to run on, each with its number of nodes: a,b:2 (default: this one)");
    words.add_option("--hostfile", options.hostfile,
                     "file that names them: a line a host, with :N or slots=N for its nodes");
    words.offer("FILE");
    words.add_option("--ssh", options.ssh,
                     "command that runs a command on a host (default: HIROBA_SSH, ssh)");
    words.add_option("--ports", options.ports,
                     "ports A-B to listen on, where a firewall lets only those through");
    words.add_option("--hiroba", options.hiroba,
                     "path of hiroba on the hosts, where it is another: PATH, or a:PATH,b:PATH");
    words.add_flag("--copy", options.copy,
                   "send hiroba and the program to the hosts, for as long as the job runs");
    words.add_option("--record", options.record,
                     "file for what each thread does, to be read by hiroba report (HIROBA_RECORD)");
    words.offer("FILE");
    words.add_option("--progress", options.progress,
                     "seconds between two lines that say how far a program has come whose regions "
                     "repeat");
    words.add_flag("--core", options.core,
                   "core files of crashed nodes hold their part of the heap, too (HIROBA_CORE)");
    add_words_of_each_start(words, options);
    words.add_option("--starter-memory", options.starter_memory,
                     "of each rank of an ACP program, as 1M (HIROBA_ACP_STARTER)");
    words.footer(
        "The first word that is no option names the program; all that follow are its arguments. "
        "Programs of libacp or libhiroba_* may be several: -n 2 FIRST ... : -n 3 SECOND ...");
    words.take_program();
    words.check_with([&options] {
        const bool named = !options.hosts.empty() || !options.hostfile.empty() || in_allocation();
        return !named && options.nodes.empty() ? "--nodes is required, or --hosts with a host" : "";
    });
    return words;
}

CommandWords exec_words(RunOptions& options) {
    CommandWords words(
        "exec", "Take part in a job of another launcher: mpirun -n N hiroba exec PROGRAM ...");
    words.add_option("-t,--threads", options.threads,
                     "threads of each node (default: the cores a host's nodes may use / nodes)");
    add_words_of_each_start(words, options);
    words.footer(
        "Under mpirun, or srun --mpi=pmix or pmi2: each process stands for one node. The first "
        "word that "
        "is no option names the program; all that follow are its arguments.");
    words.take_program();
    return words;
}

CommandWords info_words(InfoOptions& options) {
    CommandWords words("info", "Show the build, the machine, the settings");
    words.add_flag("--json", options.json, "as JSON");
    words.add_flag("-c,--config", options.settings,
                   "settings with value, default, origin and help");
    words.add_flag("--all", options.all,
                   "-c: also settings for tests and for builders of runtimes");
    words.add_flag("-l,--limits", options.limits,
                   "check the limits; status 78 when one is too low");
    words.add_flag("--memory", options.memory,
                   "start a job and show what one rank of it keeps in memory, step by step");
    words.add_option("-n,--nodes", options.nodes, "--memory: number of ranks (4)");
    words.add_option("--provider", options.provider,
                     "--memory: transport between them (default: HIROBA_PROVIDER)");
    words.offer(values_of_setting("HIROBA_PROVIDER"));
    return words;
}

CommandWords check_words(CheckOptions& options) {
    CommandWords words("check",
                       "Say what a run would make of a program, without running it: hiroba check "
                       "PROGRAM");
    words.add_required("program", options.program, "program, found as hiroba run finds it");
    words.add_flag("--json", options.json, "as JSON");
    words.footer(
        "Reads the program and its libraries: compilers, entry points of OpenMP, atomics, what "
        "would end a run and where it is called. Status 0: nothing does for certain; 78: "
        "something does.");
    return words;
}

CommandWords stacks_words(std::string& launcher) {
    CommandWords words(
        "stacks", "Have a running job print the stacks of all its threads: hiroba stacks [PID]");
    words.add_option("pid", launcher,
                     "process number of hiroba run (default: the only job of yours)");
    return words;
}

CommandWords report_words(ReportOptions& options) {
    CommandWords words("report",
                       "Say where a recorded run's time went, and what would save some: hiroba "
                       "report FILE");
    words.add_required("file", options.file, "what hiroba run --record FILE has written");
    words.offer("FILE");
    words.add_flag("--json", options.json, "all of it, as JSON");
    words.add_option("--html", options.html, "write it as one page into this file instead");
    words.offer("FILE");
    words.add_option("--beside", options.beside, "--html: another recording, to be compared");
    words.offer("FILE");
    words.add_option("--perfetto", options.perfetto,
                     "write a trace for ui.perfetto.dev into this file instead");
    words.offer("FILE");
    return words;
}

CommandWords top_words(TopOptions& options) {
    CommandWords words("top",
                       "Show what each thread of a job does that is being recorded: hiroba top "
                       "[JOB]");
    words.add_option("job", options.job,
                     "what hiroba run --record FILE writes, or the process number of hiroba run "
                     "(default: the only such job of yours)");
    words.offer("FILE");
    words.add_option("--interval", options.interval, "seconds between two looks (1)");
    words.add_flag("--once", options.once, "look once");
    return words;
}

CommandWords pages_words(std::string& folder) {
    CommandWords words("pages", "Write manual pages and shell completion below FOLDER");
    words.add_required("folder", folder, "where share/ is to be");
    words.hide();
    return words;
}

/// `hiroba perf` is a program of its own, which reads its words itself.
int become_perf(const std::vector<std::string>& words) {
    std::vector<std::string> command = {beside_this_program("hiroba-perf")};
    command.insert(command.end(), words.begin() + 2, words.end());
    return become(command);
}

int parse_and_run(const std::vector<std::string>& words) {
    RunOptions run_options;
    InfoOptions info_options;
    CheckOptions check_options;
    PerfOptions perf_options;
    SimOptions sim_options;
    ReportOptions report_options;
    PredictOptions predict_options;
    TopOptions top_options;
    DebuggerOptions debugger_options;
    std::string launcher, pages_folder;
    const CommandWords whole("hiroba",
                             "Runs OpenMP programs, unmodified, over several node processes.");
    const std::vector<CommandWords> commands = {
        run_words(run_options), exec_words(run_options), info_words(info_options),
        check_words(check_options), perf_words("perf", perf_options), report_words(report_options),
        predict_words(predict_options), top_words(top_options), stacks_words(launcher),
        debugger_words(debugger_options), sim_words(sim_options),
        // What `run --hosts` starts on each host; what the build makes manual pages with.
        // What libraries start beside a process of another launcher.
        CommandWords("agent", "").hide(), CommandWords("join", "").hide(),
        pages_words(pages_folder)};

    const std::string wanted = words.size() > 1 ? words[1] : "";
    if (wanted == "perf") return become_perf(words);
    if (wanted == "predict") return become_predict(words);
    const auto command = std::ranges::find(commands, wanted, &CommandWords::name);
    const bool known = command != commands.end();
    const std::size_t ours =
        known && command->takes_program() ? launcher_words(words, *command) : words.size();
    if (!wanted.empty() && !wanted.starts_with('-') && !known) {
        say_line("there is no command " + wanted + ". See hiroba --help");
        return hiroba::exit_usage;
    }
    const Parsed parsed =
        parse(whole, commands, {words.begin(), words.begin() + static_cast<std::ptrdiff_t>(ours)},
              std::string("hiroba ") + build_version);
    if (!parsed.command) return parsed.status;
    const std::string& name = parsed.command->name();
    if (name == "info") return info(info_options);
    if (name == "check") return check(check_options);
    if (name == "report") return report_on(report_options);
    if (name == "top") return show_top(top_options);
    if (name == "agent") return agent();
    if (name == "gdb") return debug_node(debugger_options);
    if (name == "join") return join();
    if (name == "stacks") return ask_for_stacks(launcher);
    if (name == "pages")
        return write_pages(make_pages(whole, commands, build_version), pages_folder);

    auto program = words.begin() + static_cast<std::ptrdiff_t>(ours);
    if (program != words.end() && *program == "--") ++program;
    if (name == "sim") {
        sim_options.command.assign(program, words.end());
        return sim(sim_options);
    }
    run_options.command.assign(program, words.end());
    return name == "exec" ? exec(run_options) : run(run_options);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return parse_and_run({argv, argv + argc});
    } catch (const std::bad_alloc&) {
        say_line("there is not enough memory for the launcher: raise ulimit -d, or free some");
        return hiroba::exit_environment;
    } catch (const std::exception& unexpected) {
        // Nodes that run already die with this process.
        say_line(std::string("stopped: ") + unexpected.what());
        return 70;
    }
}
