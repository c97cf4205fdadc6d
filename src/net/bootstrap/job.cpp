// SPDX-License-Identifier: BSD-3-Clause
// Role: reads what the launcher put into the environment, and takes it out again.
// Invariant: the names here are those that tools/run/environment.cpp sets.
#include "net/bootstrap/job.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include <array>
#include <cstring>
#include <string_view>

#include "base/own_descriptors.hpp"
#include "net/bootstrap/control_packet.hpp"

namespace hiroba::net {

namespace {

constexpr std::string_view job_prefix = "HIROBA_JOB_";
constexpr std::string_view saved_prefix = "HIROBA_JOB_SAVED_";
constexpr std::array<std::string_view, 4> replaced = {
    "LD_PRELOAD=", "LD_BIND_NOW=", "GLIBC_TUNABLES=", "HIROBA_HEAP="};

Result<std::uint64_t> job_number(const char* name, int base, std::uint64_t max) {
    const char* const text = ::getenv(name);
    if (!text)
        return Error{ErrorKind::usage, std::string(name) +
                                           " is missing though HIROBA_JOB_RANK is set: start the "
                                           "program with `hiroba run`"};
    char* end = nullptr;
    errno = 0;
    const unsigned long long value = ::strtoull(text, &end, base);
    if (errno != 0 || end == text || *end != '\0' || *text == '-' || value > max)
        return Error{ErrorKind::usage, std::string(name) + "=" + text + " is no number from 0 to " +
                                           std::to_string(max) +
                                           ": it is set by `hiroba run` alone"};
    return std::uint64_t{value};
}

}  // namespace

Result<JobInfo> read_job_info() {
    JobInfo job;
    if (!::getenv("HIROBA_JOB_RANK")) return job;
    constexpr std::uint64_t number_max = 1u << 20;
    const auto nodes = job_number("HIROBA_JOB_NODES", 10, number_max);
    if (!nodes) return nodes.error();
    const auto rank = job_number("HIROBA_JOB_RANK", 10, *nodes == 0 ? 0 : *nodes - 1);
    if (!rank) return rank.error();
    const auto threads = job_number("HIROBA_JOB_THREADS", 10, number_max);
    if (!threads) return threads.error();
    const auto fd = job_number("HIROBA_JOB_CONTROL_FD", 10, number_max);
    if (!fd) return fd.error();
    const auto key = job_number("HIROBA_JOB_KEY", 16, ~std::uint64_t{0});
    if (!key) return key.error();

    if (::getenv("HIROBA_JOB_KEY_HIGH")) {
        auto high = job_number("HIROBA_JOB_KEY_HIGH", 16, ~std::uint64_t{0});
        if (!high) return high.error();
        job.job_key_high = *high;
    }

    if (::getenv("HIROBA_JOB_HOSTS")) {
        auto hosts = job_number("HIROBA_JOB_HOSTS", 10, number_max);
        if (!hosts) return hosts.error();
        job.hosts = static_cast<std::uint32_t>(*hosts);
    }
    // Filled up to equal length on every host.
    if (const char* const network = ::getenv("HIROBA_JOB_NETWORK"))
        job.network = std::string(network).substr(0, std::string_view(network).find('_'));

    job.self = NodeId{static_cast<std::uint32_t>(*rank)};
    job.nodes = static_cast<std::uint32_t>(*nodes);
    job.threads_per_node = static_cast<std::uint32_t>(*threads);
    job.control_fd = static_cast<int>(*fd);
    job.job_key = *key;
    ::fcntl(job.control_fd, F_SETFD, FD_CLOEXEC);
    adopt_descriptor(job.control_fd);
    const ControlHeader hello{ControlKind::attached, job.self.value, 0};
    if (send_packet(job.control_fd, hello, {}, -1, true) != Transfer::done)
        return Error{ErrorKind::peer_lost,
                     "control channel (descriptor " + std::to_string(job.control_fd) +
                         ") is closed: the launcher is gone, or HIROBA_JOB_RANK was set by hand"};
    return job;
}

void restore_user_environment(char** environment) noexcept {
    if (!environment) return;
    bool launched = false;
    for (char** entry = environment; *entry; ++entry)
        launched |= std::string_view(*entry).starts_with(job_prefix);
    if (!launched) return;
    char** kept = environment;
    for (char** entry = environment; *entry; ++entry) {
        const std::string_view text = *entry;
        if (text.starts_with(saved_prefix)) {
            *kept++ = *entry + saved_prefix.size();
            continue;
        }
        bool drop = text.starts_with(job_prefix);
        for (std::string_view name : replaced) drop |= text.starts_with(name);
        if (!drop) *kept++ = *entry;
    }
    *kept = nullptr;
}

}  // namespace hiroba::net
