// SPDX-License-Identifier: BSD-3-Clause
#include "gas/relocatable/message_directory.hpp"

namespace hiroba::gas {

/// One message, or as many as it takes, to each directory node concerned.
template <class Pages, class Words>
void MessageDirectory::send(SpaceMessageKind kind, std::uint64_t token, const Pages& pages,
                            Words&& words_of) {
    std::map<std::uint32_t, SpaceMessage> messages;
    std::map<std::uint32_t, std::size_t> counts;
    for (const auto& each : pages) {
        const NodeId to = words_of(each, nullptr);
        SpaceMessage& message = messages[to.value];
        words_of(each, &message.words);
        if (++counts[to.value] == messages_.pages_max()) {
            messages_.send(to, kind, token, message.words);
            message.words.clear();
            counts[to.value] = 0;
        }
    }
    for (const auto& [to, message] : messages) {
        if (!message.words.empty()) messages_.send(NodeId{to}, kind, token, message.words);
    }
}

void MessageDirectory::ask(std::span<const AskedPage> pages) {
    send(SpaceMessageKind::ask, 0, pages,
         [&](const AskedPage& it, std::vector<std::uint64_t>* words) {
             if (words != nullptr) words->push_back(tagged(it.page, it.token));
             return shape_.directory_of(it.page);
         });
}

std::vector<std::uint64_t> MessageDirectory::claim(std::uint64_t token,
                                                   std::span<const std::uint64_t> pages) {
    send(SpaceMessageKind::claim, token, pages,
         [&](std::uint64_t page, std::vector<std::uint64_t>* words) {
             if (words != nullptr) words->push_back(page);
             return shape_.directory_of(page);
         });
    return {};
}

void MessageDirectory::commit(std::span<const CommittedPage> pages) {
    send(SpaceMessageKind::commit, 0, pages,
         [&](const CommittedPage& it, std::vector<std::uint64_t>* words) {
             if (words != nullptr) words->insert(words->end(), {it.page, it.word.pack()});
             return shape_.directory_of(it.page);
         });
}

}  // namespace hiroba::gas
