// SPDX-License-Identifier: BSD-3-Clause
// Role: what a hiroba_net of the C face is.
#pragma once

#include <array>
#include <memory>

#include "hiroba/hiroba.h"
#include "hiroba/net.hpp"

struct hiroba_net {
    /// What a message of the C++ face is given as its context.
    struct Handler {
        hiroba_handler function = nullptr;
        void* context = nullptr;
    };
    std::array<Handler, hiroba::net::ActiveId::count> handlers{};
    std::unique_ptr<hiroba::net::Network> network;  ///< destroyed first: messages may be coming in
};
