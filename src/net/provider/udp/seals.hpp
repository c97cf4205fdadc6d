// SPDX-License-Identifier: BSD-3-Clause
// Role: what shows a node's datagrams to come from the job, and hides them where HIROBA_ENCRYPT
// asks for it: the keys of each direction, and room for what is encrypted until it is sent.
// Invariant: as net/wire/authenticator.hpp and net/wire/cipher.hpp; nothing allocates once nodes
// have met, but for a peer that is begun. Owned by the thread that calls connect(), then by the
// provider's latch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.hpp"
#include "net/provider/udp/peer.hpp"
#include "net/provider/udp/socket.hpp"
#include "net/wire/cipher.hpp"

namespace hiroba::net::udp {

/// Whether datagrams are encrypted (HIROBA_ENCRYPT), beside being authenticated.
enum class Secrecy : std::uint8_t { open, encrypted };

class Seals {
public:
    Seals(const wire::HashKey& job, Secrecy secrecy) noexcept
        : job_(job), parts_(wire::part_key(job)), secrecy_(secrecy) {}
    Seals(const Seals&) = delete;
    ~Seals();

    /// Loads what encrypts, if anything is to be.
    Result<void> open();
    bool encrypts() const noexcept { return secrecy_ == Secrecy::encrypted; }
    /// A processor of the job has no AES. All nodes must hear of it.
    void do_without_aes() noexcept { cipher_ = wire::CipherKind::chacha20_poly1305; }
    /// All nodes have met.
    void complete() noexcept;

    /// Bytes of each datagram that are kept from the window.
    std::size_t overhead() const noexcept { return encrypts() ? wire::tag_bytes : 0; }
    /// @param mine, theirs  numbers that both ends drew for this run
    void begin(Peer& peer, std::uint64_t mine, std::uint64_t theirs) noexcept;
    static void end(Peer& peer) noexcept;

    /// @param body  with room for the header in front of it
    /// @return the datagram; valid until datagrams_max more were sealed
    Bytes seal(Peer& peer, const wire::DatagramHeader& header, std::byte* body,
               std::size_t body_bytes) noexcept;
    /// @param peer  who is named as the sender; nullptr: never talked to
    /// @param datagram  decrypted in place, and then ends with its last record
    wire::Refusal open(Peer* peer, std::uint64_t mine, std::uint64_t theirs, MutableBytes& datagram,
                       wire::DatagramHeader& header) noexcept;
    /// A datagram that is to be opened twice; `datagram` itself where that does not change it.
    MutableBytes copy(MutableBytes datagram) noexcept;

private:
    /// More than wait for a flush at once, with those that a transport sends twice.
    static constexpr std::size_t datagrams_max = Socket::batch_max + 16;
    static constexpr std::size_t room_bytes = (datagrams_max + 1) * slot_bytes;

    wire::HashKey job_;
    wire::PartKey parts_;
    Secrecy secrecy_;
    wire::CipherKind cipher_ = wire::CipherKind::aes_128_gcm;
    wire::CipherKeys keys_;
    wire::DirectionCipher stranger_;  ///< for datagrams of nodes never talked to
    std::byte* room_ = nullptr;       ///< encrypted datagrams, and then a copied one
    std::size_t next_ = 0;
};

}  // namespace hiroba::net::udp
