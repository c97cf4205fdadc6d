// SPDX-License-Identifier: BSD-3-Clause
// Role: what arrives at a node's socket, for libFuzzer: nothing that is not sealed opens, and
// records behind a right seal never lead outside their datagram. An input is a datagram, and also
// the body of one that this target seals.
//   datagram_fuzz -max_len=2048 -runs=10000000 FOUND test/fuzz/corpus
// adds what reaches new code to the folder FOUND.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "net/wire/datagram_samples.hpp"

using namespace hiroba;
using namespace hiroba::net::wire;

namespace {

void require(bool condition) {
    if (!condition) std::abort();
}

void walk(Bytes datagram, const DatagramHeader& header) {
    Bytes rest = records_of(datagram, header);
    while (!rest.empty()) {
        WireRecord record;
        Bytes payload;
        require(decode_wire_record(rest, record, payload));
        require(payload.data() + payload.size() <= rest.data() + rest.size());
        rest = rest.subspan(padded_record_bytes(payload.size()));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(data);
    const std::vector<std::byte> whole(bytes, bytes + size);
    std::uint32_t from = 0;
    DatagramHeader header;
    // 64 bits are not found by trying; the corpus has only bodies.
    if (sender_of(whole, 0, 2, from) == Refusal::none) {
        require(open_datagram(whole, samples::key, header) != Refusal::none);
    }
    std::vector<std::byte> sealed(header_bytes_max + size);
    if (size != 0) std::memcpy(sealed.data() + header_bytes_max, data, size);
    const DatagramHeader ours{.flags = static_cast<std::uint8_t>(size % 2),
                              .selective_words = static_cast<std::uint8_t>(size % 5),
                              .from = 1,
                              .sequence = size == 0 ? 0u : 7u};
    const std::byte* const start =
        seal_datagram(ours, samples::key, sealed.data() + header_bytes_max, size);
    const std::byte* const end = sealed.data() + sealed.size();
    const std::vector<std::byte> datagram(start, end);
    const Refusal refusal = open_datagram(datagram, samples::key, header);
    require(refusal == Refusal::none || refusal == Refusal::malformed);
    if (refusal == Refusal::none) walk(datagram, header);
    return 0;
}
