// SPDX-License-Identifier: BSD-3-Clause
// Role: a recording replayed on each number of nodes, at best and at worst, as text and as JSON.
#include "tools/predict/predict.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/fatal.hpp"
#include "tools/json.hpp"
#include "tools/line.hpp"
#include "tools/predict/replay.hpp"

namespace hiroba::tools {

namespace {

/// By how much a wire of the table may differ from a real one, and a replay from a run.
constexpr double wire_off = 1.25, replay_off = 1.3;

struct Prediction {
    std::uint32_t nodes = 0;
    Replayed best, worst;
    double low_ns() const { return best.ns / replay_off; }
    double high_ns() const { return worst.ns * replay_off; }
};

struct Question {
    WorkTable table;
    ReplayMachine machine;
    Changes changes;
    std::uint32_t threads = 1;
    double one_host_ns = 0;
};

Result<Replayed> replay_as(const Question& question, std::uint32_t nodes, Growth growth,
                           double off) {
    const WorkTable table = spread_over(question.table, nodes, question.threads, growth);
    ReplayMachine machine = question.machine;
    machine.wire.latency_us *= off;
    machine.wire.message_us *= off;
    machine.wire.gigabytes_s /= off;
    auto replayed = replay(table, machine);
    if (!replayed) return replayed;
    replayed->ns *= table.scale;
    return replayed;
}

Result<Prediction> predict_for(const Question& question, std::uint32_t nodes) {
    Prediction prediction;
    prediction.nodes = nodes;
    // From few nodes to many it is not known whether what moves is divided; at worst it is not.
    const bool known = nodes == question.table.nodes;
    auto best = replay_as(question, nodes, Growth::divided, 1 / wire_off);
    if (!best) return best.error();
    auto worst = replay_as(question, nodes, known ? Growth::divided : Growth::each, wire_off);
    if (!worst) return worst.error();
    prediction.best = *best;
    prediction.worst = *worst;
    if (prediction.best.ns > prediction.worst.ns) std::swap(prediction.best, prediction.worst);
    return prediction;
}

struct NamedLimit {
    const char *name, *key;
    double Limits::*value;
};
constexpr NamedLimit named_limits[] = {
    {"computing", "computing", &Limits::computing},
    {"imbalance", "imbalance", &Limits::imbalance},
    {"the serial part", "serial", &Limits::serial},
    {"hiroba's own work on memory", "memory", &Limits::memory},
    {"latency of misses", "latency", &Limits::latency},
    {"processors' time for messages", "messages", &Limits::messages},
    {"bytes on the wire", "bytes", &Limits::bytes},
    {"locks", "locks", &Limits::locks},
    {"too few cores", "cores", &Limits::cores},
    {"regions and barriers", "meetings", &Limits::meetings},
};

double part_of(const Replayed& replayed, const Limits& limits, double Limits::*value) {
    double all = 0;
    for (const NamedLimit& each : named_limits) all += replayed.limits.*each.value;
    return all > 0 ? limits.*value / all : 0;
}

/// The three that take most, beside computing.
std::string limits_text(const Replayed& replayed) {
    std::vector<std::pair<double, const char*>> parts;
    for (const NamedLimit& each : named_limits)
        if (each.value != &Limits::computing)
            parts.emplace_back(part_of(replayed, replayed.limits, each.value), each.name);
    std::ranges::stable_sort(parts, [](const auto& a, const auto& b) { return a.first > b.first; });
    std::string text;
    for (const auto& [part, name] : parts)
        if (part >= .05 && std::ranges::count(text, ',') < 2)
            text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", name, 100 * part);
    return text.empty() ? "computing" : text;
}

std::string time_text(double ns) {
    if (ns >= 1e9) return fmt::format("{:.2f} s", ns / 1e9);
    return ns >= 1e6 ? fmt::format("{:.1f} ms", ns / 1e6) : fmt::format("{:.0f} us", ns / 1e3);
}

std::string wire_text(const ReplayMachine& machine) {
    const Wire& wire = machine.wire;
    if (!machine.platform.empty())
        return fmt::format("{}, and {:.3g} us for a message at either end", machine.platform,
                           wire.message_us);
    if (wire.shared_memory) return "shm: all nodes on one host like the recorded one";
    return fmt::format(
        "{}: {:.3g} us one way, {:.3g} GB/s a host, {:.3g} us for a message at "
        "either end (as such networks usually are, not measured here)",
        wire.name, wire.latency_us, wire.gigabytes_s, wire.message_us);
}

std::string prediction_text(const Question& question, const std::string& command,
                            const std::vector<Prediction>& predictions) {
    const WorkTable& table = question.table;
    std::string text = fmt::format("{}\nRecorded: {} nodes of {} thread{}, {}\nOn: {}\n", command,
                                   table.nodes, table.threads, table.threads == 1 ? "" : "s",
                                   time_text(table.measured_ns), wire_text(question.machine));
    for (const std::string& note : table.notes) text += "Note: " + note + ".\n";
    text += fmt::format("\n{:>5} {:>8}  {:>21}  {:>13}  {:>12}  {}\n", "nodes", "threads", "time",
                        "times one host", "efficiency", "what limits it, at worst");
    text += fmt::format("{:>5} {:>8}  {:>21}  one host alone, threads share memory\n", 1,
                        question.threads, time_text(question.one_host_ns));
    for (const Prediction& each : predictions) {
        const double low = question.one_host_ns / each.high_ns();
        const double high = question.one_host_ns / each.low_ns();
        text += fmt::format(
            "{:>5} {:>8}  {:>21}  {:>14}  {:>12}  {}\n", each.nodes, question.threads,
            time_text(each.low_ns()) + " .. " + time_text(each.high_ns()),
            fmt::format("{:.2f} .. {:.2f}", low, high),
            fmt::format("{:.0f} .. {:.0f} %", 100 * low / each.nodes, 100 * high / each.nodes),
            limits_text(each.worst));
    }
    return text;
}

Json replayed_json(const Replayed& replayed) {
    Json limits = Json::object();
    for (const NamedLimit& each : named_limits)
        limits[each.key] = part_of(replayed, replayed.limits, each.value);
    return Json::object({{"ns", replayed.ns}, {"limits", std::move(limits)}});
}

std::string prediction_json(const Question& question, const std::string& command,
                            const std::vector<Prediction>& predictions) {
    const WorkTable& table = question.table;
    const Wire& wire = question.machine.wire;
    Json notes = Json::array(), list = Json::array();
    for (const std::string& note : table.notes) notes.push_back(note);
    for (const Prediction& each : predictions)
        list.push_back(Json::object({{"nodes", each.nodes},
                                     {"threads_per_node", question.threads},
                                     {"low_ns", each.low_ns()},
                                     {"high_ns", each.high_ns()},
                                     {"best", replayed_json(each.best)},
                                     {"worst", replayed_json(each.worst)}}));
    const Json result = Json::object({{"command", command},
                                      {"recorded_nodes", table.nodes},
                                      {"recorded_threads_per_node", table.threads},
                                      {"recorded_ns", table.measured_ns},
                                      {"one_host_ns", question.one_host_ns},
                                      {"wire", wire.name},
                                      {"platform", question.machine.platform},
                                      {"latency_us", wire.latency_us},
                                      {"gigabytes_s", wire.gigabytes_s},
                                      {"message_us", wire.message_us},
                                      {"notes", std::move(notes)},
                                      {"predictions", std::move(list)}});
    return result.dump(2) + "\n";
}

Result<Question> question_of(const PredictOptions& options, const Analysis& analysis,
                             const Changes& changes, Wire wire) {
    Question question;
    question.changes = changes;
    change(wire, changes);
    question.machine = {std::move(wire), options.platform};
    auto table = work_of(analysis, {changes.without_false_sharing});
    if (!table) return table.error();
    question.table = std::move(*table);
    change(question.table, changes);
    question.threads = changes.threads != 0 ? changes.threads : question.table.threads;
    question.one_host_ns = on_one_host_ns(question.table, question.threads);
    return question;
}

}  // namespace

int predict(const PredictOptions& options) {
    auto wire = wire_of(options.wire);
    if (!wire) return report(wire.error());
    const auto changes = changes_of(options.what_if);
    if (!changes) return report(changes.error());
    std::vector<std::uint32_t> counts;
    if (!options.nodes.empty()) {
        const auto wanted = node_counts(options.nodes);
        if (!wanted) return report(wanted.error());
        counts = *wanted;
    }
    if (!options.platform.empty()) {
        wire->shared_memory = false;
        if (::access(options.platform.c_str(), R_OK) != 0) {
            say_line(options.platform + " cannot be read. Name a platform of SimGrid's");
            return exit_environment;
        }
    }
    const auto archive = open_archive(options.file);
    if (!archive) return report(archive.error());
    const Recording recording = decode(*archive);
    const Analysis analysis = analyse(recording);
    const auto question = question_of(options, analysis, *changes, *wire);
    if (!question) return report(question.error());
    if (counts.empty()) counts = {question->table.nodes};
    std::vector<Prediction> predictions;
    for (const std::uint32_t nodes : counts) {
        const auto prediction = predict_for(*question, nodes);
        if (!prediction) return report(prediction.error());
        predictions.push_back(*prediction);
    }
    const auto make = options.json ? prediction_json : prediction_text;
    const std::string text = make(*question, recording.job.command, predictions);
    [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    return 0;
}

}  // namespace hiroba::tools
