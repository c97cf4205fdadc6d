// SPDX-License-Identifier: BSD-3-Clause
#include "tools/check/check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/fatal.hpp"
#include "base/settings.hpp"
#include "dsm/memory/fault_engine.hpp"
#include "tools/check/survey.hpp"
#include "tools/json.hpp"
#include "tools/line.hpp"
#include "tools/run/plan.hpp"
#include "tools/run/program.hpp"

namespace hiroba::tools {
namespace {

const char* name_of(Effect effect) {
    switch (effect) {
        case Effect::ends: return "ends the run";
        case Effect::fails: return "fails";
        default: return "may not work";
    }
}

/// "a, b, c and 4 more".
std::string some_of(const std::vector<std::string>& all, std::size_t most) {
    const std::size_t shown = std::min(all.size(), most);
    std::string text = fmt::format(
        "{}", fmt::join(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
    if (shown < all.size()) text += fmt::format(" and {} more", all.size() - shown);
    return text;
}

std::string atomics_text(const AtomicsFound& found) {
    std::string text =
        fmt::format("{} atomics and {} flushes are rewritten", found.atomics, found.flushes);
    if (found.by_trap != 0)
        text += fmt::format(", {} of them as traps (over 1 us each)", found.by_trap);
    if (found.left_alone != 0)
        text += fmt::format("; {} are not: thread-local, or of a form without a trampoline",
                            found.left_alone);
    if (found.undecodable_bytes != 0)
        text += fmt::format("; {} bytes cannot be decoded", found.undecodable_bytes);
    return text;
}

void print_object(const ObjectFound& object) {
    fmt::print("{}{}\n", object.path, object.asked_as.empty() ? "" : ", shared by all nodes");
    if (!object.error.empty()) fmt::print("  unreadable    {}\n", object.error);
    if (!object.compilers.empty())
        fmt::print("  compiler      {}\n", fmt::join(object.compilers, "; "));
    if (!object.entry_points.empty())
        fmt::print("  asks for      {}\n", fmt::join(object.entry_points, ", "));
    fmt::print("  atomics       {}\n", atomics_text(object.atomics));
    if (object.code_on_stack) fmt::print("  stacks        are executable: it keeps code on them\n");
    constexpr std::size_t places_most = 5;
    for (const Finding& finding : object.findings) {
        fmt::print("  {:13} {}: {}\n", name_of(finding.effect), finding.name, finding.why);
        if (!finding.places.empty())
            fmt::print("                at {}\n", some_of(finding.places, places_most));
    }
}

void print_text(const Survey& found, const std::string& engine) {
    if (!found.refusal.empty()) return;
    for (const ObjectFound& object : found.objects)
        if (object.why_private.empty()) print_object(object);
    for (const ObjectFound& object : found.objects)
        if (!object.why_private.empty())
            fmt::print("private       {}: {}\n", object.path, object.why_private);
    if (found.runtimes.empty())
        fmt::print("runtime       none: without OpenMP a program runs on node 0 alone\n");
    else
        fmt::print("runtime       {}, for which hiroba stands in\n",
                   fmt::join(found.runtimes, ", "));
    for (const std::string& name : found.missing) fmt::print("missing       {}\n", name);
    fmt::print("fault engine  {}\n", engine);
}

Json json_of(const std::vector<std::string>& texts) {
    Json list = Json::array();
    for (const std::string& text : texts) list.push_back(text);
    return list;
}

Json json_of(const ObjectFound& object) {
    Json findings = Json::array();
    for (const Finding& finding : object.findings)
        findings.push_back(Json::object({{"name", finding.name},
                                         {"outcome", name_of(finding.effect)},
                                         {"why", finding.why},
                                         {"places", json_of(finding.places)}}));
    return Json::object(
        {{"path", object.path},
         {"private", object.why_private.empty() ? Json(nullptr) : Json(object.why_private)},
         {"error", object.error.empty() ? Json(nullptr) : Json(object.error)},
         {"compilers", json_of(object.compilers)},
         {"entry_points", json_of(object.entry_points)},
         {"atomics", object.atomics.atomics},
         {"flushes", object.atomics.flushes},
         {"traps", object.atomics.by_trap},
         {"left_alone", object.atomics.left_alone},
         {"undecodable_bytes", object.atomics.undecodable_bytes},
         {"code_on_stack", object.code_on_stack},
         {"findings", findings}});
}

void print_json(const Survey& found, const std::string& engine) {
    Json objects = Json::array();
    for (const ObjectFound& object : found.objects) objects.push_back(json_of(object));
    const Json all =
        Json::object({{"program", found.program},
                      {"would_run", found.would_run()},
                      {"refusal", found.refusal.empty() ? Json(nullptr) : Json(found.refusal)},
                      {"runtimes", json_of(found.runtimes)},
                      {"missing", json_of(found.missing)},
                      {"fault_engine", engine},
                      {"objects", objects}});
    fmt::print("{}\n", all.dump());
}

}  // namespace

int check(const CheckOptions& options) {
    const auto program = find_program(options.program);
    if (!program) return report(program.error());
    const auto library = find_library();
    if (!library) return report(library.error());
    const auto engine = dsm::make_fault_engine(setting("HIROBA_FAULT_ENGINE"));
    const std::string engine_text =
        engine ? fmt::format("{}: {}", (*engine)->facts().name, (*engine)->facts().why)
               : engine.error().text;
    const Survey found = survey(*program, *library);
    if (options.json)
        print_json(found, engine_text);
    else
        print_text(found, engine_text);
    if (!found.refusal.empty())
        say_line(found.refusal);
    else if (!found.would_run())
        say_line(fmt::format("{}: what is named above ends a run where it gets there", *program));
    else if (!engine)
        return report(engine.error());
    return found.would_run() ? 0 : exit_environment;
}

}  // namespace hiroba::tools
