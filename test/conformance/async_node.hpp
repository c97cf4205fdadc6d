// SPDX-License-Identifier: BSD-3-Clause
// Role: a node of a test with everything this layer has: requests, collectives, a service thread.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "conformance/process_job.hpp"
#include "conformance/thread.hpp"
#include "net/async.hpp"
#include "net/collectives.hpp"

namespace hiroba::conformance {

/// One connected node with a service thread.
struct AsyncNode {
    AsyncNode(Rig& rig, net::offload::Mode mode)
        : endpoint(rig.open()),
          collectives(std::move(*net::Collectives::make(*endpoint))),
          async(std::make_unique<net::Async>(*endpoint, mode)),
          memory(*async->allocate(1 << 20)) {}
    void connect() {
        const auto connected = endpoint->connect();
        ASSERT_TRUE(connected) << connected.error().text;
        async->attach();
        collectives->attach();
        service = Thread{[this] { endpoint->serve(); }};
    }
    ~AsyncNode() {
        endpoint->stop();
        if (service.joinable()) service.join();
    }
    std::unique_ptr<net::Endpoint> endpoint;
    std::unique_ptr<net::Collectives> collectives;
    std::unique_ptr<net::Async> async;
    net::Handle memory;
    Thread service;
};

/// Makes a request until it is accepted.
template <class Try>
void until_accepted(Try&& attempt) {
    net::Submission made;
    while ((made = attempt()) == net::Submission::again) yield();
    ASSERT_EQ(made, net::Submission::accepted);
}

}  // namespace hiroba::conformance
