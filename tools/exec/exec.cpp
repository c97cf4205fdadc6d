// SPDX-License-Identifier: BSD-3-Clause
#include "tools/exec/exec.hpp"

#include <errno.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fatal.hpp"
#include "net/bootstrap/process_manager.hpp"
#include "tools/become.hpp"
#include "tools/exec/parts.hpp"
#include "tools/exec/placement.hpp"
#include "tools/hosts/run_on_hosts.hpp"
#include "tools/line.hpp"
#include "tools/run/checks.hpp"
#include "tools/run/nodes.hpp"
#include "tools/run/program.hpp"

namespace hiroba::tools {

namespace {

/// The status with which this process ends, as all do, which have found the same.
int refuse(const Error& error, bool speaks) {
    if (speaks) say_line(error.text);
    net::await_end_of_all(speaks, 1'000);
    return status_of(error);
}

/// A program that hiroba takes over is one process, whichever of its nodes a thread runs on: to an
/// MPI library in it, it is alone. So it must not take what the launcher told this process.
void forget_launcher() {
    constexpr std::string_view prefixes[] = {
        "PMIX_",         "PMI_",          "MPI_LOCAL",        "HYDI_",
        "OMPI_COMM_",    "OMPI_APP_",     "OMPI_UNIVERSE_",   "OMPI_MCA_ess",
        "OMPI_MCA_orte", "OMPI_MCA_pmix", "OMPI_NUM_APP_CTX", "OMPI_FIRST_RANKS"};
    std::vector<std::string> names;
    for (char** entry = environ; *entry; ++entry) {
        const std::string_view text = *entry;
        if (std::ranges::any_of(prefixes, [text](auto each) { return text.starts_with(each); }))
            names.emplace_back(text.substr(0, text.find('=')));
    }
    for (const std::string& name : names) ::unsetenv(name.c_str());
}

int take_part(const RunOptions& options, net::ProcessManager& client) {
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

    forget_launcher();
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
    const auto get = [](const char* name) -> const char* { return ::getenv(name); };
    // What is wrong is wrong in every process: the first says so.
    const bool speaks = net::is_first_of_launcher(get);
    const std::string lost = net::why_alone(get);
    if (!lost.empty()) return refuse({ErrorKind::environment, lost}, speaks);
    const bool launched = ::getenv("PMIX_RANK") != nullptr || ::getenv("PMI_FD") != nullptr;
    if (!launched) {
        RunOptions alone = options;
        alone.nodes = "1";
        return run(alone);
    }
    // The launcher's daemon is the parent: without it the job would not be ended.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    auto ready = prepare_command(options);
    if (ready)
        if (const auto request = request_for(options); !request) ready = request.error();
    if (!ready) return refuse(ready.error(), speaks);
    // A program of our own libraries joins by itself, as the process that the launcher has started.
    if (const auto file = find_program(options.command[0]);
        file && !spmd_library_of(*file).empty()) {
        ::execv(file->c_str(), pointers_to(options.command).data());
        return refuse({ErrorKind::environment, *file + " cannot be executed: " + ::strerror(errno)},
                      speaks);
    }
    auto client = net::ProcessManager::connect();
    if (!client) return refuse(client.error(), speaks);
    if ((*client)->processes() > nodes_max)
        return refuse({ErrorKind::usage,
                       fmt::format("{} processes would be {} nodes; at most {}. Lower -n",
                                   (*client)->processes(), (*client)->processes(), nodes_max)},
                      (*client)->rank() == 0);
    return take_part(options, **client);
}

}  // namespace hiroba::tools
