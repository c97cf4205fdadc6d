// SPDX-License-Identifier: BSD-3-Clause
// Role: directories asked by messages: the directory node's CPU answers, and keeps who must wait in
// a queue.
#pragma once

#include <map>

#include "gas/relocatable/directory.hpp"
#include "gas/relocatable/mail.hpp"

namespace hiroba::gas {

class MessageDirectory final : public Directory {
public:
    MessageDirectory(const SpaceShape& shape, Mail& mail) : shape_(shape), mail_(mail) {}

    void ask(std::span<const AskedPage> pages) override;
    std::vector<std::uint64_t> claim(std::uint64_t token,
                                     std::span<const std::uint64_t> pages) override;
    void commit(std::span<const CommittedPage> pages) override;

private:
    template <class Pages, class Words>
    void send(MailKind kind, std::uint64_t token, const Pages& pages, Words&& words_of);

    SpaceShape shape_;
    Mail& mail_;
};

}  // namespace hiroba::gas
