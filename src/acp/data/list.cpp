// SPDX-License-Identifier: BSD-3-Clause
#include "acp/data/list.hpp"

#include <algorithm>

#include "acp/refusal.hpp"

namespace hiroba::acp::data {
namespace {

/// Offsets in the words of an element, and in the control words, which have `last` there.
constexpr std::uint64_t previous_at = 8;
constexpr std::uint64_t bytes_at = 16;
constexpr std::uint64_t count_at = 16;

}  // namespace

std::uint64_t List::create(Call& call, std::int64_t rank) {
    const std::uint64_t control = call.allocate(sizeof(State), rank);
    call.write(control, State{control, control, 0});
    return call.ok() ? control : 0;
}

List::List(Call& call, std::uint64_t control)
    : call_(call), control_(control), state_(call.read<State>(control)) {
    const bool is_one = (state_.count == 0) == (state_.first == control) &&
                        (state_.count == 0) == (state_.last == control) && state_.first != 0;
    if (!is_one)
        call.fail("at global address " + hexadecimal(control) + " is no list, or no longer");
}

bool List::is_place(std::uint64_t element) {
    return call_.ok() &&
           (element != 0 || call_.fail("an iterator that names no element and not the end"));
}

std::uint64_t List::next(std::uint64_t element) {
    if (element == control_) return state_.first;
    return is_place(element) ? call_.read<std::uint64_t>(element) : 0;
}

std::uint64_t List::previous(std::uint64_t element) {
    if (element == control_) return state_.last;
    return is_place(element) ? call_.read<std::uint64_t>(element + previous_at) : 0;
}

Extent List::extent(std::uint64_t element) {
    if (element == control_) call_.fail("the end of a list is no element");
    if (!is_place(element)) return {};
    const auto bytes = call_.read<std::uint64_t>(element + bytes_at);
    return call_.ok() ? Extent{element + head_bytes, bytes} : Extent{};
}

void List::link(std::uint64_t before, std::uint64_t behind) {
    if (!call_.ok()) return;
    call_.write(before, behind);
    call_.write(behind + previous_at, before);
    if (before == control_) state_.first = behind;
    if (behind == control_) state_.last = before;
}

void List::store_count() { call_.write(control_ + count_at, state_.count); }

void List::destroy() {
    clear();
    call_.release(control_);
}

// --- elements ------------------------------------------------------------------------------------

std::uint64_t List::insert(std::uint64_t place, Extent bytes, std::int64_t rank) {
    const std::uint64_t before = previous(place);
    const std::uint64_t element = call_.allocate(head_bytes + bytes.bytes, rank);
    if (!call_.ok()) return 0;
    call_.write(element, Element{place, before, bytes.bytes});
    call_.copy(element + head_bytes, bytes.address, bytes.bytes);
    link(before, element);
    link(element, place);
    ++state_.count;
    store_count();
    return call_.ok() ? element : 0;
}

std::uint64_t List::insert_copies(std::uint64_t place, std::uint64_t from, std::uint64_t to) {
    // All are known before the first is put: [from, to) may be around `place`.
    std::vector<std::uint64_t> all;
    for (std::uint64_t one = from; call_.ok() && one != to;) {
        if (!is_place(one)) break;
        all.push_back(one);
        one = call_.read<std::uint64_t>(one);
    }
    std::uint64_t first = place;
    for (const std::uint64_t one : all) {
        const auto bytes = call_.read<std::uint64_t>(one + bytes_at);
        const std::uint64_t put = insert(place, {one + head_bytes, bytes}, call_.rank_of(one));
        if (!call_.ok()) break;
        if (first == place) first = put;
    }
    return first;
}

std::uint64_t List::erase(std::uint64_t from, std::uint64_t to) {
    if (from == to || !is_place(from)) return to;
    const std::uint64_t before = previous(from);
    std::vector<std::uint64_t> gone;
    for (std::uint64_t one = from; call_.ok() && one != to; one = next(one)) {
        if (one == control_) {
            call_.fail("the end of a list is behind what is to be erased of it");
            break;
        }
        gone.push_back(one);
    }
    link(before, to);
    state_.count -= std::min<std::uint64_t>(state_.count, gone.size());
    store_count();
    for (const std::uint64_t one : gone) call_.release(one);
    return to;
}

std::uint64_t List::erase_one(std::uint64_t element) {
    if (element == control_) call_.fail("the end of a list is no element");
    if (!is_place(element)) return 0;
    const auto gone = call_.read<Element>(element);
    link(gone.previous, gone.next);
    --state_.count;
    store_count();
    call_.release(element);
    return call_.ok() ? gone.next : 0;
}

void List::splice(std::uint64_t place, List& source, std::uint64_t from, std::uint64_t to) {
    List& other = source.control_ == control_ ? *this : source;  // one view of its ends
    if (from == to || from == place || !is_place(place) || !is_place(from)) return;
    std::uint64_t moved = 0, last = from;
    for (std::uint64_t one = from; call_.ok() && one != to; one = other.next(one)) {
        if (one == other.control_ || one == place) {
            call_.fail(one == place ? "elements are moved to a place among themselves"
                                    : "the end of a list is among what is to be moved");
            return;
        }
        last = one;
        ++moved;
    }
    other.link(other.previous(from), to);
    const std::uint64_t before = previous(place);
    link(before, from);
    link(last, place);
    if (other.control_ == control_) return;
    other.state_.count -= std::min(other.state_.count, moved);
    other.store_count();
    state_.count += moved;
    store_count();
}

// --- all of them ---------------------------------------------------------------------------------

std::vector<std::uint64_t> List::elements() {
    std::vector<std::uint64_t> all;
    for (std::uint64_t one = state_.first; call_.ok() && one != control_; one = next(one)) {
        if (!is_place(one)) break;
        all.push_back(one);
    }
    return all;
}

void List::link_all(const std::vector<Known>& elements) {
    std::uint64_t before = control_;
    for (const Known& one : elements) {
        link(before, one.element);
        before = one.element;
    }
    link(before, control_);
    state_.count = elements.size();
    store_count();
}

/// Takes from both, always the lesser first one, from `left` where they are equal. Ends whatever
/// the caller's function says.
std::vector<List::Known> List::merged(const std::vector<Known>& left,
                                      const std::vector<Known>& right, const Compare& compare) {
    std::vector<Known> both;
    auto mine = left.begin(), theirs = right.begin();
    while (mine != left.end() && theirs != right.end()) {
        const bool is_theirs = compare(theirs->bytes, mine->bytes) < 0;
        both.push_back(is_theirs ? *theirs++ : *mine++);
    }
    both.insert(both.end(), mine, left.end());
    both.insert(both.end(), theirs, right.end());
    return both;
}

std::vector<List::Known> List::known_elements() {
    std::vector<Known> all;
    for (const std::uint64_t one : elements()) all.push_back({one, extent(one)});
    return all;
}

void List::merge(List& other, const Compare& compare) {
    if (other.control_ == control_) return;
    const auto mine = known_elements(), theirs = other.known_elements();
    if (!call_.ok()) return;
    call_.complete();  // before the caller's function looks
    const auto both = merged(mine, theirs, compare);
    other.link_all({});
    link_all(both);
}

void List::sort(const Compare& compare) {
    // Runs of one, of two, of four: each pass merges those that adjoin.
    std::vector<std::vector<Known>> runs;
    for (const Known& one : known_elements()) runs.push_back({one});
    if (!call_.ok() || runs.empty()) return;
    while (runs.size() > 1) {
        std::vector<std::vector<Known>> longer;
        for (std::size_t at = 0; at < runs.size(); at += 2) {
            longer.push_back(at + 1 < runs.size() ? merged(runs[at], runs[at + 1], compare)
                                                  : runs[at]);
        }
        runs.swap(longer);
    }
    link_all(runs.front());
}

void List::reverse() {
    auto all = known_elements();
    std::reverse(all.begin(), all.end());
    if (call_.ok()) link_all(all);
}

/// Keeps the elements for which `is_kept` says so and erases the others.
template <class IsKept>
void List::keep(IsKept&& is_kept) {
    std::vector<Known> kept, gone;
    for (const Known& one : known_elements()) (is_kept(one, kept) ? kept : gone).push_back(one);
    if (gone.empty() || !call_.ok()) return;
    link_all(kept);
    for (const Known& one : gone) call_.release(one.element);
}

void List::remove(Extent bytes) {
    keep([&](const Known& one, const std::vector<Known>&) { return !are_equal(one.bytes, bytes); });
}

void List::unique() {
    keep([&](const Known& one, const std::vector<Known>& kept) {
        return kept.empty() || !are_equal(one.bytes, kept.back().bytes);
    });
}

bool List::are_equal(Extent first, Extent second) {
    return first.bytes == second.bytes &&
           call_.are_equal(first.address, second.address, first.bytes);
}

void List::swap(List& other) {
    if (other.control_ == control_ || !call_.ok()) return;
    const State mine = state_, theirs = other.state_;
    const auto take = [](List& list, const State& state, std::uint64_t old_control) {
        const bool is_empty = state.first == old_control;
        list.link(list.control_, is_empty ? list.control_ : state.first);
        list.link(is_empty ? list.control_ : state.last, list.control_);
        list.state_.count = state.count;
        list.store_count();
    };
    take(*this, theirs, other.control_);
    take(other, mine, control_);
}

}  // namespace hiroba::acp::data
