// SPDX-License-Identifier: BSD-3-Clause
// Role: what the test programs of the data structures share: memory of this rank that calls take
// bytes from, and looks into memory of any rank.
#pragma once

#include <string>

#include "check.h"

namespace data_test {

/// Bytes of this rank that any rank may name.
class Window {
public:
    explicit Window(size_t bytes) : ga_(acp_malloc(bytes, acp_rank())), bytes_(bytes) {
        CHECK(ga_ != ACP_GA_NULL, "no window of %zu bytes", bytes);
    }
    ~Window() { acp_free(ga_); }
    Window(const Window&) = delete;

    char* here() const { return static_cast<char*>(acp_query_address(ga_)); }
    acp_ga_t ga() const { return ga_; }
    /// Puts bytes in it, from `at`.
    acp_element_t hold(const std::string& bytes, size_t at = 0) const {
        CHECK(at + bytes.size() <= bytes_, "%zu bytes in a window of %zu", bytes.size(), bytes_);
        bytes.copy(here() + at, bytes.size());
        return {ga_ + at, bytes.size()};
    }
    /// What is at `ga`, on any rank.
    std::string look(acp_ga_t ga, size_t bytes) const {
        if (bytes == 0) return {};
        CHECK(bytes <= bytes_, "%zu bytes looked at, of %zu", bytes, bytes_);
        acp_complete(acp_copy(ga_, ga, bytes, ACP_HANDLE_NULL));
        return {here(), bytes};
    }

private:
    acp_ga_t ga_;
    size_t bytes_;
};

/// Numbers that follow from a seed.
class Random {
public:
    explicit Random(uint64_t seed) : state_(seed) {}
    /// 0 to below - 1.
    size_t below(size_t below) { return mixed(state_++) % below; }
    std::string bytes(size_t below_size) {
        std::string text(below(below_size), ' ');
        for (char& one : text) one = static_cast<char>('a' + below(26));
        return text;
    }

private:
    uint64_t state_;
};

}  // namespace data_test
