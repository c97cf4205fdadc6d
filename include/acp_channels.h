/* SPDX-License-Identifier: BSD-3-Clause
   Role: ACP, middle layer, communication: channels, messages from one rank to another, in order.
   Included by acp.h. For C11 and C++.
   Source: the public interface of ACP 3; what it leaves open: docs/layers/acp.md.

   Any thread may call. A function that fails says why in one line on stderr and sets errno. */
#ifndef HIROBA_ACP_CHANNELS_H
#define HIROBA_ACP_CHANNELS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** This rank's end of a channel. */
typedef struct hiroba_acp_channel* acp_ch_t;
/** Something that was started on a channel. */
typedef struct hiroba_acp_request* acp_request_t;
#define ACP_CH_NULL ((acp_ch_t)0)
#define ACP_REQUEST_NULL ((acp_request_t)0)

/** Creates this rank's end of a channel; it is `sender` or `receiver`, not both. Waits for nobody:
    sends and receives may be started at once. The n-th channel of two ranks in one direction is the
    n-th on both. @return ACP_CH_NULL on failure */
acp_ch_t acp_create_ch(int sender, int receiver);
/** Starts to send `size` bytes (0: a message without), which stay as they are until
    acp_wait_ch. Complete when `buf` may be changed; that says nothing of the receiver.
    @return ACP_REQUEST_NULL on failure: this rank is not the sender, or frees the channel */
acp_request_t acp_nbsend_ch(acp_ch_t ch, void* buf, size_t size);
/** Starts to receive the next message; what it has beyond `size` bytes is dropped. @return as above
 */
acp_request_t acp_nbrecv_ch(acp_ch_t ch, void* buf, size_t size);
/** Waits until the request is complete, and ends it. Messages arrive while the program computes.
    @return bytes received; 0 for sends and frees; (size_t)-1 on failure: no request, or a receive
    whose sender has freed the channel */
size_t acp_wait_ch(acp_request_t request);
/** Waits for all of `count` requests. @param sizes  may be null; what acp_wait_ch returned of each
    @return 0; -1 if one failed */
int acp_waitall_ch(acp_request_t* requests, int count, size_t* sizes);
/** Starts to free this end: complete when what was started on it is, and the other end is being
    freed, too. What a receiver has not received is dropped. @return ACP_REQUEST_NULL on failure */
acp_request_t acp_nbfree_ch(acp_ch_t ch);
/** acp_nbfree_ch and acp_wait_ch in one. @return 0, or -1 */
int acp_free_ch(acp_ch_t ch);

#ifdef __cplusplus
}
#endif

#endif
