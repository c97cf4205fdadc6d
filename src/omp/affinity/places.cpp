// SPDX-License-Identifier: BSD-3-Clause
// Role: reads the variables that name places and policies, and deals threads out.
// Invariant: see the header.
#include "omp/affinity/places.hpp"

#include <strings.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace hiroba::omp {

namespace {

constexpr std::int64_t processors_max = 1024, count_max = 65536;

/// Reads a value word by word; blanks count for nothing.
class Reader {
public:
    explicit Reader(std::string_view text) : text_(text) {}
    bool at_end() {
        skip_blanks();
        return text_.empty();
    }
    bool take(char c) {
        skip_blanks();
        if (text_.empty() || text_.front() != c) return false;
        text_.remove_prefix(1);
        return true;
    }
    bool number(std::int64_t& value) {
        skip_blanks();
        const auto parsed = std::from_chars(text_.data(), text_.data() + text_.size(), value);
        if (parsed.ec != std::errc()) return false;
        text_.remove_prefix(static_cast<std::size_t>(parsed.ptr - text_.data()));
        return true;
    }
    std::string_view word() {
        skip_blanks();
        std::size_t end = 0;
        while (end < text_.size() && ((text_[end] | 0x20) >= 'a' || text_[end] == '_') &&
               text_[end] != '{')
            ++end;
        const std::string_view word = text_.substr(0, end);
        text_.remove_prefix(end);
        return word;
    }
    /// [: length [: stride]]; both 1 where they are left out.
    bool run(std::int64_t& length, std::int64_t& stride) {
        length = stride = 1;
        if (!take(':')) return true;
        if (!number(length) || length < 1 || length > count_max) return false;
        return !take(':') || number(stride);
    }

private:
    void skip_blanks() {
        while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\t'))
            text_.remove_prefix(1);
    }
    std::string_view text_;
};

bool same_word(std::string_view text, std::string_view word) {
    return text.size() == word.size() && strncasecmp(text.data(), word.data(), word.size()) == 0;
}

using Numbers = std::vector<std::int64_t>;

void remove(Numbers& from, std::int64_t value) {
    from.erase(std::remove(from.begin(), from.end(), value), from.end());
}

/// {0, 4:2, !1} or a number.
bool read_place(Reader& reader, Numbers& place) {
    std::int64_t first = 0, length = 0, stride = 0;
    if (!reader.take('{')) {
        if (!reader.number(first) || first < 0) return false;
        place = {first};
        return true;
    }
    do {
        const bool without = reader.take('!');
        if (!reader.number(first) || first < 0 || !reader.run(length, stride)) return false;
        for (std::int64_t i = 0; i < length; ++i) {
            const std::int64_t cpu = first + i * stride;
            if (cpu < 0 || cpu >= processors_max) return false;
            remove(place, cpu);
            if (!without) place.push_back(cpu);
        }
    } while (reader.take(','));
    std::sort(place.begin(), place.end());
    return reader.take('}') && !place.empty();
}

bool read_list(Reader& reader, std::vector<Numbers>& places) {
    do {
        const bool without = reader.take('!');
        Numbers place;
        std::int64_t length = 0, stride = 0;
        if (!read_place(reader, place) || !reader.run(length, stride)) return false;
        for (std::int64_t i = 0; i < length; ++i) {
            Numbers moved = place;
            for (std::int64_t& cpu : moved) cpu += i * stride;
            if (moved.front() < 0 || moved.back() >= processors_max) return false;
            if (without)
                places.erase(std::remove(places.begin(), places.end(), moved), places.end());
            else
                places.push_back(moved);
        }
    } while (reader.take(','));
    return reader.at_end();
}

/// Stores the usable processors of the wanted places. False: none is usable.
bool keep_usable(const std::vector<Numbers>& wanted, const Processors& usable,
                 std::vector<Processors>& places) {
    std::vector<Processors> kept;
    for (const Numbers& each : wanted) {
        Processors place;
        for (const std::int64_t cpu : each)
            if (std::binary_search(usable.begin(), usable.end(), static_cast<std::uint32_t>(cpu)))
                place.push_back(static_cast<std::uint32_t>(cpu));
        if (!place.empty()) kept.push_back(place);
    }
    if (kept.empty()) return false;
    places = kept;
    return true;
}

std::optional<PlaceKind> kind_named(std::string_view word) {
    struct Name {
        const char* word;
        PlaceKind kind;
    };
    constexpr Name names[] = {{"threads", PlaceKind::threads},
                              {"cores", PlaceKind::cores},
                              {"sockets", PlaceKind::sockets},
                              {"ll_caches", PlaceKind::last_level_caches},
                              {"numa_domains", PlaceKind::numa_domains}};
    for (const Name& name : names)
        if (same_word(word, name.word)) return name.kind;
    return {};
}

std::optional<ProcBind> policy_named(std::string_view word) {
    if (same_word(word, "master") || same_word(word, "primary")) return ProcBind::primary;
    if (same_word(word, "close")) return ProcBind::close;
    if (same_word(word, "spread")) return ProcBind::spread;
    return {};
}

}  // namespace

