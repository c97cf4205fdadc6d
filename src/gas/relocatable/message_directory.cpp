// SPDX-License-Identifier: BSD-3-Clause
#include "gas/relocatable/message_directory.hpp"

namespace hiroba::gas {

/// One letter, or as many as it takes, to each directory node concerned.
template <class Pages, class Words>
void MessageDirectory::send(MailKind kind, std::uint64_t token, const Pages& pages,
                            Words&& words_of) {
    std::map<std::uint32_t, Letter> letters;
    std::map<std::uint32_t, std::size_t> counts;
    for (const auto& each : pages) {
        const NodeId to = words_of(each, nullptr);
        Letter& letter = letters[to.value];
        words_of(each, &letter.words);
        if (++counts[to.value] == mail_.pages_max()) {
            mail_.send(to, kind, token, letter.words);
            letter.words.clear();
            counts[to.value] = 0;
        }
    }
    for (const auto& [to, letter] : letters) {
        if (!letter.words.empty()) mail_.send(NodeId{to}, kind, token, letter.words);
    }
}

void MessageDirectory::ask(std::span<const AskedPage> pages) {
    send(MailKind::ask, 0, pages, [&](const AskedPage& it, std::vector<std::uint64_t>* words) {
        if (words != nullptr) words->push_back(tagged(it.page, it.token));
        return shape_.directory_of(it.page);
    });
}

std::vector<std::uint64_t> MessageDirectory::claim(std::uint64_t token,
                                                   std::span<const std::uint64_t> pages) {
    send(MailKind::claim, token, pages, [&](std::uint64_t page, std::vector<std::uint64_t>* words) {
        if (words != nullptr) words->push_back(page);
        return shape_.directory_of(page);
    });
    return {};
}

void MessageDirectory::commit(std::span<const CommittedPage> pages) {
    send(MailKind::commit, 0, pages,
         [&](const CommittedPage& it, std::vector<std::uint64_t>* words) {
             if (words != nullptr) words->insert(words->end(), {it.page, it.word.pack()});
             return shape_.directory_of(it.page);
         });
}

}  // namespace hiroba::gas
