// SPDX-License-Identifier: BSD-3-Clause
// Role: what encrypts datagrams and shows that they come from the job, where HIROBA_ENCRYPT asks
// for it: AES-128-GCM, or ChaCha20-Poly1305 where a processor of the job lacks AES. Why, and what
// is promised: docs/decisions/encrypted-datagrams.md. Invariant: no number is used twice with a
// key. Each direction of each pair of nodes has a key of its own, made of the job's secret and of
// what both ends drew for this run; its sender counts what it seals, and seals again what it sends
// again. Source: NIST SP 800-38D (GCM); RFC 8439.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "net/wire/siphash.hpp"

namespace hiroba::net::wire {

enum class CipherKind : std::uint8_t { aes_128_gcm, chacha20_poly1305 };

/// Whether this processor has instructions for AES-GCM.
bool has_aes() noexcept;

inline constexpr std::size_t tag_bytes = 16;
using CipherKey = std::array<std::byte, 32>;  ///< AES takes the first half

/// One direction. A handle: whoever keeps it calls close().
class DirectionCipher {
public:
    /// @param to_the_peer  seals; else opens
    /// Stops the process when the library has no memory.
    void begin(CipherKind kind, bool to_the_peer) noexcept;
    /// Counting begins anew.
    void set_key(const CipherKey& key) noexcept;
    void close() noexcept;

    /// Writes `body`, encrypted, and a tag over it and `header` to `to`. The key's next number is
    /// in next_number() before: `header` is to carry it.
    /// @param to  body.size() + tag_bytes, nowhere in `body`
    void seal(Bytes header, Bytes body, std::byte* to) noexcept;
    std::uint64_t next_number() const noexcept { return number_; }
    /// Decrypts in place. False when anything was altered: then the bytes mean nothing.
    bool open(std::uint64_t number, Bytes header, MutableBytes body, const std::byte* tag) noexcept;

private:
    void begin_datagram(std::uint64_t number, Bytes header) noexcept;

    void* context_ = nullptr;
    std::uint64_t number_ = 0;
};

/// Makes the keys of a job. Thread: its provider's.
class CipherKeys {
public:
    CipherKeys() = default;
    CipherKeys(const CipherKeys&) = delete;
    ~CipherKeys();

    /// Loads the library.
    Result<void> open(const HashKey& job);
    bool on() const noexcept { return context_ != nullptr; }

    /// @param from, to  numbers that each end drew at random for this run
    /// Allocates nothing. From one key no other follows.
    CipherKey key(std::uint64_t from, std::uint64_t to) noexcept;

private:
    void* context_ = nullptr;  ///< AES with the job's secret, for this alone
};

}  // namespace hiroba::net::wire
