// SPDX-License-Identifier: BSD-3-Clause
// Role: a node of a test with everything this layer has: requests, collectives, a service thread;
// by the layer's own classes, or by the face that programs have of it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "abi/net/network.hpp"
#include "conformance/process_job.hpp"
#include "conformance/thread.hpp"
#include "net/async.hpp"
#include "net/collectives.hpp"

namespace hiroba::conformance {

/// One connected node with a service thread.
struct AsyncNode {
    AsyncNode(Rig& rig, net::offload::Mode mode)
        : endpoint(rig.open()),
          collectives(std::move(*net::Collectives::make(*endpoint, 7))),
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

/// The network of a test's node, whose service thread is the test's.
inline std::unique_ptr<net::Network> network_over(std::unique_ptr<net::Endpoint> endpoint,
                                                  const net::Options& options,
                                                  std::uint64_t job_key = 7) {
    const auto service = std::make_shared<Thread>();
    auto made = net::NetworkOver::make(
        std::move(endpoint), options,
        {.start = [service](std::function<void()> body) { *service = Thread{std::move(body)}; },
         .join = [service] { service->join(); },
         .job_key = job_key});
    EXPECT_TRUE(made) << made.error().text;
    return std::move(*made);
}

/// The same by hiroba/net.hpp, under the names that AsyncNode's members have.
struct FaceNode {
    FaceNode(Rig& rig, net::Offload offload, std::uint32_t queues)
        : made(network_over(rig.open(), {offload, queues, queues})),
          memory(*made->allocate(1 << 20)),
          async(std::make_unique<Requests>(Requests{*made})),
          collectives(made.get()),
          endpoint(std::make_unique<Waits>(Waits{*made})) {}
    /// Ends the thread that may still be in a handler before what handlers use goes.
    ~FaceNode() { made.reset(); }
    void connect() {
        std::string why;
        ASSERT_TRUE(made->connect(&why)) << why;
    }
    struct Requests {
        net::Network& network;
        auto try_read(const net::ReadParams& p) { return network.try_read_async(p); }
        auto try_write(const net::WriteParams& p) { return network.try_write_async(p); }
        auto try_atomic(const net::AtomicParams& p) { return network.try_atomic_async(p); }
        auto try_message(const net::MessageParams& p) { return network.try_message_async(p); }
        auto try_call(const net::CallParams& p) { return network.try_call_async(p); }
        void on(net::ActiveId id, net::ActiveHandler handler, void* context) {
            network.on(id, handler, context);
        }
        auto register_local(MutableBytes bytes) { return network.register_local(bytes); }
        MutableBytes local(net::Handle handle) { return network.local(handle); }
    };
    struct Waits {
        net::Network& network;
        template <class Predicate>
        void wait_until(Predicate&& predicate) {
            network.wait_until(predicate);
        }
    };
    std::unique_ptr<net::Network> made;
    net::Handle memory;
    std::unique_ptr<Requests> async;
    net::Network* collectives;
    std::unique_ptr<Waits> endpoint;
};

/// Runs body(node) on the layer and on its face, with every way a request can take. The body
/// connects the node.
template <class Body>
void on_every_surface(Rig& rig, Body&& body) {
    using net::offload::Mode;
    for (const Mode mode : {Mode::automatic, Mode::always, Mode::never}) {
        AsyncNode node{rig, mode};
        body(node);
    }
    using net::Offload;
    for (const Offload offload : {Offload::automatic, Offload::always, Offload::never}) {
        FaceNode node{rig, offload, offload == Offload::always ? 3u : 1u};
        body(node);
    }
}

/// The same for what does not depend on the way of requests.
template <class Body>
void on_both_surfaces(Rig& rig, Body&& body) {
    {
        AsyncNode node{rig, net::offload::Mode::automatic};
        body(node);
    }
    FaceNode node{rig, net::Offload::automatic, 1};
    body(node);
}

/// Makes a request until it is accepted.
template <class Try>
void until_accepted(Try&& attempt) {
    net::Submission made;
    while ((made = attempt()) == net::Submission::again) yield();
    ASSERT_EQ(made, net::Submission::accepted);
}

}  // namespace hiroba::conformance
