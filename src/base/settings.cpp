// SPDX-License-Identifier: BSD-3-Clause
// Role: the table of settings and the parsers of their values.
// Invariant: alphabetical; each value, default included, passes check_settings(). At most 20 are
// usual.
#include "base/settings.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "base/fatal.hpp"

namespace hiroba {
namespace {

constexpr std::string_view prefix = "HIROBA_";
constexpr std::string_view internal_prefix = "HIROBA_JOB_";

constexpr bool on_request = false;  ///< Setting::is_usual

constexpr Setting table[] = {
    {"HIROBA_ACP_DEVICES", "",
     "devices of ACP's colors 1 to 3, with commas between: network device, address or subnet (udp, "
     "auto), RDMA device or its port (verbs, shm+verbs); color 0 is the job's device",
     "text", on_request},
    {"HIROBA_ACP_STARTER", "64K", "starter memory of each rank of an ACP program",
     "size from 1K to 32G", on_request},
    {"HIROBA_ATOMICS", "acq_rel", "what an atomic operation orders: all memory, or itself alone",
     "acq_rel|relaxed|seq_cst"},
    {"HIROBA_CORE", "stacks",
     "what of global memory a core file holds: stacks, or all that the node has of it",
     "stacks|memory"},
    {"HIROBA_DEARER_CALL", "0",
     "microseconds that each system call on pages takes longer, for tests", "count", on_request},
    {"HIROBA_DEARER_FAULT", "0", "microseconds that each page fault takes longer, for tests",
     "count", on_request},
    {"HIROBA_ENCRYPT", "off",
     "whether datagrams of provider udp (and auto, between hosts) are encrypted; needs OpenSSL 3",
     "on|off"},
    {"HIROBA_EXCLUSIVE", "on",
     "what only one node uses is neither compared nor told of; off: as everything else", "on|off",
     on_request},
    {"HIROBA_FAULT_ENGINE", "auto", "how accesses to shared pages are noticed",
     "auto|uffd|mprotect"},
    {"HIROBA_FOLLOW", "on",
     "synchronizations bring what was used behind them before; off: faults bring it", "on|off",
     on_request},
    {"HIROBA_GAS", "1G",
     "relocatable addresses of each rank's own allocations, and of collective ones", "size",
     on_request},
    {"HIROBA_GAS_DIRECTORY", "auto",
     "how ranks ask where a page is; auto: one-sidedly where atomics are the CPU's own",
     "auto|one_sided|message", on_request},
    {"HIROBA_GAS_PAGE", "4K", "bytes that move together in the relocatable space, a power of two",
     "size from 4K to 2M", on_request},
    {"HIROBA_GAS_SPARE", "256M", "memory each rank keeps of pages that have moved away", "size",
     on_request},
    {"HIROBA_HEAP", "16G", "address space of one node's heap arena; memory is used as touched",
     "size"},
    {"HIROBA_HOST_TIMEOUT", "30", "seconds in which the agents of all hosts must have come",
     "count"},
    {"HIROBA_KEEP_FREED", "32M",
     "freed memory that a node keeps for reuse, up to 32 times that while it is used within a "
     "second; what is more goes back to the machine",
     "size", on_request},
    {"HIROBA_LOG", "silent",
     "what to tell on stderr: silent|info|debug|trace, then layer=level; example: info,dsm=debug",
     "text"},
    {"HIROBA_LOSS_GRACE", "0",
     "milliseconds that nodes go on after one of them was lost, to see their requests fail",
     "count", on_request},
    {"HIROBA_MEMORY", "auto",
     "memory one node may use for both copies of what it allocates; auto: machine, control group",
     "auto|size"},
    {"HIROBA_NET", "",
     "network device, address or subnet for provider udp: eth1 or 10.7.0.0/16, of single hosts "
     "a:eth0,b:ib0; unset: what leads to the peers",
     "text"},
    {"HIROBA_NEWS", "auto",
     "what carries news at forks and barriers; auto: windows where nodes share memory",
     "auto|message|window", on_request},
    {"HIROBA_NOTICES", "1024", "write notices a signature holds before it forgets the oldest",
     "count from 1 to 1500", on_request},
    {"HIROBA_OFFLOAD", "auto", "whether requests are handed to the progress thread",
     "auto|always|never", on_request},
    {"HIROBA_PEER_TIMEOUT", "30", "seconds of a node's silence that others bear; 0: any", "count"},
    {"HIROBA_PORTS", "",
     "ports A-B on which a job over hosts listens: one of TCP at the launcher, two of UDP a node; "
     "unset: any",
     "text"},
    {"HIROBA_PROVIDER", "shm",
     "transport between the nodes; auto: shm within a host, udp beyond; shm+ucx, shm+verbs: as "
     "auto",
     "shm|udp|auto|ucx|shm+ucx|verbs|shm+verbs"},
    {"HIROBA_RACE", "report", "what to do when two nodes write the same bytes",
     "off|report|all|abort"},
    {"HIROBA_RECORD", "", "file for what each thread does, to be read by hiroba report", "text"},
    {"HIROBA_RECORD_SIZE", "256M", "the most that a node records; then some phases are left out",
     "size from 1M to 64G"},
    {"HIROBA_REGIONS", "auto",
     "where parallel regions run; auto: on all nodes, or on the first node alone those that take "
     "less time there; spread: on all nodes; turns: now so, now so, for tests",
     "spread|auto|turns"},
    {"HIROBA_SSH", "ssh -T -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=10",
     "command that runs another command on a host: it is given the host and the command's words",
     "text"},
    {"HIROBA_STACK", "64M", "address space of one thread's stack and thread-local data", "size"},
    {"HIROBA_STATS", "0",
     "counters at the end: a table by node; full: by synchronization too; json: all into a file",
     "0|1|summary|full|json:FILE"},
    {"HIROBA_STILL", "60",
     "seconds for which nothing of the job has run before a line says where its threads wait; 0: "
     "none does",
     "count", on_request},
    {"HIROBA_SYSTEM_CALLS", "auto",
     "whether calls that libraries make inside themselves get their buffers pinned too",
     "auto|examined|interposed", on_request},
    {"HIROBA_TRACE", "0", "keep each thread's last 64 events and print them when a node stops",
     "0|1", on_request},
    {"HIROBA_UDP_DATAGRAM", "16368", "bytes of a datagram at most, where the way takes as many",
     "size", on_request},
    {"HIROBA_UDP_DELAY", "200", "microseconds a datagram is held back at most, for tests", "count",
     on_request},
    {"HIROBA_UDP_DUPLICATE", "0", "percent of datagrams doubled, each way, for tests",
     "count from 0 to 100", on_request},
    {"HIROBA_UDP_LOSS", "0", "percent of datagrams lost, each way, for tests",
     "count from 0 to 100", on_request},
    {"HIROBA_UDP_REORDER", "0", "percent of datagrams held back, each way, for tests",
     "count from 0 to 100", on_request},
    {"HIROBA_UDP_SEED", "1", "what the ill luck of datagrams is drawn from", "count", on_request},
    {"HIROBA_VERBS_BREAK", "0", "requests after which a connection breaks, for tests; 0: none does",
     "count", on_request},
    {"HIROBA_VERBS_DEVICE", "", "RDMA device of provider verbs, mlx5_0, or its port, mlx5_0:2",
     "text"},
    {"HIROBA_VERBS_QUEUES", "4",
     "completion queues of provider verbs, with queue pairs of their own, among which threads are "
     "dealt out",
     "count from 1 to 16", on_request},
    {"HIROBA_WAIT_TIMEOUT", "0",
     "seconds that a wait on net.hpp or kick.hpp, or in a collective call of gas.hpp, may take "
     "before it ends the job; 0: any",
     "count", on_request},
};

const Setting* find(std::string_view name) noexcept {
    const auto found =
        std::ranges::find_if(table, [&](const Setting& s) { return s.name == name; });
    return found == std::end(table) ? nullptr : found;
}

/// True when `value` is one of "a|b|word:FILE".
bool is_choice(std::string_view choices, std::string_view value) noexcept {
    while (true) {
        const std::size_t bar = choices.find('|');
        const std::string_view choice = choices.substr(0, bar);
        if (choice == value) return true;
        const std::size_t named = choice.find("FILE");  // "word:FILE": any name behind the colon
        if (named != std::string_view::npos && value.size() > named &&
            value.substr(0, named) == choice.substr(0, named)) {
            return true;
        }
        if (bar == std::string_view::npos) return false;
        choices.remove_prefix(bar + 1);
    }
}

std::optional<unsigned> unit_shift(std::string_view suffix) noexcept {
    if (suffix.empty()) return 0;
    if (suffix.size() > 1) return std::nullopt;
    switch (suffix[0]) {
        case 'K':
        case 'k': return 10;
        case 'M':
        case 'm': return 20;
        case 'G':
        case 'g': return 30;
        case 'T':
        case 't': return 40;
        default: return std::nullopt;
    }
}

/// Splits the leading digits off `text`.
std::string_view take_digits(std::string_view& text) noexcept {
    const auto end = std::min(text.find_first_not_of("0123456789"), text.size());
    const std::string_view digits = text.substr(0, end);
    text.remove_prefix(end);
    return digits;
}

/// The number `digits` stands for; nothing above 19 digits, which is where 64 bits end.
std::optional<std::uint64_t> whole_number(std::string_view digits) noexcept {
    if (digits.empty() || digits.size() > 19) return std::nullopt;
    std::uint64_t value = 0;
    for (const char digit : digits) value = value * 10 + static_cast<std::uint64_t>(digit - '0');
    return value;
}

std::optional<std::uint64_t> size_of_text(std::string_view text) noexcept {
    const auto whole = whole_number(take_digits(text));
    if (!whole) return std::nullopt;
    std::string_view fraction;
    if (text.starts_with('.')) {
        text.remove_prefix(1);
        fraction = take_digits(text);
        if (fraction.empty()) return std::nullopt;
    }
    const auto shift = unit_shift(text);
    if (!shift || (*shift == 0 && !fraction.empty())) return std::nullopt;
    if (*whole > (UINT64_MAX >> *shift)) return std::nullopt;

    // Digits below a byte's worth change nothing; nine of them keep the product in 64 bits.
    std::uint64_t numerator = 0;
    std::uint64_t denominator = 1;
    for (const char digit : fraction.substr(0, 9)) {
        numerator = numerator * 10 + static_cast<std::uint64_t>(digit - '0');
        denominator *= 10;
    }
    const auto part = static_cast<unsigned __int128>(numerator) << *shift;
    const auto bytes = *whole << *shift;
    return bytes + static_cast<std::uint64_t>(part / denominator);
}

/// A number "from A to B", or any; a size is 1 at least.
Result<void> check_number(const Setting& setting_of, std::string_view value) {
    const Result<std::uint64_t> number = parse_size(value, setting_of.name);
    if (!number) return number.error();
    const std::string_view values = setting_of.values;
    constexpr std::string_view from = " from ", to = " to ";
    const std::size_t first = values.find(from);
    if (first == values.npos) {
        if (*number != 0 || values != "size") return {};
        return Error{ErrorKind::usage, std::string(setting_of.name) + "=0: must be at least 1"};
    }
    const std::size_t last = values.find(to, first);
    const auto least = size_of_text(values.substr(first + from.size(), last - first - from.size()));
    const auto most = size_of_text(values.substr(last + to.size()));
    if (*number >= *least && *number <= *most) return {};
    return Error{ErrorKind::usage, std::string(setting_of.name) + "=" + std::string(value) +
                                       ": must be a " + setting_of.values};
}

Result<void> check(const Setting& setting_of, std::string_view value) {
    const std::string_view values = setting_of.values;
    if (values == "text") return {};
    if (values == "auto|size") {
        if (value == "auto") return {};
        const Result<std::uint64_t> number = parse_size(value, setting_of.name);
        return number ? Result<void>{} : Result<void>{number.error()};
    }
    if (values.starts_with("size") || values.starts_with("count"))
        return check_number(setting_of, value);
    if (is_choice(values, value)) return {};
    return Error{ErrorKind::usage, std::string(setting_of.name) + "=" + std::string(value) +
                                       ": must be one of " + setting_of.values};
}

}  // namespace

std::span<const Setting> all_settings() noexcept { return table; }

std::string_view setting(const char* name) noexcept {
    const Setting* const known = find(name);
    HIROBA_INVARIANT(known != nullptr, "setting %s is not in the table", name);
    const char* const value = std::getenv(name);
    return value != nullptr && *value != 0 ? value : known->default_value;
}

Result<std::uint64_t> setting_number(const char* name) { return parse_size(setting(name), name); }

Result<std::uint64_t> parse_size(std::string_view text, const char* what) {
    if (const auto bytes = size_of_text(text)) return *bytes;
    return Error{ErrorKind::usage, std::string(what) + "=" + std::string(text) +
                                       ": not a size (examples: 64, 16K, 1.5G; below 2^64)"};
}

Result<void> check_settings() {
    for (const Setting& known : table) {
        if (auto checked = check(known, setting(known.name)); !checked) return checked;
    }
    return {};
}

std::string unknown_settings() {
    std::string names;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        const std::string_view name = text.substr(0, text.find('='));
        if (!name.starts_with(prefix) || name.starts_with(internal_prefix)) continue;
        if (find(name) != nullptr) continue;
        if (!names.empty()) names += ' ';
        names += name;
    }
    return names;
}

}  // namespace hiroba
