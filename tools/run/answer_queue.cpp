// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/answer_queue.hpp"

#include <unistd.h>

namespace hiroba::tools {

SharedDescriptor share_descriptor(int fd) {
    if (fd < 0) return {};
    return SharedDescriptor(new int(fd), [](const int* held) {
        ::close(*held);
        delete held;
    });
}

void AnswerQueue::give(int socket) {
    while (socket >= 0 && !answers_.empty()) {
        const Answer& answer = answers_.front();
        const Bytes body = answer.body ? Bytes(*answer.body) : Bytes();
        const net::Transfer transfer =
            net::send_packet(socket, answer.header, body, answer.fd ? *answer.fd : -1, false);
        if (transfer == net::Transfer::again) return;
        if (transfer == net::Transfer::closed) return answers_.clear();
        answers_.pop_front();
    }
}

}  // namespace hiroba::tools
