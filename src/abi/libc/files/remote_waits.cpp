// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/files/remote_waits.hpp"

#include <poll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "abi/libc/calls/interruptions.hpp"
#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/files/descriptors.hpp"
#include "abi/libc/files/packed_calls.hpp"
#include "abi/libc/process/signal_masks.hpp"
#include "abi/world.hpp"
#include "base/clock.hpp"

namespace hiroba::abi {
namespace {

constexpr std::uint64_t for_ever = ~std::uint64_t{0}, second_ns = 1'000'000'000,
                        millisecond_ns = 1'000'000;

NodeId owner_of(int fd) noexcept { return foreign_owner(fd).value_or(world()->job.self); }

using Descriptors = std::vector<pollfd>;

struct Wait {
    std::uint64_t until_ns = for_ever;
    const KernelMask* signals = nullptr;  ///< that are blocked meanwhile; nullptr: as before

    std::optional<ChangedMask> mask() const noexcept {
        if (signals == nullptr) return std::nullopt;
        return std::optional<ChangedMask>{std::in_place, *signals};
    }
};

/// The distinct nodes whose descriptors these are.
std::vector<NodeId> owners_of(const Descriptors& all) {
    std::vector<NodeId> owners;
    for (const pollfd& each : all) {
        if (each.fd < 0) continue;
        const NodeId owner = owner_of(each.fd);
        if (std::find(owners.begin(), owners.end(), owner) == owners.end()) owners.push_back(owner);
    }
    return owners;
}

/// poll() of those of `owner` alone; `revents` of these are set.
long poll_at(NodeId owner, Descriptors& all, int timeout_ms) {
    Descriptors there = all;
    for (pollfd& each : there)
        if (each.fd >= 0 && owner_of(each.fd) != owner) each.fd = -1;
    const CallArguments words{
        {dsm::kernel::as_word(there.data()), static_cast<long>(there.size()), timeout_ms}};
    const long* const a = words.word;
    const long result = owner == world()->job.self
                            ? dsm::kernel_call(SYS_poll, a[0], a[1], a[2])
                            : carry_over(owner, *find_system_call(SYS_poll), words);
    for (std::size_t i = 0; result > 0 && i < all.size(); ++i)
        if (there[i].fd >= 0) all[i].revents = there[i].revents;
    return result;
}

/// One node's wait as long as asked; several nodes' are looked at by turns.
long poll_everywhere(Descriptors& all, const Wait& wait) {
    constexpr std::uint64_t longest_nap_ns = 2 * millisecond_ns;
    const std::vector<NodeId> owners = owners_of(all);
    std::uint64_t nap_ns = 50'000;
    const Interruption interruption{SYS_poll};  // before the mask opens what is pending
    const std::optional<ChangedMask> while_waiting = wait.mask();
    for (pollfd& each : all) each.revents = 0;
    for (;;) {
        const bool is_ended = interruption.has_come();
        const std::uint64_t now = now_ns();
        const std::uint64_t left_ns = wait.until_ns > now ? wait.until_ns - now : 0;
        constexpr std::uint64_t most_ms = 1'000'000;
        const auto whole_ms = std::min((left_ns + millisecond_ns - 1) / millisecond_ns, most_ms);
        long ready = 0;
        for (const NodeId owner : owners) {
            const long result = poll_at(
                owner, all, owners.size() == 1 && !is_ended ? static_cast<int>(whole_ms) : 0);
            if (result < 0 && result != -EINTR) return result;
            ready += std::max(result, 0L);
        }
        if (ready > 0 || left_ns == 0) return ready;
        if (is_ended) return -EINTR;
        if (owners.size() == 1) continue;
        const std::uint64_t nap = std::min(nap_ns, left_ns);
        const timespec rest{static_cast<time_t>(nap / second_ns),
                            static_cast<long>(nap % second_ns)};
        dsm::kernel_call(SYS_nanosleep, &rest, 0);
        nap_ns = std::min(2 * nap_ns, longest_nap_ns);
    }
}

std::uint64_t until(std::uint64_t seconds, std::uint64_t ns) noexcept {
    constexpr std::uint64_t many_seconds = 1'000'000'000;
    return now_ns() + std::min(seconds, many_seconds) * second_ns + ns;
}

std::optional<long> perform_poll(const CallArguments& given, const Wait& wait) {
    auto* const first = pointer<pollfd>(given.word[0]);
    const auto count = static_cast<std::size_t>(given.word[1]);
    const auto is_foreign = [](const pollfd& each) { return foreign_owner(each.fd).has_value(); };
    if (first == nullptr || std::none_of(first, first + count, is_foreign)) return std::nullopt;
    Descriptors all(first, first + count);
    const long result = poll_everywhere(all, wait);
    for (std::size_t i = 0; result >= 0 && i < count; ++i) first[i].revents = all[i].revents;
    return result;
}

constexpr short events_of[] = {POLLIN, POLLOUT, POLLPRI};
constexpr short shown_by[] = {POLLIN | POLLHUP | POLLERR, POLLOUT | POLLERR, POLLPRI};

std::optional<long> perform_select(const CallArguments& given, const Wait& wait) {
    const auto count = static_cast<int>(std::min<long>(given.word[0], FD_SETSIZE));
    fd_set* const sets[] = {pointer<fd_set>(given.word[1]), pointer<fd_set>(given.word[2]),
                            pointer<fd_set>(given.word[3])};
    Descriptors all;
    bool any_foreign = false;
    for (int fd = 0; fd < count; ++fd) {
        short events = 0;
        for (int i = 0; i < 3; ++i)
            if (sets[i] != nullptr && FD_ISSET(fd, sets[i])) events |= events_of[i];
        if (events == 0) continue;
        all.push_back({fd, events, 0});
        any_foreign |= foreign_owner(fd).has_value();
    }
    if (!any_foreign) return std::nullopt;
    const long result = poll_everywhere(all, wait);
    if (result < 0) return result;
    long bits = 0;
    for (const pollfd& each : all) {
        if ((each.revents & POLLNVAL) != 0) return -EBADF;
        for (int i = 0; i < 3; ++i) {
            if (sets[i] == nullptr || (each.events & events_of[i]) == 0) continue;
            const bool is_shown = (each.revents & shown_by[i]) != 0;
            if (!is_shown) FD_CLR(each.fd, sets[i]);
            bits += is_shown;
        }
    }
    return bits;
}

}  // namespace

std::optional<long> wait_elsewhere(long number, const CallArguments& given) noexcept {
    const long* const a = given.word;
    switch (number) {
        case SYS_poll: {
            const auto ms = static_cast<int>(a[2]);
            const auto ns = static_cast<std::uint64_t>(ms) * millisecond_ns;
            return perform_poll(given, {ms < 0 ? for_ever : until(0, ns)});
        }
        case SYS_ppoll:
        case SYS_pselect6:
        case SYS_select: {
            const auto* const limit = pointer<timespec>(a[number == SYS_ppoll ? 2 : 4]);
            Wait wait;
            if (limit != nullptr) {
                const auto part = static_cast<std::uint64_t>(limit->tv_nsec);
                wait.until_ns = until(static_cast<std::uint64_t>(limit->tv_sec),
                                      number == SYS_select ? part * 1000 : part);
            }
            if (number == SYS_ppoll) wait.signals = pointer<const KernelMask>(a[3]);
            if (number == SYS_pselect6 && a[5] != 0)
                wait.signals = *pointer<const KernelMask* const>(a[5]);  // the size lies behind
            return number == SYS_ppoll ? perform_poll(given, wait) : perform_select(given, wait);
        }
        default: return std::nullopt;
    }
}

}  // namespace hiroba::abi
