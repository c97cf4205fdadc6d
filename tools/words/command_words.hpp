// SPDX-License-Identifier: BSD-3-Clause
// Role: the words a command takes, as a table: parsing, help, manual pages and completion read it.
// Invariant: CLI11 is included by parse.cpp alone; it is slow to compile.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hiroba::tools {

/// One option, flag or positional word.
struct Word {
    std::string names;  ///< "-n,--nodes"; a positional word has no dash
    std::string help;
    std::string* text = nullptr;  ///< receives the value of an option; nullptr for a flag
    bool* flag = nullptr;
    std::string choices = {};  ///< "a|b" where the value is one of these, "FILE" where it is a file
    bool required = false;

    bool positional() const { return !names.starts_with('-'); }
    /// Each name alone, as written on the command line.
    std::vector<std::string> each_name() const;
};

/// The words of one command. The targets of its options must outlive it.
class CommandWords {
public:
    CommandWords(std::string name, std::string help)
        : name_(std::move(name)), help_(std::move(help)) {}

    /// @param names  "-n,--nodes", or "name" of a positional word
    void add_option(std::string names, std::string& value, std::string help);
    void add_required(std::string names, std::string& value, std::string help);
    void add_flag(std::string names, bool& value, std::string help);
    /// What shells offer for the value of the option added last: "a|b", or "FILE".
    void offer(std::string choices) { words_.back().choices = std::move(choices); }
    /// Text below the options in the help.
    void footer(std::string text) { footer_ = std::move(text); }
    /// Leaves the command out of help, manual pages and completion.
    CommandWords& hide();
    /// The first word that is no option names a program, and all that follow are its arguments.
    void take_program() { takes_program_ = true; }
    /// `check` runs after parsing and returns what is wrong with the words together; empty:
    /// nothing.
    void check_with(std::function<std::string()> check) { check_ = std::move(check); }

    const std::string& name() const { return name_; }
    const std::string& help() const { return help_; }
    const std::string& footer() const { return footer_; }
    const std::vector<Word>& words() const { return words_; }
    bool takes_program() const { return takes_program_; }
    bool hidden() const { return hidden_; }
    std::string wrong_together() const { return check_ ? check_() : ""; }
    /// True if `word` names an option whose value is the next word.
    bool takes_value(std::string_view word) const;

private:
    std::string name_, help_, footer_;
    std::vector<Word> words_;
    std::function<std::string()> check_;
    bool hidden_ = false, takes_program_ = false;
};

/// What the setting `name` takes, as "a|b".
std::string values_of_setting(std::string_view name);

struct Parsed {
    /// nullptr if help or version was printed, or if the words were wrong and a line said so.
    const CommandWords* command = nullptr;
    int status = 0;  ///< exit status if there is no command: 0, or 64
};

/// Reads `words` (argv) as one of `commands`, after the options of `whole` (--help, --version).
/// @param version  what --version prints
Parsed parse(const CommandWords& whole, const std::vector<CommandWords>& commands,
             const std::vector<std::string>& words, const std::string& version);

/// Reads `words` (argv) as `command`, which has no subcommands.
Parsed parse(const CommandWords& command, const std::vector<std::string>& words,
             const std::string& version);

}  // namespace hiroba::tools
