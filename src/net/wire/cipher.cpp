// SPDX-License-Identifier: BSD-3-Clause
// Role: see cipher.hpp. A call of the library fails only when it is misused, so that stops the
// process, but for the last one of open().
#include "net/wire/cipher.hpp"

#include <cstring>
#include <utility>

#include "base/fatal.hpp"
#include "net/wire/crypto_library.hpp"

namespace hiroba::net::wire {
namespace {

// EVP_CTRL_AEAD_GET_TAG and EVP_CTRL_AEAD_SET_TAG.
constexpr int get_tag = 0x10, set_tag = 0x11;
constexpr std::size_t nonce_bytes = 12;
constexpr std::size_t block_bytes = 16;

const CryptoLibrary* library = nullptr;  // written before any context is made

unsigned char* octets(std::byte* bytes) noexcept { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* octets(const std::byte* bytes) noexcept {
    return reinterpret_cast<const unsigned char*>(bytes);
}

void* new_context() noexcept {
    void* const context = library->context_new();
    HIROBA_INVARIANT(context != nullptr, "libcrypto has no memory for a context, %d", 0);
    return context;
}

void check(int result, const char* what) noexcept {
    HIROBA_INVARIANT(result == 1, "libcrypto: %s gave %d", what, result);
}

}  // namespace

bool has_aes() noexcept {
    return __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
}

void DirectionCipher::begin(CipherKind kind, bool to_the_peer) noexcept {
    context_ = new_context();
    const void* const cipher =
        kind == CipherKind::aes_128_gcm ? library->aes_128_gcm() : library->chacha20_poly1305();
    check(library->init(context_, cipher, nullptr, nullptr, nullptr, to_the_peer), "a cipher");
}

void DirectionCipher::set_key(const CipherKey& key) noexcept {
    check(library->init(context_, nullptr, nullptr, octets(key.data()), nullptr, -1), "a key");
    number_ = 0;
}

void DirectionCipher::close() noexcept {
    if (context_ != nullptr) library->context_free(std::exchange(context_, nullptr));
}

void DirectionCipher::begin_datagram(std::uint64_t number, Bytes header) noexcept {
    std::byte nonce[nonce_bytes]{};
    std::memcpy(nonce + nonce_bytes - sizeof number, &number, sizeof number);
    check(library->init(context_, nullptr, nullptr, nullptr, octets(nonce), -1), "a number");
    int done = 0;
    check(library->update(context_, nullptr, &done, octets(header.data()),
                          static_cast<int>(header.size())),
          "a header");
}

void DirectionCipher::seal(Bytes header, Bytes body, std::byte* to) noexcept {
    begin_datagram(number_++, header);
    int done = 0;
    if (!body.empty())
        check(library->update(context_, octets(to), &done, octets(body.data()),
                              static_cast<int>(body.size())),
              "a body");
    check(library->final(context_, octets(to) + body.size(), &done), "the end of a datagram");
    check(library->context_ctrl(context_, get_tag, tag_bytes, to + body.size()), "a tag");
}

bool DirectionCipher::open(std::uint64_t number, Bytes header, MutableBytes body,
                           const std::byte* tag) noexcept {
    begin_datagram(number, header);
    int done = 0;
    if (!body.empty() && library->update(context_, octets(body.data()), &done, octets(body.data()),
                                         static_cast<int>(body.size())) != 1)
        return false;
    check(library->context_ctrl(context_, set_tag, tag_bytes, const_cast<std::byte*>(tag)),
          "a tag to compare");
    unsigned char none[block_bytes];
    return library->final(context_, none, &done) == 1;
}

// --- keys ----------------------------------------------------------------------------------------

CipherKeys::~CipherKeys() {
    if (context_ != nullptr) library->context_free(context_);
}

Result<void> CipherKeys::open(const HashKey& job) {
    const auto loaded = CryptoLibrary::load();
    if (!loaded) return loaded.error();
    library = *loaded;
    const std::uint64_t secret[2] = {job.low, job.high};
    std::byte key[sizeof secret];
    std::memcpy(key, secret, sizeof key);
    void* const context = library->context_new();
    if (context == nullptr ||
        library->init(context, library->aes_128_ecb(), nullptr, octets(key), nullptr, 1) != 1 ||
        library->context_set_padding(context, 0) != 1) {
        if (context != nullptr) library->context_free(context);
        return Error{ErrorKind::environment,
                     "HIROBA_ENCRYPT=on: libcrypto.so.3 has no AES; see its configuration"};
    }
    context_ = context;
    return {};
}

/// The cipher of the job's secret, of both numbers; and of both once more, told apart by a bit, for
/// the second half.
CipherKey CipherKeys::key(std::uint64_t from, std::uint64_t to) noexcept {
    constexpr std::uint64_t second = std::uint64_t{1} << 63;
    const std::uint64_t words[4] = {from, to, from ^ second, to};
    CipherKey made;
    std::memcpy(made.data(), words, sizeof words);
    int done = 0;
    CipherKey out;
    check(library->update(context_, octets(out.data()), &done, octets(made.data()),
                          static_cast<int>(made.size())),
          "the keys of a direction");
    return out;
}

}  // namespace hiroba::net::wire
