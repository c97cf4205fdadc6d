// SPDX-License-Identifier: BSD-3-Clause
// Role: the recording as trace events (the JSON format of Chrome's tracing, which Perfetto reads).
// Source: "Trace Event Format", Google: complete events (X), metadata (M), flows (s, f).
#include <fmt/format.h>

#include <map>
#include <ostream>

#include "tools/json.hpp"
#include "tools/report/output.hpp"

namespace hiroba::tools {

namespace {

class TraceWriter {
public:
    TraceWriter(const Analysis& analysis, std::ostream& out) : analysis_(analysis), out_(out) {}

    void write() {
        const Recording& recording = *analysis_.recording;
        out_ << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
        for (std::uint32_t node = 0; node < recording.nodes.size(); ++node)
            put(Json::object(
                {{"ph", "M"},
                 {"name", "process_name"},
                 {"pid", node},
                 {"args", Json::object({{"name", fmt::format("node {} on {}", node,
                                                             recording.nodes[node].host)}})}}));
        for (std::uint32_t at = 0; at < recording.streams.size(); ++at) stream(at);
        out_ << "\n]}\n";
    }

private:
    void put(const Json& event) {
        if (!first_) out_ << ",\n";
        first_ = false;
        out_ << event.dump();
    }

    void stream(std::uint32_t number) {
        const Stream& stream = analysis_.recording->streams[number];
        put(Json::object(
            {{"ph", "M"},
             {"name", "thread_name"},
             {"pid", stream.node},
             {"tid", number},
             {"args",
              Json::object(
                  {{"name",
                    stream.thread < 0
                        ? std::string("hiroba's own")
                        : fmt::format("thread {}",
                                      static_cast<std::uint32_t>(stream.thread) %
                                          analysis_.recording->threads_per_node_most())}})}}));
        std::int64_t region_begin = -1;
        for (const Event& event : stream.events) {
            if (event.kind == RecordKind::region) region_begin = event.end_ns;
            if (event.kind == RecordKind::ends && region_begin >= 0) {
                span(stream.node, number, region_name(event), region_begin, event.end_ns,
                     Json::object({{"region", event.first}}));
                region_begin = -1;
            }
            if (!is_span(event.kind)) continue;
            span(stream.node, number, name_of_span(event.kind), event.begin_ns, event.end_ns,
                 details(event));
        }
    }

    std::string region_name(const Event& event) const {
        return analysis_.names.place(analysis_.recording->places[event.place]);
    }

    Json details(const Event& event) const {
        Json json = Json::object();
        if (event.kind == RecordKind::fault) {
            const std::uint64_t address = event.first & low_48;
            json["address"] = fmt::format("{:#x}", address);
            json["line"] = analysis_.names.code(event.second & low_48);
            if (const Variable* const variable = analysis_.names.variable(address))
                json["variable"] = variable->name;
        } else if (event.kind == RecordKind::release) {
            json["blocks"] = event.first & 0xffff'ffff;
        } else if (event.kind == RecordKind::acquire) {
            json["stale blocks"] = event.first & 0xffff'ffff;
            json["bytes"] = event.second;
        }
        json["at"] = analysis_.names.place(analysis_.recording->places[event.place]);
        return json;
    }

    void span(std::uint32_t node, std::uint32_t thread, const std::string& name, std::int64_t begin,
              std::int64_t end, Json details) {
        put(Json::object({{"ph", "X"},
                          {"name", name},
                          {"pid", node},
                          {"tid", thread},
                          {"ts", static_cast<double>(begin) / 1e3},
                          {"dur", static_cast<double>(end - begin) / 1e3},
                          {"args", std::move(details)}}));
    }

    const Analysis& analysis_;
    std::ostream& out_;
    bool first_ = true;
};

}  // namespace

void write_trace(const Analysis& analysis, std::ostream& out) {
    TraceWriter(analysis, out).write();
}

}  // namespace hiroba::tools
