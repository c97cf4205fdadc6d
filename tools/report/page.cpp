// SPDX-License-Identifier: BSD-3-Clause
// Role: the report as a page of its own: what the text says, a timeline and a map of memory.
// Invariant: it refers to nothing outside of itself, and stays below some megabytes: of a long run
// the shortest spans are left out, and it says so.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tools/report/blocks.hpp"
#include "tools/report/output.hpp"
#include "tools/report/page_text.hpp"

namespace hiroba::tools {

namespace {

constexpr std::size_t spans_most = 60'000, flows_most = 4'000, blocks_most = 20'000,
                      variables_most = 24;

/// The name of a variable as tables have it.
std::string label_of(const VariableRow& row) {
    return row.line.empty() ? row.name : row.name + ", " + row.line;
}

/// Texts by number.
class Numbered {
public:
    std::uint64_t of(const std::string& text) {
        const auto [at, added] = numbers_.try_emplace(text, texts_.elements().size());
        if (added) texts_.push_back(text);
        return at->second;
    }
    Json take() { return std::move(texts_); }

private:
    std::map<std::string, std::uint64_t> numbers_;
    Json texts_ = Json::array();
};

struct Span {
    std::int64_t begin_ns, length_ns;
    std::uint64_t kind, place;
    std::int64_t variable;
};

class TimelineData {
public:
    explicit TimelineData(const Analysis& analysis) : analysis_(analysis) {}

    Json take() {
        std::map<std::uint32_t, std::size_t> rows;
        Json tracks = Json::array();
        std::vector<std::vector<Span>> spans;
        for (const ThreadTime& thread : analysis_.threads) {
            rows[thread.stream] = spans.size();
            spans.push_back(spans_of(thread.stream));
        }
        const std::int64_t least = least_length(spans);
        std::size_t left_out = 0;
        for (std::size_t at = 0; at < spans.size(); ++at) {
            const ThreadTime& thread = analysis_.threads[at];
            Json numbers = Json::array();
            for (const Span& span : spans[at]) {
                if (span.length_ns < least) {
                    ++left_out;
                    continue;
                }
                for (const std::int64_t number :
                     {span.begin_ns, span.length_ns, static_cast<std::int64_t>(span.kind),
                      static_cast<std::int64_t>(span.place), span.variable})
                    numbers.push_back(number);
            }
            tracks.push_back(Json::object(
                {{"name", fmt::format("node {} thread {}", thread.node, thread.thread)},
                 {"spans", std::move(numbers)}}));
        }
        Json flows = flows_between(rows);
        return Json::object({{"tracks", std::move(tracks)},
                             {"flows", std::move(flows)},
                             {"kinds", kinds_.take()},
                             {"places", places_.take()},
                             {"variables", variables_.take()},
                             {"left_out", static_cast<std::uint64_t>(left_out)},
                             {"least_ns", least}});
    }

private:
    /// With outer ones first.
    std::vector<Span> spans_of(std::uint32_t number) {
        std::vector<Span> spans;
        const Recording& recording = *analysis_.recording;
        std::int64_t region_begin = -1;
        for (const Event& event : recording.streams[number].events) {
            const std::string place = analysis_.names.place(recording.places[event.place]);
            if (event.kind == RecordKind::region) region_begin = event.end_ns;
            if (event.kind == RecordKind::ends && region_begin >= 0) {
                spans.push_back({region_begin, event.end_ns - region_begin, kinds_.of("region"),
                                 places_.of(place), -1});
                region_begin = -1;
            }
            const char* const kind = name_of_span(event.kind);
            if (*kind == 0) continue;
            spans.push_back({event.begin_ns, event.end_ns - event.begin_ns, kinds_.of(kind),
                             places_.of(text_at(event, place)), variable_of(event)});
        }
        std::ranges::stable_sort(spans, [](const Span& a, const Span& b) {
            return std::pair(a.begin_ns, -a.length_ns) < std::pair(b.begin_ns, -b.length_ns);
        });
        return spans;
    }
    std::string text_at(const Event& event, const std::string& place) const {
        return event.kind == RecordKind::fault ? analysis_.names.code(event.second & low_48)
                                               : place;
    }
    std::int64_t variable_of(const Event& event) {
        if (event.kind != RecordKind::fault && event.kind != RecordKind::atomic) return -1;
        const std::uint64_t address = event.first & low_48;
        // The touches are by block and time: the one of this event is there.
        const std::pair key{
            address / analysis_.recording->block_bytes * analysis_.recording->block_bytes,
            event.end_ns};
        const auto at = std::ranges::lower_bound(
            analysis_.touches, key, {}, [](const Touch& t) { return std::pair(t.block, t.at_ns); });
        if (at == analysis_.touches.end() || at->block != key.first) return -1;
        return static_cast<std::int64_t>(
            variables_.of(label_of(analysis_.variables[at->variable])));
    }

    static std::int64_t least_length(const std::vector<std::vector<Span>>& spans) {
        std::vector<std::int64_t> lengths;
        for (const auto& track : spans)
            for (const Span& span : track) lengths.push_back(span.length_ns);
        if (lengths.size() <= spans_most) return 0;
        const auto at = lengths.end() - static_cast<std::ptrdiff_t>(spans_most);
        std::nth_element(lengths.begin(), at, lengths.end());
        return *at;
    }

