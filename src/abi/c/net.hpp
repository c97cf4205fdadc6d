// SPDX-License-Identifier: BSD-3-Clause
// Role: what a hiroba_net of the C face is.
#pragma once

#include <array>
#include <memory>

#include "hiroba/hiroba.h"
#include "hiroba/net.hpp"

/// Forgets the numbered procedures of a network that is gone.
extern "C" void hiroba_forget_procedures(const hiroba::net::Network* network) noexcept;

/// Requests that were started.
struct hiroba_pending {
    hiroba::net::Pending pending;
    std::uint32_t lost_before = 0;  ///< of those that were waited for before
};

struct hiroba_net {
    /// What a message of the C++ face is given as its context.
    struct Handler {
        hiroba_handler function = nullptr;
        void* context = nullptr;
    };
    struct Procedure {
        hiroba_procedure function = nullptr;
        void* context = nullptr;
    };
    static constexpr std::uint32_t procedures_max = 256;
    std::array<Handler, hiroba::net::ActiveId::count> handlers{};
    std::array<Procedure, procedures_max> procedures{};
    std::unique_ptr<hiroba::net::Network> network;  ///< destroyed first: messages may be coming in
};
