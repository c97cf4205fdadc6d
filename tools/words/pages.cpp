// SPDX-License-Identifier: BSD-3-Clause
// Role: manual pages in roff (man(7)); completion is in completion.cpp.
#include "tools/words/pages.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string_view>

#include "base/settings.hpp"
#include "tools/line.hpp"
#include "tools/words/completion.hpp"

namespace hiroba::tools {

namespace {

/// `text` as roff prints it: no control line, no escape, plain dashes and quotes.
std::string roff(std::string_view text) {
    std::string out;
    if (text.starts_with('.') || text.starts_with('\'')) out += "\\&";
    for (const char c : text) {
        switch (c) {
            case '\\': out += "\\e"; break;
            case '-': out += "\\-"; break;
            case '\'': out += "\\(aq"; break;
            case '^': out += "\\(ha"; break;
            case '~': out += "\\(ti"; break;
            default: out += c;
        }
    }
    return out;
}

std::string head(const std::string& name, int section, const std::string& version,
                 const std::string& about) {
    return fmt::format(".TH {} {} \"\" \"hiroba {}\" \"hiroba\"\n.SH NAME\n{} \\- {}\n", roff(name),
                       section, version, roff(name), roff(about));
}

/// The words of a command in one line, as [\fB\-v\fR].
std::string synopsis(const CommandWords& command, const std::string& name) {
    std::string line = "\\fB" + roff(name) + "\\fR";
    std::string last;
    for (const Word& word : command.words()) {
        if (word.positional()) {
            const std::string name = "\\fI" + roff(word.names) + "\\fR";
            last += word.required ? " " + name : " [" + name + "]";
            continue;
        }
        line += fmt::format(" [\\fB{}\\fR{}]", roff(word.each_name().front()),
                            word.text ? " \\fIvalue\\fR" : "");
    }
    if (command.takes_program()) last += " [\\-\\-] \\fIprogram\\fR [\\fIargument\\fR ...]";
    return line + last + "\n";
}

std::string options(const CommandWords& command) {
    std::string text;
    for (const Word& word : command.words()) {
        std::string names;
        for (const std::string& name : word.each_name())
            names += (names.empty() ? "\\fB" : ", \\fB") + roff(name) + "\\fR";
        if (word.text && !word.positional()) names += " \\fIvalue\\fR";
        text += ".TP\n" + names + "\n" + roff(word.help) + "\n";
    }
    return text;
}

std::string exit_statuses() {
    return ".SH EXIT STATUS\n.TP\n0\nsuccess; of a program that was run: as it ended itself\n"
           ".TP\n64\nthe command line or a setting is wrong\n"
           ".TP\n70\nhiroba broke one of its own rules\n"
           ".TP\n78\nthis machine or this program will not do\n.PP\n"
           "One line on standard error says which number was wrong and which setting changes it.\n";
}

std::string page_of_whole(const CommandWords& whole, const std::vector<CommandWords>& commands,
                          const std::string& version) {
    std::string text = head("hiroba", 1, version, whole.help());
    text += ".SH SYNOPSIS\n\\fBhiroba\\fR \\fIcommand\\fR [\\fIoption\\fR ...]\n.SH COMMANDS\n";
    std::string others;
    for (const CommandWords& command : commands) {
        if (command.hidden()) continue;
        text += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(command.name()), roff(command.help()));
        others += fmt::format(".BR hiroba\\-{} (1),\n", roff(command.name()));
    }
    return text + exit_statuses() + ".SH SEE ALSO\n" + others + ".BR hiroba\\-settings (7)\n";
}

std::string page_of(const CommandWords& command, const std::string& version) {
    std::string text = head("hiroba-" + command.name(), 1, version, command.help());
    text += ".SH SYNOPSIS\n" + synopsis(command, "hiroba " + command.name());
    if (!command.words().empty()) text += ".SH OPTIONS\n" + options(command);
    if (!command.footer().empty()) text += ".SH NOTES\n" + roff(command.footer()) + "\n";
    return text + exit_statuses() + ".SH SEE ALSO\n.BR hiroba (1),\n.BR hiroba\\-settings (7)\n";
}

std::string page_of_settings(const std::string& version) {
    std::string text =
        head("hiroba-settings", 7, version, "environment variables that hiroba reads");
    text += ".SH DESCRIPTION\n" +
            roff(
                "A wrong value ends the command with status 64 and a line; an unknown name of "
                "this prefix is warned of. `hiroba info -c` shows the values that hold; with --all "
                "also settings for tests and for builders of runtimes.") +
            "\n.SH ENVIRONMENT\n";
    for (const Setting& each : all_settings()) {
        if (!each.is_usual) continue;
        text += fmt::format(".TP\n\\fB{}\\fR\n{}.\nValues: {}; default: {}.\n", roff(each.name),
                            roff(each.help), roff(each.values),
                            *each.default_value ? roff(each.default_value) : "none");
    }
    return text + ".SH SEE ALSO\n.BR hiroba\\-info (1)\n";
}

}  // namespace

std::vector<Page> make_pages(const CommandWords& whole, const std::vector<CommandWords>& commands,
                             const std::string& version) {
    std::vector<Page> pages = {{"man/man1/hiroba.1", page_of_whole(whole, commands, version)},
                               {"man/man7/hiroba-settings.7", page_of_settings(version)},
                               {"bash-completion/completions/hiroba", bash_completion(commands)},
                               {"zsh/site-functions/_hiroba", zsh_completion(commands)}};
    for (const CommandWords& command : commands) {
        if (!command.hidden())
            pages.push_back(
                {"man/man1/hiroba-" + command.name() + ".1", page_of(command, version)});
    }
    return pages;
}

int write_pages(const std::vector<Page>& pages, const std::string& folder) {
    for (const Page& page : pages) {
        const std::filesystem::path path = std::filesystem::path(folder) / page.path;
        std::error_code failed;
        std::filesystem::create_directories(path.parent_path(), failed);
        std::ofstream file(path);
        file << page.text;
        file.close();
        if (failed || !file) {
            say_line(fmt::format("{} cannot be written. Name another folder", path.string()));
            return 1;
        }
    }
    return 0;
}

}  // namespace hiroba::tools
