// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/words.hpp"

namespace hiroba::tools {

CommandWords perf_words(const char* name, PerfOptions& options) {
    CommandWords words(name, "Measure communication beside what the machine allows");
    words.add_option("test", options.test, "what to measure, openmp or all; --list names them");
    words.add_flag("--list", options.list, "what can be measured, and beside which floor");
    words.add_option("--provider", options.provider, "transport (default: HIROBA_PROVIDER)");
    words.offer(values_of_setting("HIROBA_PROVIDER"));
    words.add_option("--offload", options.offload, "auto, always or never (HIROBA_OFFLOAD)");
    words.offer(values_of_setting("HIROBA_OFFLOAD"));
    words.add_option("-n,--nodes", options.nodes, "number of node processes (the fewest: 2 or 3)");
    words.add_option("-t,--threads", options.threads, "threads of each node that ask (1)");
    words.add_option("--executors", options.executors,
                     "threads that empty the command queues, with --offload always (1)");
    words.add_option("--bytes", options.bytes, "size of one operation (the test's own)");
    words.add_option("--sizes", options.sizes,
                     "a row of a table for each size: 8:1M (doubled from row to row) or 8,4K,1M");
    words.add_option("--repeat", options.repeat, "measure as often, and give an interval (1)");
    words.add_option("--milliseconds", options.milliseconds, "length of one measurement (300)");
    words.add_option("--change", options.change, "dsm_release: byte, page or doubles (byte)");
    words.offer("byte|page|doubles");
    words.add_option("--home", options.home, "dsm_release: here or elsewhere (here)");
    words.offer("here|elsewhere");
    words.add_option("--beside", options.beside,
                     "peers that take turns with the test, --repeat times: ucx, mpi or ucx,mpi; "
                     "openmp: paths of other hirobas");
    words.add_option("--hosts", options.hosts, "hosts to measure between: a,b or a:2,b:2");
    words.add_option("--hostfile", options.hostfile, "file that names them, as of hiroba run");
    words.offer("FILE");
    words.add_option("--ssh", options.ssh, "command that runs a command on a host (HIROBA_SSH)");
    words.add_option("--ports", options.ports, "ports A-B to listen on, floors included");
    words.add_flag("--copy", options.copy, "send hiroba to the hosts, for as long as a job runs");
    words.add_option("--only", options.only, "openmp: rows whose names contain this");
    words.add_option("--html", options.html,
                     "openmp: also write the table as a page, to this file");
    words.offer("FILE");
    words.add_flag("--json", options.json, "one object a line");
    return words;
}

}  // namespace hiroba::tools
