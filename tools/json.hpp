// SPDX-License-Identifier: BSD-3-Clause
// Role: values that the commands print as JSON (RFC 8259). It writes only; tests read the output
// with another library.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hiroba::tools {

class Json {
public:
    using Member = std::pair<std::string, Json>;

    Json(std::nullptr_t = nullptr) {}
    Json(std::same_as<bool> auto value) : value_(value) {}
    Json(std::signed_integral auto value) : value_(std::int64_t{value}) {}
    Json(std::unsigned_integral auto value) requires(!std::same_as<decltype(value), bool>)
        : value_(std::uint64_t{value}) {}
    Json(double value) : value_(value) {}
    Json(const char* text) : value_(std::string(text)) {}
    Json(std::string_view text) : value_(std::string(text)) {}
    Json(std::string text) : value_(std::move(text)) {}

    /// Members keep the order in which they came.
    static Json object(std::initializer_list<Member> members = {});
    static Json array(std::initializer_list<Json> elements = {});

    /// The member of that name of an object, which is added if there is none.
    Json& operator[](std::string_view name);
    /// The member of that name of an object; null if there is none.
    const Json& operator[](std::string_view name) const;
    void push_back(Json element);

    bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
    bool is_true() const { return value_ == Value(true); }
    /// nullptr if it is no text.
    const std::string* text() const { return std::get_if<std::string>(&value_); }
    /// The elements of an array.
    const std::vector<Json>& elements() const { return std::get<Elements>(value_); }

    /// @param indent  spaces of each level; 0: all in one line. Bytes that are no UTF-8 come out as
    /// U+FFFD, numbers that JSON does not know (infinity) as null.
    std::string dump(unsigned indent = 0) const;

    bool operator==(const Json&) const = default;

private:
    using Elements = std::vector<Json>;
    using Members = std::vector<Member>;
    using Value = std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double,
                               std::string, Elements, Members>;
    void write(std::string& out, unsigned indent, unsigned depth) const;

    Value value_;
};

}  // namespace hiroba::tools
