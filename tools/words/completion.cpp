// SPDX-License-Identifier: BSD-3-Clause
#include "tools/words/completion.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hiroba::tools {

namespace {

/// All names of all options of a command, those that take a value alone if asked for.
std::string names_of(const CommandWords& command, bool with_value, const char* between) {
    std::string names;
    for (const Word& word : command.words()) {
        if (word.positional() || (with_value && word.text == nullptr)) continue;
        for (const std::string& name : word.each_name())
            names += (names.empty() ? "" : between) + name;
    }
    return names;
}

/// "a|b" as words with spaces between.
std::string spaced(std::string choices) {
    std::ranges::replace(choices, '|', ' ');
    return choices;
}

/// Cases of bash: what is offered for the value of each option that has choices.
std::string bash_choices(const CommandWords& command) {
    std::string cases;
    for (const Word& word : command.words()) {
        if (word.choices.empty()) continue;
        std::string names;
        for (const std::string& name : word.each_name())
            names += (names.empty() ? "" : "|") + ("'" + command.name() + " " + name + "'");
        cases += "            " + names + ") COMPREPLY=($(compgen " +
                 (word.choices == "FILE" ? "-f" : "-W \"" + spaced(word.choices) + "\"") +
                 " -- \"$word\")) ;;\n";
    }
    return cases;
}

/// What stands in zsh's specification of an option behind its help.
std::string zsh_value(const Word& word) {
    if (word.text == nullptr) return "";
    if (word.choices == "FILE") return ":file:_files";
    return word.choices.empty() ? ":value:" : ":value:(" + spaced(word.choices) + ")";
}

/// Inside a '...' specification of zsh's _arguments: [help].
std::string zsh_help(const std::string& help) {
    std::string out;
    for (const char c : help) {
        if (c == '\'') {
            out += "'\\''";
        } else {
            if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
            out += c;
        }
    }
    return out;
}

}  // namespace

std::string bash_completion(const std::vector<CommandWords>& commands) {
    std::string all, cases, choices, with_program;
    for (const CommandWords& command : commands) {
        if (command.hidden()) continue;
        all += command.name() + " ";
        if (command.takes_program()) with_program += command.name() + " ";
        const std::string values = names_of(command, true, " ");
        cases += fmt::format("        {}) options=\"--help {}\" values=\"{}\" ;;\n", command.name(),
                             names_of(command, false, " "), values);
        choices += bash_choices(command);
    }
    // The words after the program of `run` are the program's: files, as for any command.
    return "# bash completion of hiroba; made from its tables of words\n"
           "_hiroba() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} options= values= i=2\n"
           "    COMPREPLY=()\n"
           "    if ((COMP_CWORD == 1)); then\n"
           "        COMPREPLY=($(compgen -W \"" +
           all +
           "--help --version\" -- \"$word\"))\n"
           "        return\n"
           "    fi\n"
           "    case ${COMP_WORDS[1]} in\n" +
           cases +
           "        *) return ;;\n"
           "    esac\n"
           "    while ((i < COMP_CWORD)) && [[ ${COMP_WORDS[i]} == -* && ${COMP_WORDS[i]} != -- "
           "]]; do\n"
           "        [[ \" $values \" == *\" ${COMP_WORDS[i]} \"* ]] && ((++i))\n"
           "        ((++i))\n"
           "    done\n"
           "    if ((i == COMP_CWORD)) && [[ $word == -* ]]; then\n"
           "        COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
           "    elif ((i == COMP_CWORD)) && [[ \" " +
           with_program +
           "\" == *\" ${COMP_WORDS[1]} \"* ]]; then\n"
           "        COMPREPLY=($(compgen -c -- \"$word\") $(compgen -f -- \"$word\"))\n"
           "    elif ((i < COMP_CWORD)); then\n"
           "        COMPREPLY=($(compgen -f -- \"$word\"))\n"
           "    elif ((i > COMP_CWORD)); then\n"
           "        case \"${COMP_WORDS[1]} ${COMP_WORDS[COMP_CWORD - 1]}\" in\n" +
           choices +
           "        esac\n"
           "    fi\n"
           "}\n"
           "complete -o filenames -F _hiroba hiroba\n";
}

std::string zsh_completion(const std::vector<CommandWords>& commands) {
    std::string all, cases;
    for (const CommandWords& command : commands) {
        if (command.hidden()) continue;
        all += fmt::format("        '{}:{}'\n", command.name(), zsh_help(command.help()));
        cases += fmt::format("        {}) _arguments -S", command.name());
        for (const Word& word : command.words()) {
            if (word.positional()) {
                cases += fmt::format(" \\\n            '::{}:'", word.names);
                continue;
            }
            for (const std::string& name : word.each_name())
                cases += fmt::format(" \\\n            '{}[{}]{}'", name, zsh_help(word.help),
                                     zsh_value(word));
        }
        if (command.takes_program()) cases += " \\\n            '*:: :_normal'";
        cases += " ;;\n";
    }
    return "#compdef hiroba\n"
           "# zsh completion of hiroba; made from its tables of words\n"
           "_hiroba() {\n"
           "    local -a commands=(\n" +
           all +
           "    )\n"
           "    if ((CURRENT == 2)); then\n"
           "        _describe command commands\n"
           "        return\n"
           "    fi\n"
           "    local command=$words[2]\n"
           "    shift words\n"
           "    ((CURRENT--))\n"
           "    case $command in\n" +
           cases +
           "    esac\n"
           "}\n"
           "_hiroba \"$@\"\n";
}

}  // namespace hiroba::tools
