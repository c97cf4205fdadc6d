// SPDX-License-Identifier: BSD-3-Clause
// Role: whether a provider can do what HIROBA_ENCRYPT asks for. The launcher asks before a job
// begins, each node when it makes its provider.
#pragma once

#include <string_view>

#include "base/result.hpp"

namespace hiroba::net {

/// Fails where HIROBA_ENCRYPT is on and the provider of that name sends what it sends in the clear.
Result<void> check_secrecy(std::string_view provider);

}  // namespace hiroba::net
