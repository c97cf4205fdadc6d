// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/fatal.hpp"
#include "tools/become.hpp"
#include "tools/build.hpp"
#include "tools/line.hpp"
#include "tools/predict/machine_model.hpp"
#include "tools/predict/predict.hpp"

namespace hiroba::tools {

CommandWords predict_words(PredictOptions& options) {
    std::string names;
    for (const Wire& wire : wires()) names += (names.empty() ? "" : "|") + wire.name;
    CommandWords words("predict",
                       "Say what more machines would give a recorded run, by SimGrid: hiroba "
                       "predict FILE");
    words.add_required("file", options.file, "what hiroba run --record FILE has written");
    words.offer("FILE");
    words.add_option("-n,--nodes", options.nodes,
                     "numbers of nodes, as 2,4,8,16 (default: as recorded)");
    words.add_option("--wire", options.wire,
                     "network between them, or its latency, bandwidth and a processor's time for "
                     "a message, as 7us,2.9GB/s,3us (10GbE)");
    words.offer(names);
    words.add_option("--platform", options.platform,
                     "machine in SimGrid's format, instead of a switch; of --wire only the time "
                     "for a message is used then");
    words.offer("FILE");
    words.add_option("--what-if", options.what_if,
                     "what else is to be different: latency/2, bandwidth*4, message/2, "
                     "computing/2, misses/2, bytes/2, locks/2, threads=8, no-false-sharing; "
                     "several with commas");
    words.add_flag("--json", options.json, "as JSON");
    return words;
}

namespace {

constexpr int cannot_load = 127;

/// The status of the program when it is asked for its version, in silence.
int status_when_asked(const std::string& program) {
    const pid_t child = ::fork();
    if (child < 0) return cannot_load;
    if (child == 0) {
        const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
        ::dup2(nowhere, STDOUT_FILENO);
        ::dup2(nowhere, STDERR_FILENO);
        ::execl(program.c_str(), program.c_str(), "--version", nullptr);
        ::_exit(cannot_load);
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : cannot_load;
}

}  // namespace

int become_predict(const std::vector<std::string>& words) {
    const std::string beside = beside_this_program("hiroba-predict");
    const std::filesystem::path folder = std::filesystem::path(beside).parent_path();
    const std::string installed =
        (folder / build_programs_folder / "hiroba-predict").lexically_normal().string();
    for (const std::string& program : {beside, installed}) {
        if (::access(program.c_str(), X_OK) != 0) continue;
        if (status_when_asked(program) == 0) {
            std::vector<std::string> command = {program};
            command.insert(command.end(), words.begin() + 2, words.end());
            return become(command);
        }
        say_line(program +
                 " does not start: SimGrid's library is missing, or another version than it was "
                 "built with. Install libsimgrid of Debian, or build hiroba again");
        return exit_environment;
    }
    say_line(
        "this hiroba was built without SimGrid, which predictions need. Install libsimgrid-dev of "
        "Debian and build hiroba again");
    return exit_environment;
}

}  // namespace hiroba::tools
