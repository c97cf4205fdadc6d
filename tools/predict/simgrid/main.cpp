// SPDX-License-Identifier: BSD-3-Clause
// Role: hiroba-predict, which `hiroba predict` becomes.
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "base/fatal.hpp"
#include "tools/build.hpp"
#include "tools/line.hpp"
#include "tools/predict/predict.hpp"

int main(int argc, char** argv) {
    using namespace hiroba::tools;
    try {
        PredictOptions options;
        const Parsed parsed = parse(predict_words(options), {argv, argv + argc},
                                    std::string("hiroba-predict ") + build_version);
        return parsed.command != nullptr ? predict(options) : parsed.status;
    } catch (const std::bad_alloc&) {
        say_line("there is not enough memory for this recording: raise ulimit -d, or free some");
        return hiroba::exit_environment;
    } catch (const std::exception& unexpected) {
        say_line(std::string("stopped: ") + unexpected.what());
        return 70;
    }
}
