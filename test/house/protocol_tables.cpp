// SPDX-License-Identifier: BSD-3-Clause
// Role: prints the tables of docs/protocol.md from the functions that the nodes run, each behind a
// line that names it. test/house/check_protocol.py puts them into the page or compares.
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "dsm/protocol/block.hpp"
#include "dsm/protocol/link_word.hpp"

namespace hiroba::dsm {
namespace {

using Work = std::pair<BlockWork, const char*>;
constexpr Work works[] = {
    {BlockWork::fetch, "fetch"},
    {BlockWork::rebase, "rebase"},
    {BlockWork::map_read, "map_read"},
    {BlockWork::map_write, "map_write"},
    {BlockWork::unmap, "unmap, then compare"},
    {BlockWork::remember, "remember"},
};

std::string described(BlockWork work) {
    std::string text;
    for (const auto& [one, name] : works) {
        if (has(work, one)) text += (text.empty() ? "" : ", ") + std::string(name);
    }
    return text.empty() ? "–" : text;
}

template <class Visit>
void for_rows(Visit&& visit) {
    for (unsigned s = 0; s < block_states; ++s) {
        for (unsigned e = 0; e < block_events; ++e) {
            const auto state = static_cast<BlockState>(s);
            const auto event = static_cast<BlockEvent>(e);
            if (const auto step = find_step(state, event)) visit(state, event, *step);
        }
    }
}

void print_transitions() {
    std::puts("=== transitions");
    std::puts("| state | event | next | work |\n|---|---|---|---|");
    unsigned rows = 0;
    for_rows([&](BlockState state, BlockEvent event, const BlockStep& step) {
        std::printf("| %s | %s | %s | %s |\n", name_of(state), name_of(event), name_of(step.next),
                    described(step.work).c_str());
        ++rows;
    });
    std::printf("\n%u of %u pairs; each other one stops the node.\n", rows,
                block_states * block_events);
}

/// A diagram of what changes the state; what leaves it as it is is in the table.
void print_diagram() {
    std::puts("=== diagram");
    std::puts("```mermaid\nstateDiagram-v2\n    [*] --> invalid");
    std::map<std::pair<std::string, std::string>, std::string> arrows;
    for_rows([&](BlockState state, BlockEvent event, const BlockStep& step) {
        if (state == step.next) return;
        std::string& label = arrows[{name_of(state), name_of(step.next)}];
        label += (label.empty() ? "" : ", ") + std::string(name_of(event));
    });
    for (const auto& [ends, label] : arrows) {
        std::printf("    %s --> %s: %s\n", ends.first.c_str(), ends.second.c_str(), label.c_str());
    }
    std::puts("```");
}

/// What a chase does at each kind of word it finds, at a node that is not the chaser.
void print_chases() {
    std::puts("=== chases");
    std::puts("| word found at the node | the chase |\n|---|---|");
    constexpr NodeId self{1}, first{2}, other{3};
    const std::pair<const char*, LinkWord> words[] = {
        {"`unlocked`", LinkWord::unlocked()},
        {"`locked`", LinkWord::locked()},
        {"`locked + successor`", LinkWord::locked_with_successor(other)},
        {"`link(node)`", LinkWord::link(other)},
        {"zero, at the initial home", LinkWord::from_raw(0)},
        {"zero, elsewhere", LinkWord::from_raw(0)},
    };
    for (const auto& [name, word] : words) {
        const bool at_home = std::string_view{name} == "zero, at the initial home";
        const Chase next = chase(word, self, at_home ? self : first);
        const char* what = next.what == Chase::Do::take ? "takes the lock: by CAS to `link(chaser)`"
                           : next.what == Chase::Do::queue
                               ? "queues: by CAS to `locked + chaser`, then waits for the grant"
                           : next.next == first ? "goes on to the initial home"
                                                : "goes on to the node named";
        std::printf("| %s | %s |\n", name, what);
    }
}

}  // namespace
}  // namespace hiroba::dsm

int main() {
    hiroba::dsm::print_transitions();
    hiroba::dsm::print_diagram();
    hiroba::dsm::print_chases();
}
