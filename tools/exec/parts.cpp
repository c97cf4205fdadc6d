// SPDX-License-Identifier: BSD-3-Clause
#include "tools/exec/parts.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "base/cpu_list.hpp"
#include "net/provider/this_host.hpp"
#include "tools/hosts/agent.hpp"
#include "tools/hosts/run_on_hosts.hpp"
#include "tools/line.hpp"
#include "tools/run/checks.hpp"
#include "tools/run/nodes.hpp"

namespace hiroba::tools {

namespace {

/// Launchers like to give each process one core; a user who asked for more threads should know.
void tell_narrow_masks(const std::vector<ExecCard>& cards, const std::string& threads) {
    const auto wanted = count_option("--threads", threads.empty() ? "1" : threads, threads_max);
    if (!wanted) return;
    for (std::size_t rank = 0; rank < cards.size(); ++rank) {
        const auto cpus = parse_cpu_list(cards[rank].cpus);
        if (!cpus || CPU_COUNT(&*cpus) == 0) continue;
        const auto count = static_cast<std::uint32_t>(CPU_COUNT(&*cpus));
        if (count >= *wanted) continue;
        return say_line(
            fmt::format("node {} has {} threads and may run on processors {} alone. "
                        "Give it more: mpirun --bind-to none, srun --cpus-per-task={}",
                        rank, *wanted, cards[rank].cpus, *wanted));
    }
}

}  // namespace

ExecCard card_of_this_process() {
    ExecCard card;
    card.build = own_build_id();
    card.host = net::this_host();
    char name[256] = {};
    ::gethostname(name, sizeof name - 1);
    card.host_name = name;
    card.cpus = cpu_list(own_cpus());
    return card;
}

Result<Leading> begin_leading(ExecCard& card) {
    const auto job = draw_job_key();
    if (!job) return job.error();
    auto rendezvous = Rendezvous::open({job->key, job->key_high});
    if (!rendezvous) return rendezvous.error();
    card.key = job->key;
    card.key_high = job->key_high;
    card.port = rendezvous->port();
    card.callers = reachable_addresses();
    return Leading{*job, std::move(*rendezvous)};
}

int lead(const RunOptions& options, Leading leading, const std::vector<ExecCard>& cards,
         Placement placement, const std::string& adopted_at) {
    auto request = request_for(options);
    if (!request) return report(request.error());
    request->agents_come = true;
    request->plan.nodes = static_cast<std::uint32_t>(cards.size());
    request->plan.adopted_at = adopted_at;
    request->hosts = std::move(placement.hosts);
    tell_narrow_masks(cards, options.threads);
    return run_request(std::move(*request), leading.job,
                       std::optional(std::move(leading.rendezvous)));
}

int follow(const RunOptions& options, const std::vector<ExecCard>& cards,
           const Placement& placement, std::uint32_t process, const std::string& adopted_at) {
    const std::uint32_t index = placement.host_of[process];
    const HostPlan& host = placement.hosts[index];
    const ExecCard& first = cards[0];
    StartupPacket packet;
    packet.host = host.name;
    packet.host_index = index;
    packet.job = {-1, first.key, first.key_high};
    packet.plan.nodes = static_cast<std::uint32_t>(cards.size());
    packet.plan.hosts = static_cast<std::uint32_t>(placement.hosts.size());
    packet.plan.first_rank = host.first_rank;
    packet.plan.local_nodes = host.nodes;
    packet.plan.spmd = options.spmd;
    packet.plan.adopted_at = adopted_at;
    packet.plan.command = options.command;
    packet.plan.node_cpus = host.node_cpus;
    packet.callers = first.callers;
    packet.port = first.port;
    describe_this_process(packet);
    return agent(std::move(packet));
}

}  // namespace hiroba::tools
