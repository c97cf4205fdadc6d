// SPDX-License-Identifier: BSD-3-Clause
// Role: the face of kicks: small messages at the price of a store, and what is built of them.
// Source: Tanabe et al., "AOTF: A Low Latency Communication Mechanism of DIMMnet-1".
#pragma once

#include "net/kick/board.hpp"
#include "net/kick/channel.hpp"
#include "net/kick/group.hpp"
#include "net/kick/kick_after.hpp"
#include "net/kick/kick_store.hpp"
#include "net/kick/mailboxes.hpp"
#include "net/kick/window.hpp"