bool read_places(std::string_view text, const Processors& usable, std::vector<Processors>& places,
                 const char* root) {
    Reader reader(text);
    const std::string_view word = reader.word();
    if (word.empty()) {
        std::vector<Numbers> wanted;
        return read_list(reader, wanted) && keep_usable(wanted, usable, places);
    }
    const auto kind = kind_named(word);
    if (!kind) return false;
    std::int64_t count = count_max;
    if (reader.take('(') && (!reader.number(count) || count < 1 || !reader.take(')'))) return false;
    if (!reader.at_end()) return false;
    auto groups = group_processors(*kind, usable, root);
    if (groups.size() > static_cast<std::size_t>(count))
        groups.resize(static_cast<std::size_t>(count));
    places = groups;
    return !places.empty();
}

bool read_cpu_affinity(std::string_view text, const Processors& usable,
                       std::vector<Processors>& places) {
    Reader reader(text);
    std::vector<Numbers> wanted;
    while (!reader.at_end()) {
        std::int64_t first = 0, last = 0, stride = 1;
        if (!reader.number(first) || first < 0) return false;
        last = first;
        if (reader.take('-') && (!reader.number(last) || last < first)) return false;
        if (reader.take(':') && (!reader.number(stride) || stride < 1)) return false;
        if (last >= processors_max) return false;
        for (std::int64_t cpu = first; cpu <= last; cpu += stride) wanted.push_back({cpu});
        reader.take(',');
    }
    return keep_usable(wanted, usable, places);
}

bool read_proc_bind(std::string_view text, std::vector<ProcBind>& levels) {
    Reader reader(text);
    std::vector<ProcBind> read;
    do {
        const std::string_view word = reader.word();
        if (read.empty() && (same_word(word, "true") || same_word(word, "false")) &&
            reader.at_end()) {
            levels = {same_word(word, "true") ? ProcBind::any : ProcBind::none};
            return true;
        }
        const auto policy = policy_named(word);
        if (!policy) return false;
        read.push_back(*policy);
    } while (reader.take(','));
    if (!reader.at_end()) return false;
    levels = read;
    return true;
}

namespace {

/// Deals threads out to the places in order, from the leader's on: an equal number to each, the
/// first ones one more.
std::vector<Binding> in_a_row(std::uint32_t threads, const Binding& leader, bool own_partition) {
    std::vector<Binding> dealt;
    const std::uint32_t share = std::max(1u, threads / leader.count);
    const std::uint32_t more = threads > leader.count ? threads % leader.count : 0;
    for (std::uint32_t i = 0; dealt.size() < threads; ++i) {
        const std::uint32_t place = leader.first + (leader.place - leader.first + i) % leader.count;
        const Binding here =
            own_partition ? Binding{place, place, 1} : Binding{place, leader.first, leader.count};
        for (std::uint32_t k = 0; k < share + (i < more) && dealt.size() < threads; ++k)
            dealt.push_back(here);
    }
    return dealt;
}

/// Puts each thread at the beginning of its own part of the partition; the first parts are larger.
std::vector<Binding> far_apart(std::uint32_t threads, const Binding& leader) {
    const std::uint32_t share = leader.count / threads, more = leader.count % threads;
    const auto first_of = [&](std::uint32_t part) {
        return leader.first + part * share + std::min(part, more);
    };
    std::uint32_t own = 0;
    while (own + 1 < threads && first_of(own + 1) <= leader.place) ++own;
    std::vector<Binding> dealt;
    for (std::uint32_t i = 0; i < threads; ++i) {
        const std::uint32_t part = (own + i) % threads;
        const std::uint32_t first = first_of(part);
        dealt.push_back({i == 0 ? leader.place : first, first, share + (part < more)});
    }
    return dealt;
}

}  // namespace

std::vector<Binding> deal_out(ProcBind policy, std::uint32_t threads, const Binding& leader) {
    if (policy == ProcBind::primary) return std::vector<Binding>(threads, leader);
    if (policy != ProcBind::spread) return in_a_row(threads, leader, false);
    return threads <= leader.count ? far_apart(threads, leader) : in_a_row(threads, leader, true);
}

}  // namespace hiroba::omp
