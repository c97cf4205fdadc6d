// SPDX-License-Identifier: BSD-3-Clause
#include "tools/become.hpp"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <filesystem>

#include "base/fatal.hpp"
#include "tools/line.hpp"

namespace hiroba::tools {

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
    std::vector<char*> pointers;
    pointers.reserve(words.size() + 1);
    for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    return pointers;
}

int become(const std::vector<std::string>& words) {
    const std::vector<char*> pointers = pointers_to(words);
    ::execv(pointers[0], pointers.data());
    say_line(words[0] + " cannot be executed: " + ::strerror(errno) +
             ". Install it beside this command");
    return exit_environment;
}

std::string beside_this_program(const std::string& name) {
    std::error_code failed;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", failed);
    return failed ? name : (self.parent_path() / name).string();
}

}  // namespace hiroba::tools
