// SPDX-License-Identifier: BSD-3-Clause
#include "tools/words/command_words.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/settings.hpp"

namespace hiroba::tools {

std::vector<std::string> Word::each_name() const {
    std::vector<std::string> all;
    std::istringstream stream(names);
    for (std::string name; std::getline(stream, name, ',');) all.push_back(name);
    return all;
}

void CommandWords::add_option(std::string names, std::string& value, std::string help) {
    words_.push_back({.names = std::move(names), .help = std::move(help), .text = &value});
}

void CommandWords::add_required(std::string names, std::string& value, std::string help) {
    add_option(std::move(names), value, std::move(help));
    words_.back().required = true;
}

void CommandWords::add_flag(std::string names, bool& value, std::string help) {
    words_.push_back({.names = std::move(names), .help = std::move(help), .flag = &value});
}

std::string values_of_setting(std::string_view name) {
    for (const Setting& each : all_settings())
        if (name == each.name) return each.values;
    return "";
}

CommandWords& CommandWords::hide() {
    hidden_ = true;
    return *this;
}

bool CommandWords::takes_value(std::string_view word) const {
    return std::ranges::any_of(words_, [&](const Word& each) {
        const std::vector<std::string> names = each.each_name();
        return each.text != nullptr && !each.positional() &&
               std::ranges::find(names, word) != names.end();
    });
}

}  // namespace hiroba::tools
