// SPDX-License-Identifier: BSD-3-Clause
// Role: OpenSSL's libcrypto, loaded when datagrams are to be encrypted and never else: what is
// preloaded into programs brings no library along.
// Invariant: a copy of its own beside one that the program uses: the program's has its data in
// shared memory, allocates there, and is configured by it; ours runs below page faults. The
// loader gives ours to no program, and its memory is crypto_memory.hpp's.
#pragma once

#include <cstdint>

#include "base/result.hpp"

namespace hiroba::net::wire {

/// The functions that are used, under their names without EVP_ and CRYPTO_. Their declarations are
/// part of OpenSSL's stable interface; its headers are not needed to build.
struct CryptoLibrary {
    /// Loads it at the first call. Fails with one line, ErrorKind::environment, where there is
    /// none. Thread: any; the first call before the program's first thread (LoadingOwnLibraries).
    static Result<const CryptoLibrary*> load();

    void* (*context_new)() = nullptr;
    void (*context_free)(void* context) = nullptr;
    int (*context_ctrl)(void* context, int type, int number, void* pointer) = nullptr;
    int (*context_set_padding)(void* context, int padding) = nullptr;
    int (*init)(void* context, const void* cipher, void* engine, const unsigned char* key,
                const unsigned char* nonce, int encrypts) = nullptr;
    int (*update)(void* context, unsigned char* out, int* out_bytes, const unsigned char* in,
                  int in_bytes) = nullptr;
    int (*final)(void* context, unsigned char* out, int* out_bytes) = nullptr;
    const void* (*aes_128_ecb)() = nullptr;
    const void* (*aes_128_gcm)() = nullptr;
    const void* (*chacha20_poly1305)() = nullptr;
};

}  // namespace hiroba::net::wire
