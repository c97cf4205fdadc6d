// SPDX-License-Identifier: BSD-3-Clause
// Role: `hiroba-perf`, which `hiroba perf` becomes: apart, so that the launcher holds no
// measurement.
#include <exception>
#include <string>
#include <vector>

#include "tools/build.hpp"
#include "tools/line.hpp"
#include "tools/perf/words.hpp"

int main(int argc, char** argv) {
    using namespace hiroba::tools;
    try {
        const std::vector<std::string> words{argv, argv + argc};
        PerfOptions options;
        const CommandWords command = perf_words("hiroba perf", options);
        const Parsed parsed = parse(command, words, std::string("hiroba ") + build_version);
        return parsed.command ? perf(options, words) : parsed.status;
    } catch (const std::exception& unexpected) {
        // Nodes that run already die with this process.
        say_line(std::string("stopped: ") + unexpected.what());
        return 70;
    }
}
