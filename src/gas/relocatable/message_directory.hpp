// SPDX-License-Identifier: BSD-3-Clause
// Role: directories asked by messages: the directory node's CPU answers, and keeps nodes that must
// wait in a queue.
#pragma once

#include <map>

#include "gas/relocatable/directory.hpp"
#include "gas/relocatable/space_messages.hpp"

namespace hiroba::gas {

class MessageDirectory final : public Directory {
public:
    MessageDirectory(const SpaceShape& shape, SpaceMessages& messages)
        : shape_(shape), messages_(messages) {}

    void ask(std::span<const AskedPage> pages) override;
    std::vector<std::uint64_t> claim(std::uint64_t token,
                                     std::span<const std::uint64_t> pages) override;
    void commit(std::span<const CommittedPage> pages) override;

private:
    template <class Pages, class Words>
    void send(SpaceMessageKind kind, std::uint64_t token, const Pages& pages, Words&& words_of);

    SpaceShape shape_;
    SpaceMessages& messages_;
};

}  // namespace hiroba::gas
