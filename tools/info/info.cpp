// SPDX-License-Identifier: BSD-3-Clause
// Role: collects the facts once as JSON, then prints that as it is or as text.
#include "tools/info/info.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/fatal.hpp"
#include "base/settings.hpp"
#include "dsm/memory/fault_engine.hpp"
#include "net/bootstrap/device.hpp"
#include "net/provider/provider.hpp"
#include "tools/become.hpp"
#include "tools/build.hpp"
#include "tools/info/features.hpp"
#include "tools/info/limits.hpp"
#include "tools/json.hpp"
#include "tools/line.hpp"
#include "tools/machine.hpp"
#include "tools/perf/perf.hpp"
#include "tools/run/plan.hpp"

namespace hiroba::tools {

namespace {

constexpr std::uint32_t usual_nodes = 4;

Json build_facts() {
    return Json::object(
        {{"version", build_version}, {"build_type", build_type}, {"compiler", build_compiler}});
}

/// Those that need a library or a device say which they found, or what is missing.
Json provider_facts() {
    Json all = Json::array();
    const std::string_view wanted = setting("HIROBA_PROVIDER");
    const char* const given = std::getenv("HIROBA_PROVIDER");
    const char* const why = given && *given != '\0' ? "HIROBA_PROVIDER" : "the default";
    const auto memory = [] {
        for (const Feature& feature : try_features())
            if (feature.name == "memfd_create") return feature;
        return Feature{};
    }();
    for (const net::ProviderFinding& found : net::find_providers()) {
        const bool needs_memfd = found.name == "auto" || found.name.starts_with("shm");
        const bool lacks_memfd = needs_memfd && !memory.usable;
        const bool chosen = found.name == wanted;
        const std::string reason = lacks_memfd ? "memfd_create: " + memory.detail : found.detail;
        all.push_back(Json::object({{"name", found.name},
                                    {"usable", found.usable && !lacks_memfd},
                                    {"chosen", chosen},
                                    {"why", chosen ? why : "not asked for (--provider)"},
                                    {"reason", reason}}));
    }
    return all;
}

/// The device of `wanted` (HIROBA_NET), and why each other one is not it.
Json network_facts() {
    const auto choice = net::choose_device(setting("HIROBA_NET"), {});
    Json devices = Json::array();
    for (const net::NetworkDevice& device : net::network_devices()) {
        const bool chosen =
            choice && choice->name == device.name && choice->address == device.address;
        const char* const reason = chosen            ? choice->why.c_str()
                                   : !device.up      ? "down"
                                   : device.loopback ? "leads to this host alone"
                                   : device.bridge   ? "bridge between virtual machines"
                                                     : "another one leads out of this host";
        devices.push_back(Json::object({{"name", device.name},
                                        {"address", device.address},
                                        {"chosen", chosen},
                                        {"reason", reason}}));
    }
    return Json::object({{"chosen", choice ? Json(choice->name) : Json(nullptr)},
                         {"why", choice ? choice->why : choice.error().text},
                         {"devices", devices}});
}

Json engine_facts() {
    const dsm::EngineProbe uffd = dsm::probe_uffd();
    const dsm::EngineProbe mprotect = dsm::probe_mprotect();
    Json facts = Json::object();
    const auto engine = dsm::make_fault_engine(setting("HIROBA_FAULT_ENGINE"));
    facts["chosen"] = engine ? Json((*engine)->facts().name) : Json(nullptr);
    facts["why"] = engine ? (*engine)->facts().why : engine.error().text;
    facts["block_bytes"] = engine ? Json((*engine)->facts().block_bytes) : Json(nullptr);
    facts["engines"] = Json::array(
        {Json::object({{"name", "uffd"}, {"usable", uffd.usable}, {"reason", uffd.reason}}),
         Json::object(
             {{"name", "mprotect"}, {"usable", mprotect.usable}, {"reason", mprotect.reason}})});
    return facts;
}

Json machine_facts(const Machine& machine) {
    Json features = Json::array();
    for (const Feature& feature : try_features())
        features.push_back(Json::object(
            {{"name", feature.name}, {"usable", feature.usable}, {"detail", feature.detail}}));
    return Json::object(
        {{"kernel", machine.kernel},
         {"cores_affinity", machine.cores_affinity},
         {"cores_quota", machine.cores_quota ? Json(*machine.cores_quota) : Json(nullptr)},
         {"cores", machine.cores()},
         {"overcommit_memory", machine.overcommit},
         {"features", features}});
}

Json limit_facts(const Machine& machine, std::uint64_t heap_bytes) {
    Json all = Json::array();
    for (const LimitVerdict& limit : judge_limits(machine, usual_nodes, heap_bytes,
                                                  setting("HIROBA_PROVIDER").ends_with("verbs")))
        all.push_back(Json::object({{"name", limit.name},
                                    {"value", limit.value},
                                    {"enough", limit.enough},
                                    {"advice", limit.advice}}));
    return all;
}

/// Those that are set are shown in any case.
Json setting_facts(bool whole_table) {
    Json all = Json::array();
    for (const Setting& each : all_settings()) {
        const char* const given = std::getenv(each.name);
        const bool is_set = given != nullptr && *given != '\0';
        if (!each.is_usual && !whole_table && !is_set) continue;
        all.push_back(Json::object({{"name", each.name},
                                    {"value", setting(each.name)},
                                    {"default", each.default_value},
                                    {"origin", is_set ? "environment" : "default"},
                                    {"values", each.values},
                                    {"help", each.help}}));
    }
    return all;
}

std::string text_of(const Json& value) {
    if (const std::string* const text = value.text()) return *text;
    return value.is_null() ? "none" : value.dump();
}

void print_facts(const Json& facts, std::uint64_t heap_bytes) {
    fmt::print("hiroba {} ({}, {})\n", text_of(facts["build"]["version"]),
               text_of(facts["build"]["build_type"]), text_of(facts["build"]["compiler"]));
    const Json& machine = facts["machine"];
    fmt::print("kernel        {}\n", text_of(machine["kernel"]));
    fmt::print("cores         {} (affinity {}, quota {})\n", text_of(machine["cores"]),
               text_of(machine["cores_affinity"]), text_of(machine["cores_quota"]));
    fmt::print("nodes         at most {}\n", text_of(facts["nodes_max"]));
    fmt::print("heap          {} of address space a node (HIROBA_HEAP)\n", size_text(heap_bytes));
    fmt::print("page          {} bytes; block {} bytes\n", text_of(facts["page_bytes"]),
               text_of(facts["fault_engine"]["block_bytes"]));
    for (const Json& each : facts["providers"].elements())
        fmt::print("provider      {}: {}{}: {}\n", text_of(each["name"]),
                   each["usable"].is_true() ? "usable" : "not usable",
                   each["chosen"].is_true() ? ", chosen (" + text_of(each["why"]) + ")" : "",
                   text_of(each["reason"]));
    fmt::print("network       {}: {}\n", text_of(facts["network"]["chosen"]),
               text_of(facts["network"]["why"]));
    for (const Json& each : facts["network"]["devices"].elements())
        fmt::print("              {} {}: {}\n", text_of(each["name"]), text_of(each["address"]),
                   text_of(each["reason"]));
    fmt::print("fault engine  {}: {}\n", text_of(facts["fault_engine"]["chosen"]),
               text_of(facts["fault_engine"]["why"]));
    for (const Json& each : facts["fault_engine"]["engines"].elements())
        fmt::print("              {}: {}: {}\n", text_of(each["name"]),
                   each["usable"].is_true() ? "usable" : "not usable", text_of(each["reason"]));
    for (const Json& each : machine["features"].elements())
        fmt::print("feature       {}: {}: {}\n", text_of(each["name"]),
                   each["usable"].is_true() ? "yes" : "no", text_of(each["detail"]));
    fmt::print("overcommit    {} (vm.overcommit_memory)\n", text_of(machine["overcommit_memory"]));
    for (const Json& each : facts["limits"].elements())
        fmt::print("limit         {}: {}\n", text_of(each["name"]), text_of(each["value"]));
}

void print_settings(const Json& settings) {
    for (const Json& each : settings.elements())
        fmt::print("{}={}\n    {}. Values: {}; default: {}; origin: {}\n", text_of(each["name"]),
                   text_of(each["value"]), text_of(each["help"]), text_of(each["values"]),
                   text_of(each["default"]), text_of(each["origin"]));
}

bool print_limits(const Json& limits, bool quiet) {
    bool all_enough = true;
    for (const Json& each : limits.elements()) {
        const bool enough = each["enough"].is_true();
        all_enough = all_enough && enough;
        if (quiet) continue;
        fmt::print("{:<8} {}: {}{}{}\n", enough ? "ok" : "too low", text_of(each["name"]),
                   text_of(each["value"]), enough ? "" : "; ", text_of(each["advice"]));
    }
    return all_enough;
}

/// Becomes a job whose ranks look at themselves.
/// @return only if that failed: the exit status
int measure_memory(const InfoOptions& options) {
    if (options.settings || options.limits) {
        say_line("--memory stands alone: leave -c and -l out");
        return exit_usage;
    }
    std::vector<std::string> command = {beside_this_program("hiroba"), "run", "--spmd"};
    const std::string nodes = options.nodes.empty() ? std::to_string(usual_nodes) : options.nodes;
    command.insert(command.end(), {"-n", nodes, "-t", "1"});
    if (!options.provider.empty()) command.insert(command.end(), {"--provider", options.provider});
    command.insert(command.end(), {"--", beside_this_program("hiroba-perf"), memory_report});
    if (options.json) command.emplace_back("--json");
    return become(command);
}

}  // namespace

int info(const InfoOptions& options) {
    if (!options.memory && !(options.nodes.empty() && options.provider.empty())) {
        say_line("-n and --provider are of --memory alone. Leave them out, or add --memory");
        return exit_usage;
    }
    if (options.all && !options.settings) {
        say_line("--all goes with -c");
        return exit_usage;
    }
    if (options.memory) return measure_memory(options);
    if (const auto valid = check_settings(); !valid) return report(valid.error());
    const auto sizes = space_sizes(1);
    if (!sizes) return report(sizes.error());
    const std::uint64_t heap_bytes = (*sizes).heap_bytes;
    const Machine machine = look_at_machine();
    const bool everything = !options.settings && !options.limits;
    Json facts = Json::object();
    if (everything) {
        facts["build"] = build_facts();
        facts["machine"] = machine_facts(machine);
        facts["providers"] = provider_facts();
        facts["network"] = network_facts();
        facts["fault_engine"] = engine_facts();
        facts["page_bytes"] = page_bytes;
        facts["heap_bytes"] = heap_bytes;
        facts["nodes_max"] = nodes_max;
    }
    if (everything || options.limits) facts["limits"] = limit_facts(machine, heap_bytes);
    if (options.settings) facts["settings"] = setting_facts(options.all);

    if (options.json) fmt::print("{}\n", facts.dump(2));
    if (!options.json && everything) print_facts(facts, heap_bytes);
    if (!options.json && options.settings) print_settings(facts["settings"]);
    const bool enough = !options.limits || print_limits(facts["limits"], options.json);
    if (std::fflush(stdout) != 0) {
        say_line("could not write to standard output");
        return 1;
    }
    return enough ? 0 : exit_environment;
}

}  // namespace hiroba::tools
