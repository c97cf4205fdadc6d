// SPDX-License-Identifier: BSD-3-Clause
// Role: what a provider need not write itself.
#include "net/provider/provider.hpp"

#include "base/fatal.hpp"

namespace hiroba::net {

std::size_t Provider::post(std::span<Work> list) noexcept {
    std::size_t taken = 0;
    for (Work& work : list) {
        switch (work.kind) {
            case Work::Kind::put:
                work.outcome = put(work.id, work.peer, work.region, work.offset,
                                   Bytes{work.memory, work.bytes});
                break;
            case Work::Kind::get:
                work.outcome = get(work.id, MutableBytes{work.memory, work.bytes}, work.peer,
                                   work.region, work.offset);
                break;
            case Work::Kind::atomic:
                work.outcome = atomic(work.id, work.op, work.peer, work.region, work.offset,
                                      work.operand, work.expected, work.old);
                break;
            case Work::Kind::send:
                work.outcome = send(work.peer, work.message, work.urgency, work.parts);
                break;
        }
        if (work.outcome == Post::again) break;
        ++taken;
    }
    return taken;
}

Post Provider::kick(const PreparedKick& kick, std::uint32_t, std::uint64_t, bool) noexcept {
    fatal("a kick to node %u was handed to a provider that did not prepare it", kick.to.value);
}

}  // namespace hiroba::net