    /// From who published a block last to who brought it.
    Json flows_between(const std::map<std::uint32_t, std::size_t>& rows) {
        Json flows = Json::array();
        std::size_t count = 0;
        for (const BlockStory& story : stories_of(analysis_)) {
            const Touch* writer = nullptr;
            for (const Touch& touch : story.touches) {
                if (touch.kind == Touch::Kind::merged) writer = &touch;
                if (touch.kind != Touch::Kind::fetched || writer == nullptr ||
                    writer->node == touch.node)
                    continue;
                const auto from = rows.find(writer->stream), to = rows.find(touch.stream);
                if (from == rows.end() || to == rows.end() || ++count > flows_most) continue;
                for (const std::int64_t number :
                     {static_cast<std::int64_t>(from->second), writer->at_ns,
                      static_cast<std::int64_t>(to->second), touch.at_ns,
                      static_cast<std::int64_t>(
                          variables_.of(label_of(analysis_.variables[touch.variable])))})
                    flows.push_back(number);
            }
        }
        return flows;
    }

    const Analysis& analysis_;
    Numbered kinds_, places_, variables_;
};

/// How nodes use a block, as the page's script numbers it.
enum class Use : std::uint8_t { exclusive, read, shared, falsely };

struct BlockUse {
    std::uint64_t block = 0, moves = 0, writers = 0, readers = 0;
    Use use = Use::exclusive;
};

BlockUse use_of(const BlockStory& story, std::uint64_t block_bytes) {
    BlockUse found;
    found.block = story.block;
    for (const Touch& touch : story.touches) {
        const std::uint64_t bit = std::uint64_t{1} << std::min(touch.node, 31u);
        switch (touch.kind) {
            case Touch::Kind::fetched: ++found.moves; [[fallthrough]];
            case Touch::Kind::read_fault: found.readers |= bit; break;
            default: found.writers |= bit;
        }
    }
    const auto several = [](std::uint64_t bits) { return (bits & (bits - 1)) != 0; };
    if (sharing_of(story, block_bytes).is_false())
        found.use = Use::falsely;
    else if (several(found.writers))
        found.use = Use::shared;
    else if (several(found.writers | found.readers))
        found.use = Use::read;
    return found;
}

Json memory_json(const Analysis& analysis) {
    std::map<std::uint32_t, std::vector<BlockUse>> by_variable;
    for (const BlockStory& story : stories_of(analysis))
        by_variable[story.touches.front().variable].push_back(
            use_of(story, analysis.recording->block_bytes));
    Json variables = Json::array();
    std::size_t shown = 0, blocks_shown = 0;
    for (const std::uint32_t at : analysis.dearest) {
        const auto found = by_variable.find(at);
        if (found == by_variable.end() || shown == variables_most) continue;
        Json blocks = Json::array();
        std::uint64_t most = 0;
        for (const BlockUse& each : found->second) {
            if (++blocks_shown > blocks_most) break;
            most = std::max(most, each.moves);
            const std::uint64_t number =
                (each.block - found->second.front().block) / analysis.recording->block_bytes;
            for (const std::uint64_t value : {number, static_cast<std::uint64_t>(each.use),
                                              each.moves, each.writers, each.readers})
                blocks.push_back(value);
        }
        ++shown;
        variables.push_back(Json::object({{"name", label_of(analysis.variables[at])},
                                          {"most_moves", most},
                                          {"blocks", std::move(blocks)}}));
    }
    return variables;
}

/// Nothing in it ends the element that holds it.
std::string for_script(std::string text) {
    for (std::size_t at = 0; (at = text.find('<', at)) != text.npos; at += 6)
        text.replace(at, 1, "\\u003c");
    return text;
}

void fill_in(std::string& page, std::string_view mark, const std::string& text) {
    page.replace(page.find(mark), mark.size(), text);
}

}  // namespace

const char* name_of_span(RecordKind kind) {
    switch (kind) {
        case RecordKind::barrier: return "barrier";
        case RecordKind::fork: return "begin of region";
        case RecordKind::join: return "end of region";
        case RecordKind::idle: return "until the next region";
        case RecordKind::wait: return "wait for tasks";
        case RecordKind::lock: return "wait for lock";
        case RecordKind::unlock: return "unlock";
        case RecordKind::fault: return "fault";
        case RecordKind::release: return "release";
        case RecordKind::acquire: return "acquire";
        case RecordKind::atomic: return "atomic";
        case RecordKind::task: return "task";
        default: return "";
    }
}

std::string report_page(std::span<const NamedAnalysis> runs) {
    Json all = Json::array();
    for (const NamedAnalysis& run : runs) {
        Json json = json_of(*run.analysis);
        json["file"] = run.file;
        json["timeline"] = TimelineData(*run.analysis).take();
        json["memory"] = memory_json(*run.analysis);
        all.push_back(std::move(json));
    }
    std::string page = page_html;
    fill_in(page, "@STYLE@", page_css);
    fill_in(page, "@SCRIPT@", page_js);
    fill_in(page, "@DATA@", for_script(all.dump()));
    return page;
}

}  // namespace hiroba::tools
