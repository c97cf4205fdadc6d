// SPDX-License-Identifier: BSD-3-Clause
#include "tools/report/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/sync_place.hpp"
#include "tools/run/debug_lines.hpp"

namespace hiroba::tools {

namespace {

/// Each look into debug information takes about a millisecond.
constexpr std::size_t code_most = 600, lines_of_variables_most = 100;

/// What comes how often; the most frequent first.
class Wanted {
public:
    void add(std::uint64_t address) {
        if (address != 0) ++counts_[address];
    }
    std::vector<std::uint64_t> first(std::size_t most) const {
        std::vector<std::pair<std::uint64_t, std::uint64_t>> all(counts_.begin(), counts_.end());
        std::ranges::stable_sort(all,
                                 [](const auto& a, const auto& b) { return a.second > b.second; });
        std::vector<std::uint64_t> addresses;
        for (const auto& [address, count] : all) {
            if (addresses.size() == most) break;
            addresses.push_back(address);
        }
        return addresses;
    }

private:
    std::map<std::uint64_t, std::uint64_t> counts_;
};

Wanted code_in(const Recording& recording) {
    Wanted wanted;
    for (const SyncPlace& place : recording.places) wanted.add(code_of_place(place));
    for (const RecordedBlock& allocation : recording.allocations) wanted.add(allocation.site - 1);
    for (const Stream& stream : recording.streams) {
        for (const Event& event : stream.events) {
            if (event.kind == RecordKind::fault) wanted.add(event.second & low_48);
            if (event.kind == RecordKind::task) wanted.add(event.first);
        }
    }
    return wanted;
}

Wanted blocks_in(const Recording& recording) {
    Wanted wanted;
    for (const Stream& stream : recording.streams)
        for (const Event& event : stream.events)
            if (event.kind == RecordKind::fault || event.kind == RecordKind::merged ||
                event.kind == RecordKind::fetched || event.kind == RecordKind::atomic)
                wanted.add((event.first & low_48) / recording.block_bytes * recording.block_bytes);
    return wanted;
}

}  // namespace

std::string plain_function(std::string_view name) {
    constexpr std::string_view nobody = "(anonymous namespace)::", call = "operator";
    std::string plain;
    unsigned depth = 0;  // in <...>, in {...}, in parentheses of these
    for (std::size_t at = 0; at < name.size(); ++at) {
        const std::string_view left = name.substr(at);
        const char next = left[0];
        if (depth == 0 && left.starts_with(nobody)) {
            at += nobody.size() - 1;
        } else if (depth == 0 && left.starts_with(call)) {
            plain +=
                left.substr(0, left.find('(', call.size() + 1));  // its sign may be one of these
            break;
        } else if (next == '<' || next == '{' || (next == '(' && depth > 0)) {
            if (next == '{' && depth == 0) plain += "lambda";
            ++depth;
        } else if (depth > 0) {
            depth -= next == '>' || next == '}' || next == ')';
        } else if (next == '(' || (next == '.' && at > 0)) {
            break;  // parameters; main._omp_fn.0, main.omp_outlined, work.constprop.0
        } else if (next == ' ') {
            plain.clear();  // what it returns
        } else {
            plain += next;
        }
    }
    return plain.empty() ? std::string(name) : plain;
}

std::uint64_t code_of_place(const SyncPlace& place) {
    return place.address == 0 || is_function(place) ? place.address : place.address - 1;
}

Names Names::of(const Recording& recording) {
    Names names;
    const std::vector<LoadedFile>& files = recording.job.files;
    for (const std::uint64_t address : code_in(recording).first(code_most)) {
        const auto found = find_code(files, address);
        if (!found) continue;
        const bool is_plain = !found->has_line || found->function.empty();
        names.code_[address] = {
            is_plain ? found->text
                     : fmt::format("{} ({})", found->line, plain_function(found->function)),
            found->has_line};
    }
    const std::vector<DataSymbol> symbols = data_symbols(files);
    std::size_t lines = 0;
    for (const std::uint64_t block : blocks_in(recording).first(~std::size_t{0})) {
        const std::uint64_t end = block + recording.block_bytes;
        auto symbol = std::ranges::upper_bound(symbols, block, {}, &DataSymbol::address);
        if (symbol != symbols.begin() && (symbol - 1)->address + (symbol - 1)->bytes > block)
            --symbol;
        for (; symbol != symbols.end() && symbol->address < end; ++symbol) {
            const auto [at, added] = names.variables_.try_emplace(
                symbol->address, Variable{symbol->address, symbol->bytes, symbol->name, ""});
            if (!added || lines == lines_of_variables_most) continue;
            ++lines;
            at->second.line = line_of_variable(symbol->path, symbol->linked).value_or("");
        }
    }
    return names;
}

std::string Names::text() const {
    std::string text;
    for (const auto& [address, code] : code_)
        text += fmt::format("code {} {} {}\n", address, code.has_line ? 1 : 0, code.line);
    for (const auto& [address, variable] : variables_)
        text += fmt::format("data {} {} {} {}\n", address, variable.bytes,
                            variable.line.empty() ? "-" : variable.line, variable.name);
    return text;
}

Names Names::from_text(const std::string& text) {
    Names names;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream fields(line);
        std::string kind;
        std::uint64_t address = 0;
        fields >> kind >> address;
        if (kind == "code") {
            CodeOfProgram code;
            int has_line = 0;
            fields >> has_line;
            code.has_line = has_line != 0;
            std::getline(fields >> std::ws, code.line);
            if (fields) names.code_[address] = std::move(code);
        } else if (kind == "data") {
            Variable variable;
            variable.address = address;
            fields >> variable.bytes >> variable.line;
            std::getline(fields >> std::ws, variable.name);
            if (variable.line == "-") variable.line.clear();
            if (fields) names.variables_[address] = std::move(variable);
        }
    }
    return names;
}

std::string Names::code(std::uint64_t address) const {
    const auto found = code_.find(address);
    return found != code_.end() ? found->second.line : fmt::format("{:#x}", address);
}

const Variable* Names::variable(std::uint64_t address) const {
    auto found = variables_.upper_bound(address);
    if (found == variables_.begin()) return nullptr;
    --found;
    return address - found->first < found->second.bytes ? &found->second : nullptr;
}

const Variable* Names::first_in(std::uint64_t address, std::uint64_t end) const {
    const auto found = variables_.lower_bound(address);
    return found != variables_.end() && found->first < end ? &found->second : nullptr;
}

std::string Names::place(const SyncPlace& place) const {
    if (place.address == 0) return "before the first region";
    if (place.kind == SyncKind::start) return code(place.address - 1);
    return fmt::format("{} at {}", name_of(place.kind), code(code_of_place(place)));
}

}  // namespace hiroba::tools
