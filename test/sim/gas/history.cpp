// SPDX-License-Identifier: BSD-3-Clause
#include "sim/gas/history.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace hiroba::sim_test {
namespace {

/// What the word is after `access`, if the access can have been made on `word`.
bool apply(const Access& access, std::uint64_t& word) {
    if (!access.maybe && access.kind != Access::Kind::put && access.result != word) return false;
    switch (access.kind) {
        case Access::Kind::get: break;
        case Access::Kind::put:
        case Access::Kind::swap: word = access.operand; break;
        case Access::Kind::add: word += access.operand; break;
        case Access::Kind::compare_swap:
            if (word == access.expected) word = access.operand;
            break;
    }
    return true;
}

/// Depth first over the sets of accesses that are done. All that began is tried only once nothing
/// that is not done had ended before it began.
class Search {
public:
    explicit Search(std::vector<Access> accesses) : accesses_(std::move(accesses)) {
        std::ranges::sort(accesses_, {}, &Access::begun);
        done_.assign(accesses_.size(), false);
        for (const Access& it : accesses_) left_ += it.maybe ? 0 : 1;
    }
    bool run(std::uint64_t word, std::size_t first) {
        if (left_ == 0) return true;
        while (done_[first]) ++first;
        if (!is_new(word, first)) return false;
        std::uint64_t earliest_end = ~std::uint64_t{0};
        for (std::size_t i = first; i < accesses_.size(); ++i) {
            if (accesses_[i].begun > earliest_end) break;
            if (!done_[i]) earliest_end = std::min(earliest_end, accesses_[i].ended);
        }
        for (std::size_t i = first; i < accesses_.size() && accesses_[i].begun <= earliest_end;
             ++i) {
            std::uint64_t next = word;
            if (done_[i] || !apply(accesses_[i], next)) continue;
            done_[i] = true;
            left_ -= accesses_[i].maybe ? 0 : 1;
            if (run(next, first)) return true;
            left_ += accesses_[i].maybe ? 0 : 1;
            done_[i] = false;
        }
        return false;
    }

private:
    /// All before `first` are done; behind it, those whose bit is set.
    bool is_new(std::uint64_t word, std::size_t first) {
        std::vector<std::uint64_t> key{word, first};
        for (std::size_t i = first; i < accesses_.size(); ++i) {
            if (done_[i]) key.push_back(i);
        }
        return seen_.insert(std::move(key)).second;
    }

    std::vector<Access> accesses_;
    std::vector<bool> done_;
    std::size_t left_ = 0;  ///< that must be done and are not
    std::set<std::vector<std::uint64_t>> seen_;
};

}  // namespace

bool is_linearizable(const std::vector<Access>& accesses, std::uint64_t first) {
    std::vector<Access> known;
    for (const Access& it : accesses) {
        // A get of which nothing is known says nothing.
        if (!it.maybe || it.kind != Access::Kind::get) known.push_back(it);
    }
    return Search{std::move(known)}.run(first, 0);
}

std::string lines_of(const std::vector<Access>& accesses) {
    static constexpr const char* names[] = {"get", "put", "add", "swap", "compare_swap"};
    std::vector<Access> sorted = accesses;
    std::ranges::sort(sorted, {}, &Access::begun);
    std::string text;
    for (const Access& it : sorted) {
        text += "  " + std::to_string(it.begun) + " to " + std::to_string(it.ended) + ", node " +
                std::to_string(it.node) + ": " + names[static_cast<std::size_t>(it.kind)] + " " +
                std::to_string(it.operand) + " (" + std::to_string(it.expected) + ") -> " +
                (it.maybe ? "unknown" : std::to_string(it.result)) + "\n";
    }
    return text;
}

}  // namespace hiroba::sim_test
