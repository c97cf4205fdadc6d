// SPDX-License-Identifier: BSD-3-Clause
// Role: what a user sets and sees of the shared memory: options from settings; counters and races,
// told to the launcher.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/fatal.hpp"
#include "base/settings.hpp"
#include "base/thread_context.hpp"
#include "dsm/dsm.hpp"
#include "dsm/memory/page_calls.hpp"

namespace hiroba::dsm {

Result<MemoryOptions> MemoryOptions::from_settings() {
    MemoryOptions options;
    const auto notices = setting_number("HIROBA_NOTICES");
    if (!notices) return notices.error();
    options.notices_max = static_cast<std::uint32_t>(std::min<std::uint64_t>(*notices, 1u << 30));

    const auto call_us = setting_number("HIROBA_DEARER_CALL");
    if (!call_us) return call_us.error();
    const auto fault_us = setting_number("HIROBA_DEARER_FAULT");
    if (!fault_us) return fault_us.error();
    page_calls.make_dearer(*call_us * 1000, *fault_us * 1000);

    const std::string_view stats = setting("HIROBA_STATS");
    options.by_place = stats == "full" || stats.starts_with("json:");
    options.watch_ahead = stats != "0";

    const std::string_view race = setting("HIROBA_RACE");
    options.race = race == "off"     ? Race::off
                   : race == "all"   ? Race::all
                   : race == "abort" ? Race::abort
                                     : Race::report;
    // A user who asks for races gets all that can be told: writes into exclusive blocks leave no
    // note.
    const bool asks_for_races = std::getenv("HIROBA_RACE") != nullptr && race != "off";
    options.exclusive = setting("HIROBA_EXCLUSIVE") == "on" && !asks_for_races;
    options.follow = setting("HIROBA_FOLLOW") == "on";
    if (setting("HIROBA_ATOMICS") == "relaxed") options.atomics = Atomics::relaxed;
    return options;
}

namespace {

/// Counters by name, as the launcher takes them.
class NamedCounts {
public:
    explicit NamedCounts(const MemoryCounts& c) noexcept {
        add("read_faults", c.read_faults);
        add("write_faults", c.write_faults);
        add("fetches_by_notice", c.fetches_by_notice);
        add("fetches_by_home", c.fetches_by_home);
        add("renewals", c.renewals);
        add("bytes_fetched", c.bytes_fetched);
        add("fetched_ahead", c.fetched_ahead);
        add("ahead_watched", c.ahead_watched);
        add("ahead_used", c.ahead_used);
        add("releases", c.releases);
        add("acquires", c.acquires);
        add("blocks_merged", c.blocks_merged);
        add("notices_made", c.notices_made);
        add("notices_dropped", c.notices_dropped);
        add("invalidations", c.invalidations);
        add("followed", c.followed);
        add("carried", c.carried);
        add("expected", c.expected);
        add("expected_unused", c.expected_unused);
        add("given_up_ahead", c.given_up_ahead);
        add("lease_expiries", c.lease_expiries);
        add("home_migrations", c.home_migrations);
        add("atomics", c.atomics);
        add("flushes", c.flushes);
        add("races", c.races);
        add("pulls", c.pulls);
        add("held", c.held);
        add("page_calls", c.page_calls);
        add("made_exclusive", c.made_exclusive);
        add("given_up", c.given_up);
        add("taken_first", c.taken_first);
        add("taken_whole", c.taken_whole);
        if (c.fault_ns + c.release_ns + c.acquire_ns == 0) return;
        add("fault_us", c.fault_ns / 1000);
        add("release_us", c.release_ns / 1000);
        add("acquire_us", c.acquire_ns / 1000);
    }
    const net::NamedCount* data() const noexcept { return counts_.data(); }
    std::size_t size() const noexcept { return size_; }

private:
    void add(const char* name, std::uint64_t value) noexcept {
        HIROBA_INVARIANT(size_ < counts_.size(), "more than %lu counters", counts_.size());
        net::NamedCount& count = counts_[size_++];
        std::strncpy(count.name, name, sizeof count.name - 1);
        count.value = value;
    }
    std::array<net::NamedCount, net::ControlChannel::place_counts_max> counts_{};
    std::size_t size_ = 0;
};

/// The thread of the job on whose stack slice `address` lies.
std::optional<std::uint32_t> stack_of(const AddressMap& map, std::uintptr_t address) noexcept {
    const SpaceShape& shape = map.shape();
    const auto offset = map.offset_of(address);
    if (!offset ||
        *offset >= std::uint64_t{shape.nodes} * shape.threads_per_node * shape.stack_bytes)
        return std::nullopt;
    return static_cast<std::uint32_t>(*offset / shape.stack_bytes);
}

}  // namespace

void report_races(SharedMemory& memory, net::ControlChannel& launcher) noexcept {
    struct Context {
        const AddressMap& map;
        net::ControlChannel& launcher;
    };
    // Lives as long as the process: threads that the program never joins may still find races.
    auto* const context = new Context{memory.map(), launcher};
    memory.on_race(
        [](void* at, std::uintptr_t address, std::uint32_t bytes, NodeId self,
           NodeId other) noexcept {
            const auto& [map, channel] = *static_cast<const Context*>(at);
            channel.report_race(address, bytes, self, other, this_thread().place,
                                stack_of(map, address));
        },
        context);
}

void report_counts(const SharedMemory& memory, net::ControlChannel& launcher) noexcept {
    const NamedCounts sum(memory.counts());
    launcher.report_counts(sum.data(), sum.size());
    memory.each_place(
        [](void* channel, const SyncPlace& place, const MemoryCounts& counts) {
            const NamedCounts at_place(counts);
            static_cast<net::ControlChannel*>(channel)->report_place(place, at_place.data(),
                                                                     at_place.size());
        },
        &launcher);
}

}  // namespace hiroba::dsm
