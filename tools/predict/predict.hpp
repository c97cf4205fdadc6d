// SPDX-License-Identifier: BSD-3-Clause
// Role: `hiroba predict`: a recorded run on other machines. The command becomes hiroba-predict,
// which alone is linked with SimGrid.
#pragma once

#include <string>
#include <vector>

#include "tools/words/command_words.hpp"

namespace hiroba::tools {

struct PredictOptions {
    std::string file, nodes, wire = "10GbE", platform, what_if;
    bool json = false;
};

CommandWords predict_words(PredictOptions& options);

/// Becomes hiroba-predict with `words` (argv). Returns the exit status where that is not there.
int become_predict(const std::vector<std::string>& words);

/// In hiroba-predict. Returns the exit status.
int predict(const PredictOptions& options);

}  // namespace hiroba::tools
