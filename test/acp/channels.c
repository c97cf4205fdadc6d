/* SPDX-License-Identifier: BSD-3-Clause
   Channels between all pairs of ranks: messages of all sizes in order, receives before and after
   they come, buffers that are too small, channels that are freed by either end first; then
   refusals. Usage: channels ROUNDS */
#include <string.h>

#include "check.h"

enum { big = 300000, messages = 6, channels_each = 2 };

/* The n-th message of a channel: none of its bytes tells which one it is alone. */
static size_t size_of(uint64_t seed) {
    static const size_t sizes[] = {0, 1, 100, 4096, 32768, 32769, 100000, big};
    return sizes[mixed(seed) % 8];
}
static void fill(unsigned char* bytes, size_t size, uint64_t seed) {
    for (size_t at = 0; at < size; ++at)
        bytes[at] = (unsigned char)(mixed(seed + at / 64) >> at % 8);
}
static uint64_t seed_of(int from, int to, int channel, int message) {
    return ((uint64_t)(from * 64 + to) * 64 + (uint64_t)channel) * 1000 + (uint64_t)message;
}

static void send_all(acp_ch_t ch, int channel, int to, unsigned char* buffer, acp_request_t* sent) {
    for (int message = 0; message < messages; ++message) {
        const uint64_t seed = seed_of(acp_rank(), to, channel, message);
        unsigned char* const mine = buffer + (size_t)message * big;
        fill(mine, size_of(seed), seed);
        sent[message] = acp_nbsend_ch(ch, mine, size_of(seed));
        CHECK(sent[message] != ACP_REQUEST_NULL, "message %d to %d", message, to);
    }
}

static void check_received(int from, int channel, int message, size_t got,
                           const unsigned char* buffer, size_t room) {
    const uint64_t seed = seed_of(from, acp_rank(), channel, message);
    const size_t size = size_of(seed) < room ? size_of(seed) : room;
    CHECK(got == size, "%zu bytes of message %d from %d, not %zu", got, message, from, size);
    static unsigned char wanted[big];
    fill(wanted, size, seed);
    CHECK(memcmp(wanted, buffer, size) == 0, "message %d of %zu bytes from %d", message, size,
          from);
    for (size_t at = size; at < room && at < size + 64; ++at)
        CHECK(buffer[at] == 0xee, "byte %zu behind a message of %zu", at - size, size);
}

/* Both directions between this rank and `other`, several channels each. */
static void talk(int other, int round) {
    const int me = acp_rank();
    acp_ch_t out[channels_each], in[channels_each];
    acp_request_t sent[channels_each][messages], got[messages];
    size_t sizes[messages];
    unsigned char* const sending = malloc((size_t)channels_each * messages * big);
    unsigned char* const receiving = malloc((size_t)messages * big);
    for (int channel = 0; channel < channels_each; ++channel) {
        out[channel] = acp_create_ch(me, other);
        in[channel] = acp_create_ch(other, me);
        CHECK(out[channel] != ACP_CH_NULL && in[channel] != ACP_CH_NULL, "with %d", other);
    }
    for (int channel = 0; channel < channels_each; ++channel)
        send_all(out[channel], channel, other, sending + (size_t)channel * messages * big,
                 sent[channel]);
    /* The last channel first: what came on the others waits. */
    for (int channel = channels_each - 1; channel >= 0; --channel) {
        memset(receiving, 0xee, (size_t)messages * big);
        const size_t room = (channel + round) % 2 == 0 ? big : 5000;
        for (int message = 0; message < messages; ++message)
            got[message] = acp_nbrecv_ch(in[channel], receiving + (size_t)message * big, room);
        CHECK(acp_waitall_ch(got, messages, sizes) == 0, "from %d", other);
        for (int message = 0; message < messages; ++message)
            check_received(other, channel, message, sizes[message],
                           receiving + (size_t)message * big, room);
    }
    for (int channel = 0; channel < channels_each; ++channel)
        CHECK(acp_waitall_ch(sent[channel], messages, NULL) == 0, "to %d", other);
    acp_request_t freed[2 * channels_each];
    for (int channel = 0; channel < channels_each; ++channel) {
        freed[2 * channel] =
            acp_nbfree_ch((me < other) == (round % 2 == 0) ? out[channel] : in[channel]);
        freed[2 * channel + 1] =
            acp_nbfree_ch((me < other) == (round % 2 == 0) ? in[channel] : out[channel]);
    }
    CHECK(acp_waitall_ch(freed, 2 * channels_each, NULL) == 0, "freeing those with %d", other);
    free(sending);
    free(receiving);
}

static void refuse(void) {
    const int me = acp_rank(), next = (me + 1) % acp_procs();
    char byte = 0;
    CHECK(acp_create_ch(me, me) == ACP_CH_NULL, "a channel to itself");
    CHECK(acp_create_ch(me, acp_procs()) == ACP_CH_NULL, "a channel to no rank");
    CHECK(acp_nbsend_ch(ACP_CH_NULL, &byte, 1) == ACP_REQUEST_NULL, "no channel");
    CHECK(acp_wait_ch(ACP_REQUEST_NULL) == (size_t)-1, "no request");
    if (acp_procs() != 2) return;
    acp_ch_t out = acp_create_ch(me, next), in = acp_create_ch(next, me);
    CHECK(acp_nbrecv_ch(out, &byte, 1) == ACP_REQUEST_NULL, "receiving where it sends");
    CHECK(acp_nbsend_ch(in, &byte, 1) == ACP_REQUEST_NULL, "sending where it receives");
    /* The other sends nothing and frees: a receive that waits is told. */
    acp_request_t nothing = acp_nbrecv_ch(in, &byte, 1);
    acp_request_t freed[2] = {acp_nbfree_ch(out), acp_nbfree_ch(in)};
    CHECK(acp_nbsend_ch(out, &byte, 1) == ACP_REQUEST_NULL, "sending what is being freed");
    CHECK(acp_wait_ch(nothing) == (size_t)-1, "received from nobody");
    CHECK(acp_waitall_ch(freed, 2, NULL) == 0, "freeing");
    CHECK(acp_free_ch(out) == -1, "freed twice");
}

int main(int argc, char** argv) {
    if (acp_init(&argc, &argv) != 0) return 1;
    const int rounds = argc > 1 ? atoi(argv[1]) : 1;
    for (int round = 0; round < rounds; ++round)
        for (int step = 0; step < 2 * acp_procs(); ++step) {
            const int other = ((step - acp_rank()) % acp_procs() + acp_procs()) % acp_procs();
            if (other != acp_rank()) talk(other, round + step / acp_procs());
        }
    refuse();
    acp_sync();
    if (acp_rank() == 0) printf("%d rounds of channels on %d ranks: right\n", rounds, acp_procs());
    return acp_finalize();
}
