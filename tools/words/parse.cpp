// SPDX-License-Identifier: BSD-3-Clause
// Role: parses command lines with CLI11, which no other file includes.
#include <CLI/CLI.hpp>
#include <optional>

#include "base/fatal.hpp"
#include "tools/line.hpp"
#include "tools/words/command_words.hpp"

namespace hiroba::tools {

namespace {

void add_words(CLI::App& app, const CommandWords& command) {
    for (const Word& word : command.words()) {
        CLI::Option* const option = word.text ? app.add_option(word.names, *word.text, word.help)
                                              : app.add_flag(word.names, *word.flag, word.help);
        if (word.required) option->required();
    }
    app.footer(command.footer());
    if (command.hidden()) app.group("");
    app.final_callback([&command] {
        const std::string wrong = command.wrong_together();
        if (!wrong.empty()) throw CLI::ValidationError(wrong, CLI::ExitCodes::ValidationError);
    });
}

/// Parses; says what is wrong as one line.
/// @return empty if the words are right, else the exit status
std::optional<int> parse_words(CLI::App& app, const std::vector<std::string>& words) {
    try {
        // CLI11 takes the words from the back.
        app.parse(std::vector<std::string>(words.rbegin(), words.rend() - 1));
    } catch (const CLI::Success& wanted) {
        return app.exit(wanted);  // --help, --version
    } catch (const CLI::ParseError& wrong) {
        say_line(std::string(wrong.what()) + ". See " + app.get_name() + " --help");
        return exit_usage;
    }
    return std::nullopt;
}

}  // namespace

Parsed parse(const CommandWords& whole, const std::vector<CommandWords>& commands,
             const std::vector<std::string>& words, const std::string& version) {
    CLI::App app{whole.help(), whole.name()};
    app.set_version_flag("--version", version);
    app.require_subcommand(1);
    add_words(app, whole);
    std::vector<const CLI::App*> apps;
    for (const CommandWords& command : commands) {
        apps.push_back(app.add_subcommand(command.name(), command.help()));
        add_words(*app.get_subcommand(command.name()), command);
    }
    if (const auto status = parse_words(app, words)) return {nullptr, *status};
    for (std::size_t i = 0; i < commands.size(); ++i)
        if (apps[i]->parsed()) return {&commands[i], 0};
    return {nullptr, exit_usage};
}

Parsed parse(const CommandWords& command, const std::vector<std::string>& words,
             const std::string& version) {
    CLI::App app{command.help(), command.name()};
    app.set_version_flag("--version", version);
    add_words(app, command);
    if (const auto status = parse_words(app, words)) return {nullptr, *status};
    return {&command, 0};
}

}  // namespace hiroba::tools
