// SPDX-License-Identifier: BSD-3-Clause
#include "tools/exec/exec.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/cpu_list.hpp"
#include "base/fatal.hpp"
#include "net/provider/this_host.hpp"
#include "tools/exec/placement.hpp"
#include "tools/exec/pmix_client.hpp"
#include "tools/hosts/agent.hpp"
#include "tools/hosts/run_on_hosts.hpp"
#include "tools/line.hpp"
#include "tools/run/checks.hpp"
#include "tools/run/nodes.hpp"

namespace hiroba::tools {

namespace {

/// What process 0 keeps from before the exchange.
struct Leading {
    JobIdentity job;
    std::optional<Rendezvous> rendezvous;
};

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

/// Ends a process of several that all have found the same, of which one `speaks`. The launcher ends
/// the others with the first whose status is not 0, and may leave unread what an ended process has
/// written: so the silent ones wait, to be ended with the one that speaks, and that one waits until
/// its line was taken.
int refuse(const Error& error, bool speaks) {
    constexpr int step_us = 2'000, steps = 500;
    if (speaks) say_line(error.text);
    struct stat kind {};
    const bool is_pipe = ::fstat(STDERR_FILENO, &kind) == 0 && S_ISFIFO(kind.st_mode);
    for (int i = 0; i < steps; ++i) {
        int unread = 0;
        if (speaks && (!is_pipe || ::ioctl(STDERR_FILENO, FIONREAD, &unread) != 0 || unread == 0))
            break;
        ::usleep(step_us);
    }
    return status_of(error);
}

int lead(const RunOptions& options, Leading leading, const std::vector<ExecCard>& cards,
         Placement placement) {
    auto request = request_for(options);
    if (!request) return report(request.error());
    request->agents_come = true;
    request->plan.nodes = static_cast<std::uint32_t>(cards.size());
    request->hosts = std::move(placement.hosts);
    tell_narrow_masks(cards, options.threads);
    return run_request(std::move(*request), leading.job, std::move(leading.rendezvous));
}

int follow(const RunOptions& options, const std::vector<ExecCard>& cards,
           const Placement& placement, std::uint32_t process) {
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
    packet.plan.command = options.command;
    packet.plan.node_cpus = host.node_cpus;
    packet.callers = first.callers;
    packet.port = first.port;
    describe_this_process(packet);
    return agent(std::move(packet));
}

int take_part(const RunOptions& options, PmixClient& client) {
    ExecCard mine = card_of_this_process();
    std::optional<Leading> leading;
    if (client.rank() == 0) {
        auto begun = begin_leading(mine);
        if (!begun) return report(begun.error());
        leading.emplace(std::move(*begun));
    }
    const auto given = client.exchange(write_card(mine));
    if (!given) return report(given.error());
    std::vector<ExecCard> cards;
    for (const auto& bytes : *given) {
        auto card = read_card(bytes);
        if (!card) return refuse(card.error(), client.rank() == 0);
        cards.push_back(std::move(*card));
    }
    auto placement = place(cards);
    if (!placement) return refuse(placement.error(), client.rank() == 0);

    int status = 0;
    if (leading)
        status = lead(options, std::move(*leading), cards, std::move(*placement));
    else if (placement->leads(client.rank()))
        status = follow(options, cards, *placement, client.rank());
    // The launcher ends all processes when one leaves early, and output on its way is lost.
    if (const auto over = client.barrier(); !over && status == 0) return report(over.error());
    // An agent's failure has been said by process 0, which ends with its status.
    return leading ? status : 0;
}

}  // namespace

int exec(const RunOptions& options) {
    if (!is_pmix_process()) {
        const auto get = [](const char* name) -> const char* { return ::getenv(name); };
        const std::string lost = why_alone(get);
        // Every process finds the same; the first says so.
        if (!lost.empty())
            return refuse({ErrorKind::environment, lost}, is_first_of_singletons(get));
        RunOptions alone = options;
        alone.nodes = "1";
        return run(alone);
    }
    // The launcher's daemon is the parent: without it the job would not be ended.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const char* const rank = ::getenv("PMIX_RANK");
    const bool speaks = rank != nullptr && std::string_view(rank) == "0";
    // The same words are wrong in every process: one says so.
    auto ready = prepare_command(options);
    if (ready)
        if (const auto request = request_for(options); !request) ready = request.error();
    if (!ready) return refuse(ready.error(), speaks);
    auto client = PmixClient::connect();
    if (!client) return refuse(client.error(), speaks);
    if ((*client)->processes() > nodes_max)
        return refuse({ErrorKind::usage,
                       fmt::format("{} processes would be {} nodes; at most {}. Lower -n",
                                   (*client)->processes(), (*client)->processes(), nodes_max)},
                      (*client)->rank() == 0);
    return take_part(options, **client);
}

}  // namespace hiroba::tools
