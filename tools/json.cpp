// SPDX-License-Identifier: BSD-3-Clause
#include "tools/json.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace hiroba::tools {

namespace {

/// The number of bytes of the UTF-8 sequence `text` begins with; 0: it begins with none.
std::size_t sequence_bytes(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    if (first < 0x80) return 1;
    const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || text.size() < bytes) return 0;
    for (std::size_t i = 1; i < bytes; ++i)
        if ((byte(i) & 0xC0) != 0x80) return 0;
    // Overlong forms, surrogates, and what lies above U+10FFFF (RFC 3629, section 4).
    const unsigned char second = byte(1);
    const bool wrong = (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
                       (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
    return wrong ? 0 : bytes;
}

void write_text(std::string& out, std::string_view text) {
    constexpr char hex[] = "0123456789abcdef";
    out += '"';
    while (!text.empty()) {
        const std::size_t bytes = sequence_bytes(text);
        const char first = text[0];
        if (bytes == 0) {
            out += "\xEF\xBF\xBD";
        } else if (first == '"' || first == '\\') {
            out += {'\\', first};
        } else if (first == '\n') {
            out += "\\n";
        } else if (first == '\t') {
            out += "\\t";
        } else if (bytes == 1 && (first < 0x20 || first == 0x7F)) {
            out += "\\u00";
            out += {hex[first >> 4], hex[first & 15]};
        } else {
            out += text.substr(0, bytes);
        }
        text.remove_prefix(std::max<std::size_t>(1, bytes));
    }
    out += '"';
}

void write_number(std::string& out, auto value, auto... format) {
    char digits[64];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, value, format...).ptr);
}

void write_double(std::string& out, double value) {
    if (!std::isfinite(value)) {
        out += "null";
        return;
    }
    const std::size_t before = out.size();
    // Without an exponent while people can read it so.
    const double size = std::abs(value);
    if (size < 1e15 && (size >= 1e-5 || size == 0))
        write_number(out, value, std::chars_format::fixed);
    else
        write_number(out, value);
    // A reader takes it for a floating-point number then, whatever its value.
    if (out.find_first_of(".e", before) == out.npos) out += ".0";
}

void begin_line(std::string& out, unsigned indent, unsigned depth) {
    if (indent == 0) return;
    out += '\n';
    out.append(std::size_t{indent} * depth, ' ');
}

}  // namespace

Json Json::object(std::initializer_list<Member> members) {
    Json value;
    value.value_ = Members(members);
    return value;
}

Json Json::array(std::initializer_list<Json> elements) {
    Json value;
    value.value_ = Elements(elements);
    return value;
}

Json& Json::operator[](std::string_view name) {
    Members& members = std::get<Members>(value_);
    for (auto& [key, value] : members)
        if (key == name) return value;
    return members.emplace_back(std::string(name), Json()).second;
}

const Json& Json::operator[](std::string_view name) const {
    static const Json none;
    for (const auto& [key, value] : std::get<Members>(value_))
        if (key == name) return value;
    return none;
}

void Json::push_back(Json element) { std::get<Elements>(value_).push_back(std::move(element)); }

std::string Json::dump(unsigned indent) const {
    std::string out;
    write(out, indent, 0);
    return out;
}

void Json::write(std::string& out, unsigned indent, unsigned depth) const {
    const auto each = [&](const auto& items, char open, char close, auto write_one) {
        out += open;
        for (std::size_t i = 0; i < items.size(); ++i) {
            if (i != 0) out += ',';
            begin_line(out, indent, depth + 1);
            write_one(items[i]);
        }
        if (!items.empty()) begin_line(out, indent, depth);
        out += close;
    };
    if (is_null()) {
        out += "null";
    } else if (const bool* const truth = std::get_if<bool>(&value_)) {
        out += *truth ? "true" : "false";
    } else if (const auto* const number = std::get_if<std::int64_t>(&value_)) {
        write_number(out, *number);
    } else if (const auto* const count = std::get_if<std::uint64_t>(&value_)) {
        write_number(out, *count);
    } else if (const double* const real = std::get_if<double>(&value_)) {
        write_double(out, *real);
    } else if (const std::string* const string = text()) {
        write_text(out, *string);
    } else if (const Elements* const elements = std::get_if<Elements>(&value_)) {
        each(*elements, '[', ']', [&](const Json& one) { one.write(out, indent, depth + 1); });
    } else {
        each(std::get<Members>(value_), '{', '}', [&](const Member& one) {
            write_text(out, one.first);
            out += indent == 0 ? ":" : ": ";
            one.second.write(out, indent, depth + 1);
        });
    }
}

}  // namespace hiroba::tools
