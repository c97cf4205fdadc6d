// SPDX-License-Identifier: BSD-3-Clause
// Role: the list of the middle layer: elements of any sizes, each on a rank of its own.
// Invariant: a ring: the control words are the element before the first and behind the last, so the
// end is their address. An element that is moved to another list keeps its address.
// Source: the public interface of ACP 3; its programs look at control words and elements.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "acp/data/call.hpp"
#include "acp/data/extent.hpp"

namespace hiroba::acp::data {

/// One list, for the time of one call. The caller sees to it that no rank changes it meanwhile.
class List {
public:
    /// The bytes of an element lie behind so many of its own.
    static constexpr std::uint64_t head_bytes = 24;
    /// Negative, 0, positive: as the first is less than, equal to, greater than the second.
    using Compare = std::function<int(Extent, Extent)>;

    /// @return where its control words are; 0 on failure
    static std::uint64_t create(Call& call, std::int64_t rank);

    List(Call& call, std::uint64_t control);

    std::uint64_t size() const noexcept { return state_.count; }
    std::uint64_t first() const noexcept { return state_.first; }
    std::uint64_t end() const noexcept { return control_; }
    std::uint64_t next(std::uint64_t element);
    std::uint64_t previous(std::uint64_t element);
    Extent extent(std::uint64_t element);

    void destroy();
    void clear() { erase(state_.first, control_); }
    /// Puts a copy of the bytes, on `rank`, before `place`. @return it; 0 on failure
    std::uint64_t insert(std::uint64_t place, Extent bytes, std::int64_t rank);
    /// As above, of each element of [from, to) of any list, on the rank of that element.
    /// @return the first of them, or `place`
    std::uint64_t insert_copies(std::uint64_t place, std::uint64_t from, std::uint64_t to);
    /// @return the element behind the last one erased
    std::uint64_t erase(std::uint64_t from, std::uint64_t to);
    /// As above, of one: reads it once. @return 0 on failure: the end is no element
    std::uint64_t erase_one(std::uint64_t element);
    /// Moves [from, to) of `other`, which may be this one, before `place`, which is not in there.
    void splice(std::uint64_t place, List& other, std::uint64_t from, std::uint64_t to);
    /// Moves all elements of `other`, sorted as this one, to where they belong; equal ones behind.
    void merge(List& other, const Compare& compare);
    /// Equal ones keep their order. About n log2 n comparisons.
    void sort(const Compare& compare);
    void reverse();
    /// Erases the elements with these bytes.
    void remove(Extent bytes);
    /// Erases elements that are equal to the one before them.
    void unique();
    /// Exchanges the elements; each stays where it is.
    void swap(List& other);

private:
    struct State {
        std::uint64_t first = 0, last = 0, count = 0;
    };
    struct Element {
        std::uint64_t next = 0, previous = 0, bytes = 0;
    };
    /// Links both to each other, also where one is the control words.
    void link(std::uint64_t before, std::uint64_t behind);
    struct Known {
        std::uint64_t element;
        Extent bytes;
    };
    static std::vector<Known> merged(const std::vector<Known>& left,
                                     const std::vector<Known>& right, const Compare& compare);
    std::vector<Known> known_elements();
    void link_all(const std::vector<Known>& elements);
    template <class IsKept>
    void keep(IsKept&& is_kept);
    bool are_equal(Extent first, Extent second);
    void store_count();
    std::vector<std::uint64_t> elements();
    /// Fails for what can be no place in this list.
    bool is_place(std::uint64_t element);

    Call& call_;
    std::uint64_t control_;
    State state_;
};

}  // namespace hiroba::acp::data
