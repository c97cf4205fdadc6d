// SPDX-License-Identifier: BSD-3-Clause
#include "gas/relocatable/message_form.hpp"

#include <algorithm>
#include <cstring>

#include "gas/relocatable/directory.hpp"
#include "gas/relocatable/matched_calls.hpp"

namespace hiroba::gas {
namespace {

bool is_of_job(const PageWord& word, const SpaceShape& shape) noexcept {
    return word.owner < shape.nodes && word.mover < shape.nodes && word.limit <= shape.page_bytes();
}

/// A page and a page word, and so on; the page's tag is a rank or not.
bool are_page_words(SpaceMessages::Words words, std::size_t stride, bool tags_are_ranks,
                    const SpaceShape& shape) noexcept {
    if (words.size() % stride != 0) return false;
    for (std::size_t i = 0; i < words.size(); i += stride) {
        const bool is_tag_good = !tags_are_ranks || tag_of(words[i]) < shape.nodes;
        if (page_of(words[i]) >= shape.pages() || !is_tag_good) return false;
        if (!is_of_job(PageWord::unpack(words[i + 1]), shape)) return false;
    }
    return true;
}

bool is_allocation(SpaceMessages::Words words, const SpaceShape& shape) noexcept {
    if (words.size() != 6) return false;
    const std::uint64_t first = words[0], pages = words[1], bytes = words[2];
    const bool is_inside = first <= shape.pages() && pages <= shape.pages() - first;
    // Each page has some of the bytes.
    const bool is_filled = pages != 0 && bytes > (pages - 1) << shape.page_shift;
    return is_inside && is_filled && words[4] < shape.nodes && words[5] != 0;
}

/// Kind and root are halves of the first word.
bool is_call(SpaceMessages::Words words, const SpaceShape& shape) noexcept {
    if (words.size() != CollectiveCall::words) return false;
    CollectiveCall call;
    std::memcpy(static_cast<void*>(&call), words.data(), sizeof call);
    return call.kind <= CollectiveCall::Kind::leave && call.root < shape.nodes;
}

}  // namespace

bool is_well_formed(SpaceMessageKind kind, SpaceMessages::Words words,
                    const SpaceShape& shape) noexcept {
    const auto has_page = [&](std::uint64_t word) { return page_of(word) < shape.pages(); };
    const auto has_rank = [&](std::uint64_t word) { return tag_of(word) < shape.nodes; };
    switch (kind) {
        case SpaceMessageKind::ask: return std::ranges::all_of(words, has_page);
        case SpaceMessageKind::claim:
            return std::ranges::all_of(words, [&](auto word) { return word < shape.pages(); });
        case SpaceMessageKind::join:
            return std::ranges::all_of(words, has_page) && std::ranges::all_of(words, has_rank);
        case SpaceMessageKind::told: return are_page_words(words, 2, false, shape);
        case SpaceMessageKind::commit:
        case SpaceMessageKind::stop:
        case SpaceMessageKind::move:
        case SpaceMessageKind::resume: return are_page_words(words, 2, true, shape);
        case SpaceMessageKind::granted:
            return are_page_words(words, 2 + shape.sharer_words(), true, shape);
        case SpaceMessageKind::ready: return words.size() == 2;
        case SpaceMessageKind::publish: return is_allocation(words, shape);
        case SpaceMessageKind::published: return words.empty();
        case SpaceMessageKind::calling: return is_call(words, shape);
    }
    return false;
}

}  // namespace hiroba::gas
