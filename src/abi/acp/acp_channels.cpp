// SPDX-License-Identifier: BSD-3-Clause
// Role: the C interface of channels: converts to acp/channels.hpp. What a program holds are
// numbers.
#include <acp.h>

#include <cstdint>

#include "abi/acp/process.hpp"

namespace {

using hiroba::Error;
using hiroba::ErrorKind;
using hiroba::Result;
using hiroba::abi_acp::current_node;
using hiroba::abi_acp::fail;
using hiroba::abi_acp::is_ready;
using hiroba::acp::Channels;
using hiroba::acp::Node;

constexpr size_t failed = ~size_t{0};

template <class Pointer>
Pointer named(Channels::Id id) {
    return reinterpret_cast<Pointer>(static_cast<std::uintptr_t>(id));
}
template <class Pointer>
Channels::Id id_of(Pointer named) {
    return reinterpret_cast<std::uintptr_t>(named);
}

/// What `work(node)` makes, or none.
template <class Pointer, class Work>
Pointer make(const char* function, Work&& work) {
    if (!is_ready(function)) return Pointer{};
    const Result<Channels::Id> made = work(*current_node());
    return made ? named<Pointer>(*made) : fail(function, made.error(), Pointer{});
}

}  // namespace

HIROBA_ACP_PUBLIC acp_ch_t acp_create_ch(int sender, int receiver) {
    return make<acp_ch_t>("acp_create_ch",
                          [=](Node& node) { return node.create_channel(sender, receiver); });
}

HIROBA_ACP_PUBLIC acp_request_t acp_nbsend_ch(acp_ch_t ch, void* buf, size_t size) {
    return make<acp_request_t>(
        "acp_nbsend_ch", [=](Node& node) { return node.channels().send(id_of(ch), buf, size); });
}

HIROBA_ACP_PUBLIC acp_request_t acp_nbrecv_ch(acp_ch_t ch, void* buf, size_t size) {
    return make<acp_request_t>(
        "acp_nbrecv_ch", [=](Node& node) { return node.channels().receive(id_of(ch), buf, size); });
}

HIROBA_ACP_PUBLIC acp_request_t acp_nbfree_ch(acp_ch_t ch) {
    return make<acp_request_t>("acp_nbfree_ch",
                               [=](Node& node) { return node.channels().free(id_of(ch)); });
}

HIROBA_ACP_PUBLIC size_t acp_wait_ch(acp_request_t request) {
    if (!is_ready("acp_wait_ch")) return failed;
    const auto bytes = current_node()->wait_for_channel(id_of(request));
    return bytes ? *bytes : fail("acp_wait_ch", bytes.error(), failed);
}

HIROBA_ACP_PUBLIC int acp_waitall_ch(acp_request_t* requests, int count, size_t* sizes) {
    int outcome = 0;
    for (int index = 0; index < count; ++index) {
        const size_t bytes = acp_wait_ch(requests[index]);
        if (bytes == failed) outcome = -1;
        if (sizes != nullptr) sizes[index] = bytes;
    }
    return outcome;
}

HIROBA_ACP_PUBLIC int acp_free_ch(acp_ch_t ch) {
    const acp_request_t request = acp_nbfree_ch(ch);
    return request != ACP_REQUEST_NULL && acp_wait_ch(request) != failed ? 0 : -1;
}
