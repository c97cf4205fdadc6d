// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/rig.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "base/fatal.hpp"

namespace hiroba::tools::perf_parts {
namespace {

constexpr std::uint64_t drain_ns = 1'000'000'000;
constexpr double rounds_min = 5, rounds_max = 4'000;

/// Gives the node a core of its own where there are enough; a scheduler that puts two nodes on one
/// core for a while would be what is measured. False: there are not.
///
/// @param allowed  those the process may use
bool take_core(const cpu_set_t& allowed, std::uint32_t rank, std::uint32_t nodes) {
    cpu_set_t mine;
    if (static_cast<std::uint32_t>(CPU_COUNT(&allowed)) < nodes) return false;
    CPU_ZERO(&mine);
    for (int core = 0; core < CPU_SETSIZE; ++core) {
        if (CPU_ISSET(core, &allowed) && rank-- == 0) CPU_SET(core, &mine);
    }
    return sched_setaffinity(0, sizeof mine, &mine) == 0;
}

cpu_set_t cores_of_process() {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    sched_getaffinity(0, sizeof cores, &cores);
    return cores;
}

/// Which of the nodes of its machine a node is, and of how many.
struct PlaceOnMachine {
    std::uint32_t index = 0, nodes = 0;
};

/// Hosts that are namespaces or containers of one machine share its cores, so they count as one.
/// Collective.
Result<PlaceOnMachine> place_on_machine(const net::JobInfo& job, net::ControlChannel& control) {
    if (job.hosts == 1) return PlaceOnMachine{job.self.value, job.nodes};
    std::array<char, 36> boot{};
    if (std::FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "re")) {
        if (std::fread(boot.data(), 1, boot.size(), file) != boot.size()) boot = {};
        std::fclose(file);
    }
    const auto all = control.all_gather(std::as_bytes(std::span(boot)), -1);
    if (!all) return all.error();
    PlaceOnMachine place;
    for (std::uint32_t rank = 0; rank < job.nodes; ++rank) {
        if (all->bytes[rank] != all->bytes[job.self.value]) continue;
        place.index += rank < job.self.value;
        ++place.nodes;
    }
    return place;
}

/// Fewer executors than were asked for would be another measurement.
Result<void> check_executors(const PerfPlan& plan, const net::Limits& limits,
                             const net::JobInfo& job, net::ControlChannel& control) {
    if (plan.executors <= limits.queue_pairs) return {};
    // The first node says it; its end ends the job, and with it this wait.
    if (job.self.value != 0) static_cast<void>(control.all_gather({}, -1));
    const bool can_be_raised = std::string_view(limits.name) == "verbs";
    return Error{ErrorKind::usage,
                 fmt::format("--executors {}: provider {} has queues for {}. Change --executors "
                             "or --provider{}",
                             plan.executors, limits.name, limits.queue_pairs,
                             can_be_raised ? ", or raise HIROBA_VERBS_QUEUES" : "")};
}

}  // namespace

Rig::Rig(const net::JobInfo& job, const PerfPlan& plan)
    : plan_(plan),
      job_(job),
      control_(job),
      self_(job.self.value),
      all_cores_(cores_of_process()) {}

Result<std::unique_ptr<Rig>> Rig::open(const net::JobInfo& job, const PerfPlan& plan) {
    auto rig = std::unique_ptr<Rig>(new Rig(job, plan));
    const auto place = place_on_machine(job, rig->control_);
    if (!place) return place.error();
    if (take_core(rig->all_cores_, place->index, place->nodes * plan.threads))
        rig->spins_max_ = 2'000;
    auto endpoint = net::Endpoint::open(job, rig->control_);
    if (!endpoint) return endpoint.error();
    rig->endpoint_ = std::move(*endpoint);
    auto collectives = net::Collectives::make(*rig->endpoint_, job.job_key);
    if (!collectives) return collectives.error();
    rig->collectives_ = std::move(*collectives);
    auto board = net::kick::Board::create(
        *rig->endpoint_, job.job_key,
        net::kick::Board::llcm_bytes_default + net::kick::Mailboxes::llcm_bytes(*rig->endpoint_));
    if (!board) return board.error();
    rig->board_ = std::move(*board);
    const net::offload::Mode mode =
        plan.test->parks_consumer ? net::offload::Mode::always : net::Async::mode_of_setting();
    if (auto taken = check_executors(plan, rig->endpoint_->provider().limits(), job, rig->control_);
        !taken)
        return taken.error();
    rig->async_ =
        std::make_unique<net::Async>(*rig->endpoint_, mode, plan.executors, plan.executors);
    auto landing = rig->async_->allocate(area_bytes);
    if (!landing) return landing.error();
    auto source = rig->async_->allocate(area_bytes);
    if (!source) return source.error();
    rig->landing_ = *landing;
    rig->source_ = *source;
    return rig;
}

Result<void> Rig::connect() {
    if (auto connected = endpoint_->connect(); !connected) return connected;
    async_->attach();
    collectives_->attach();
    board_->attach();
    if (plan_.test->parks_consumer) return {};
    service_ = std::thread{[this] {
        use_all_cores();
        endpoint_->serve();
    }};
    return {};
}

void Rig::use_all_cores() const { sched_setaffinity(0, sizeof all_cores_, &all_cores_); }

Rig::~Rig() {
    if (!service_.joinable()) return;
    endpoint_->drain(drain_ns);
    endpoint_->stop();
    service_.join();
}

void Rig::leave() {
    if (ending_) ending_();
    endpoint_->note_job_over();
    endpoint_->drain(drain_ns);
    control_.report_participation(0, 0);
}

std::byte* Rig::mapped_landing(NodeId node) { return async_->mapped(landing_, node); }

double Rig::longest(double mine) {
    double all[] = {mine};
    collectives_->all_reduce(std::span<double>(all),
                             [](double a, double b) { return a > b ? a : b; });
    return all[0];
}

bool Rig::all_agree(bool mine) { return longest(mine ? 0 : 1) == 0; }

Measured Rig::alternate(const Batch& floor, const Batch& test, std::uint64_t unit,
                        std::uint64_t iterations_max, const Batch& authenticated_floor,
                        double batch_ns) {
    // As many iterations as make a batch long against the clock that times it.
    const auto timed = [&](const Batch& batch, std::uint64_t iterations) {
        collectives_->barrier();
        const std::uint64_t before = now_ns();
        batch(iterations);
        return longest(static_cast<double>(now_ns() - before));
    };
    std::uint64_t iterations = unit;
    double both_ns = 0;
    while (true) {
        const double test_ns = timed(test, iterations);
        both_ns = test_ns + timed(floor, iterations) * (authenticated_floor ? 2 : 1);
        if (test_ns >= batch_ns || iterations * 2 > iterations_max) break;
        iterations *= 2;
    }
    const double budget = static_cast<double>(plan_.run_ns) / std::max(both_ns, 1.0);
    const auto rounds = static_cast<std::size_t>(std::clamp(budget, rounds_min, rounds_max));
    Measured measured;
    for (std::size_t round = 0; round < rounds; ++round) {
        collectives_->barrier();
        measured.floor.push_back(floor(iterations));
        collectives_->barrier();
        measured.test.push_back(test(iterations));
        if (!authenticated_floor) continue;
        collectives_->barrier();
        measured.authenticated_floor.push_back(authenticated_floor(iterations));
    }
    return measured;
}

}  // namespace hiroba::tools::perf_parts
