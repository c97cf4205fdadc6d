// SPDX-License-Identifier: BSD-3-Clause
// Role: see seals.hpp.
#include "net/provider/udp/seals.hpp"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace hiroba::net::udp {

Seals::~Seals() {
    stranger_.close();
    if (room_ != nullptr) munmap(room_, room_bytes);
}

Result<void> Seals::open() {
    if (!encrypts()) return {};
    if (auto opened = keys_.open(job_); !opened) return opened;
    void* const memory = mmap(nullptr, room_bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return Error{ErrorKind::environment, "mmap of " + std::to_string(room_bytes) +
                                                 " bytes: " + strerror(errno) + "; see ulimit -v"};
    room_ = static_cast<std::byte*>(memory);
    return {};
}

void Seals::complete() noexcept {
    if (encrypts()) stranger_.begin(cipher_, false);
}

void Seals::begin(Peer& peer, std::uint64_t mine, std::uint64_t theirs) noexcept {
    if (!encrypts()) {
        peer.key_out = wire::direction_key(job_, parts_, mine, theirs);
        peer.key_in = wire::direction_key(job_, parts_, theirs, mine);
        return;
    }
    peer.seal_out.begin(cipher_, true);
    peer.seal_out.set_key(keys_.key(mine, theirs));
    peer.open_in.begin(cipher_, false);
    peer.open_in.set_key(keys_.key(theirs, mine));
}

void Seals::end(Peer& peer) noexcept {
    peer.seal_out.close();
    peer.open_in.close();
}

Bytes Seals::seal(Peer& peer, const wire::DatagramHeader& header, std::byte* body,
                  std::size_t body_bytes) noexcept {
    if (!encrypts()) [[likely]]
        return {wire::seal_datagram(header, peer.key_out, body, body_bytes),
                header.bytes() + body_bytes};
    // Beside the packet, which may have to be sealed again.
    std::byte* const to = room_ + next_ * slot_bytes;
    next_ = (next_ + 1) % datagrams_max;
    return {to, wire::encrypt_datagram(header, peer.seal_out, {body, body_bytes}, to)};
}

wire::Refusal Seals::open(Peer* peer, std::uint64_t mine, std::uint64_t theirs,
                          MutableBytes& datagram, wire::DatagramHeader& header) noexcept {
    if (encrypts()) {
        if (peer == nullptr) stranger_.set_key(keys_.key(theirs, mine));
        return wire::decrypt_datagram(datagram, peer != nullptr ? peer->open_in : stranger_,
                                      header);
    }
    if (peer != nullptr) return wire::open_datagram(datagram, peer->key_in, header);
    return wire::open_datagram(datagram, wire::direction_key(job_, parts_, theirs, mine), header);
}

MutableBytes Seals::copy(MutableBytes datagram) noexcept {
    if (!encrypts()) return datagram;
    const MutableBytes copied{room_ + datagrams_max * slot_bytes,
                              std::min(datagram.size(), slot_bytes)};
    std::memcpy(copied.data(), datagram.data(), copied.size());
    return copied;
}

}  // namespace hiroba::net::udp
