// SPDX-License-Identifier: BSD-3-Clause
// Role: the C++ face of the relocatable space: puts one rank together. All else is
// gas::RelocatableSpace's.
#include <unistd.h>

#include <climits>
#include <thread>

#include "base/fatal.hpp"
#include "base/service_thread.hpp"
#include "base/settings.hpp"
#include "base/trace.hpp"
#include "gas/relocatable/relocatable_space.hpp"
#include "hiroba/gas.hpp"
#include "net/bootstrap/joined_job.hpp"
#include "net/loss_watch.hpp"

namespace hiroba::gas {
namespace {

/// How long a rank that leaves looks after what it sent.
constexpr std::uint64_t drain_ns = 1'000'000'000;

/// The layers that a space stands on. The space keeps them until its own end.
struct Below {
    net::JobInfo job;
    std::unique_ptr<net::ControlChannel> control;
    std::unique_ptr<net::Endpoint> endpoint;
    std::unique_ptr<net::Collectives> collectives;
    std::unique_ptr<net::Async> async;
    std::unique_ptr<net::LossWatch> losses;
    std::thread service;

    Result<void> open();
    Result<void> begin(RelocatableSpace& space);
    void end(RelocatableSpace& space);
};

Result<void> Below::open() {
    if (auto valid = check_settings(); !valid) return valid;
    auto info = net::join_job_info();
    if (!info) return info.error();
    job = *info;
    char host[HOST_NAME_MAX + 1] = {};
    ::gethostname(host, sizeof host - 1);
    set_identity(job.self.value, host);
    set_trace(setting("HIROBA_TRACE") == "1");
    control = std::make_unique<net::ControlChannel>(job);
    auto opened = net::Endpoint::open(job, *control);
    if (!opened) return opened.error();
    endpoint = std::move(*opened);
    auto made = net::Collectives::make(*endpoint, job.job_key);
    if (!made) return made.error();
    collectives = std::move(*made);
    async = std::make_unique<net::Async>(*endpoint, net::Async::mode_of_setting());
    return {};
}

Result<void> Below::begin(RelocatableSpace& space) {
    if (auto connected = endpoint->connect(); !connected) return connected;
    async->attach();
    collectives->attach();
    service = start_service_thread("serves other nodes", [this] { endpoint->serve(); });
    space.attach();
    if (auto met = control->barrier(); !met) return met;
    auto watch = net::LossWatch::start(job, endpoint->provider(),
                                       [&space](NodeId dead) { space.lose(dead); });
    if (!watch) return watch.error();
    losses = std::move(*watch);
    return {};
}

void Below::end(RelocatableSpace& space) {
    space.leave_together();
    losses.reset();
    control->report_leaving();
    endpoint->drain(drain_ns);
    endpoint->stop();
    service.join();
}

Result<std::unique_ptr<space>> join() {
    auto below = std::make_shared<Below>();
    if (auto opened = below->open(); !opened) return opened.error();
    const auto options = SpaceOptions::of_settings(below->endpoint->provider().limits());
    if (!options) return options.error();
    auto made = RelocatableSpace::make(*below->async, *below->collectives, *options);
    if (!made) return made.error();
    if (auto begun = below->begin(**made); !begun) return begun.error();
    (*made)->on_leave([below, left = made->get()] { below->end(*left); });
    return std::unique_ptr<space>(std::move(*made));
}

}  // namespace

std::unique_ptr<space> space::open(std::string* why) {
    auto joined = join();
    if (joined) return std::move(*joined);
    if (why != nullptr) *why = joined.error().text;
    return nullptr;
}

}  // namespace hiroba::gas
