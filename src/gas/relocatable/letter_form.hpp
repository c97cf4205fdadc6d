// SPDX-License-Identifier: BSD-3-Clause
// Role: tells letters that a node of this job may write from all others, before anybody follows
// what they say: pages and ranks in them are indexes.
#pragma once

#include "gas/relocatable/mail.hpp"
#include "gas/relocatable/page_word.hpp"

namespace hiroba::gas {

/// Whether the words are as many as the kind has, and name pages and ranks of `shape` alone.
bool is_well_formed(MailKind kind, Mail::Words words, const SpaceShape& shape) noexcept;

}  // namespace hiroba::gas
