// SPDX-License-Identifier: BSD-3-Clause
// Role: makes the network of a job's node: everything that a test does otherwise.
#include <unistd.h>

#include <climits>
#include <thread>

#include "abi/net/network.hpp"
#include "base/fatal.hpp"
#include "base/service_thread.hpp"
#include "base/settings.hpp"
#include "base/trace.hpp"
#include "net/bootstrap/joined_job.hpp"
#include "net/loss_watch.hpp"

namespace hiroba::net {
namespace {

/// The job that the network belongs to. The network keeps it until its own end.
struct Job {
    JobInfo info;
    std::unique_ptr<ControlChannel> control;
    Endpoint* endpoint = nullptr;
    std::unique_ptr<LossWatch> losses;
    std::thread service;
    std::function<void(NodeId)> lost;  ///< beside the provider, is told of nodes that die

    Result<void> meet() {
        if (auto met = control->barrier(); !met) return met;
        auto watch = LossWatch::start(info, endpoint->provider(), lost);
        if (!watch) return watch.error();
        losses = std::move(*watch);
        return {};
    }
};

Surroundings surroundings_of(const std::shared_ptr<Job>& job) {
    return {.start =
                [job](std::function<void()> body) {
                    job->service = start_service_thread("serves other nodes", std::move(body));
                },
            .join = [job] { job->service.join(); },
            .meet = [job] { return job->meet(); },
            .leave =
                [job] {
                    job->losses.reset();
                    job->control->report_leaving();
                },
            .job_key = job->info.job_key};
}

Result<std::unique_ptr<NetworkOver>> join_job(const Options& options) {
    if (auto valid = check_settings(); !valid) return valid.error();
    auto info = join_job_info();
    if (!info) return info.error();
    const auto job = std::make_shared<Job>();
    job->info = *info;
    char host[HOST_NAME_MAX + 1] = {};
    ::gethostname(host, sizeof host - 1);
    set_identity(info->self.value, host);
    set_trace(setting("HIROBA_TRACE") == "1");
    job->control = std::make_unique<ControlChannel>(job->info);
    auto endpoint = Endpoint::open(job->info, *job->control);
    if (!endpoint) return endpoint.error();
    job->endpoint = endpoint->get();
    auto made = NetworkOver::make(std::move(*endpoint), options, surroundings_of(job));
    // The watch ends before the network does.
    if (made) job->lost = [network = made->get()](NodeId node) { network->lose(node); };
    return made;
}

}  // namespace

std::unique_ptr<Network> Network::open(std::string* why, const Options& options) {
    auto joined = join_job(options);
    if (joined) return std::move(*joined);
    if (why != nullptr) *why = joined.error().text;
    return nullptr;
}

}  // namespace hiroba::net
