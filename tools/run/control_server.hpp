// SPDX-License-Identifier: BSD-3-Clause
// Role: the launcher's end of all control channels: carries out collectives, keeps what nodes
// report. Decides nothing about the job's end.
// Invariant: never blocks; an answer that a node does not take yet waits in that node's queue.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "net/bootstrap/control_packet.hpp"
#include "tools/run/answer_queue.hpp"

namespace hiroba::tools {

/// One node's counter as it was reported.
struct ReportedCount {
    std::string name;
    std::uint64_t value = 0;
};

/// Another program that a node started, outside of the job.
struct StartedOutside {
    std::string text;       ///< its path, or a shell's command; empty: none
    bool replaces = false;  ///< it has taken the node's place
};

/// What one node counted at one place.
struct ReportedPlace {
    SyncPlace place;
    std::string name;  ///< as the node's own host calls it; empty: this host is to find out
    std::vector<ReportedCount> counts;
};

class ControlServer {
public:
    /// @param names  "variable\nplace" as the node's own host calls them; empty: this host is to
    ///               find out
    using RaceSink = std::function<void(const net::RaceBody&, const std::string& names)>;
    /// @param report  what the node's own host says of the crash; empty: this host is to find out
    using CrashSink =
        std::function<void(std::uint32_t rank, const net::CrashBody&, const std::string& report)>;
    using AttachSink = std::function<void(std::uint32_t)>;
    /// Takes an answer that is for every node of the other hosts.
    using FarSink = std::function<void(const net::ControlHeader&, Bytes)>;

    /// Owns `sockets`, one per rank; -1: the rank is on another host, whose packets come by
    /// deliver() and whose answers go to `far`.
    /// @param attach_sink  called with the rank when a node's runtime is there
    ControlServer(
        std::vector<int> sockets, RaceSink race_sink, AttachSink attach_sink = [](std::uint32_t) {},
        FarSink far = {});
    ControlServer(const ControlServer&) = delete;
    ControlServer& operator=(const ControlServer&) = delete;
    ~ControlServer();

    /// Where crashes go. The node goes on to its end when the sink returns.
    void tell_crashes_to(CrashSink sink) { crash_sink_ = std::move(sink); }
    /// What poll() is to wait for; entry i is rank i (a closed channel is fd -1).
    std::vector<pollfd> poll_entries() const;
    /// Takes in and gives out all that can be at once. `now_ns` dates a collective's start.
    void serve(std::uint32_t rank, std::uint64_t now_ns);
    void serve_all(std::uint64_t now_ns);
    /// Takes a packet of a node on another host.
    void deliver(std::uint32_t rank, net::ControlPacket& packet, std::uint64_t now_ns) {
        take(rank, packet, now_ns);
    }
    /// A node wrote something else than a packet.
    void deliver_malformed(std::uint32_t rank);

    bool attached(std::uint32_t rank) const { return ends_[rank].attached; }
    /// The node has said that it leaves.
    bool leaving(std::uint32_t rank) const { return ends_[rank].regions.has_value(); }
    /// With what status, as it has said then.
    std::optional<int> leaving_status(std::uint32_t rank) const { return ends_[rank].status; }
    std::optional<std::uint64_t> regions(std::uint32_t rank) const { return ends_[rank].regions; }
    const std::vector<ReportedCount>& counts(std::uint32_t rank) const {
        return ends_[rank].counts;
    }
    const std::vector<ReportedPlace>& places(std::uint32_t rank) const {
        return ends_[rank].places;
    }
    const StartedOutside& started(std::uint32_t rank) const { return ends_[rank].started; }
    /// Set once a node asked for the end of the job.
    std::optional<int> exit_requested() const { return exit_requested_; }
    /// Set once a node broke the rules of the channel: one line that says how.
    const std::string& broken() const { return broken_; }
    /// Since when some nodes wait in a collective for others; 0: none waits.
    std::uint64_t waiting_since_ns() const { return waiting_since_ns_; }
    /// A stopped job does not wait: starts the time anew.
    void restart_wait(std::uint64_t now_ns) {
        if (waiting_since_ns_ != 0) waiting_since_ns_ = now_ns;
    }
    /// Tells all other nodes that `rank` is dead.
    void tell_lost(std::uint32_t rank);
    /// "1, 3": the ranks for which the collective waits.
    std::string missing_ranks() const;

private:
    struct End {
        int socket = -1;
        bool attached = false;
        std::optional<net::ControlKind> arrived;  ///< the collective this node waits in
        std::vector<std::byte> gathered;
        int gathered_fd = -1;
        AnswerQueue answers;
        std::optional<std::uint64_t> regions;
        std::optional<int> status;
        std::vector<ReportedCount> counts;
        std::vector<ReportedPlace> places;
        StartedOutside started;
    };
    void take(std::uint32_t rank, net::ControlPacket& packet, std::uint64_t now_ns);
    void arrive(std::uint32_t rank, net::ControlPacket& packet, std::uint64_t now_ns);
    void answer_all();
    bool take_crash(std::uint32_t rank, const net::ControlPacket& packet);
    static bool take_place(End& end, const net::ControlPacket& packet);
    static std::vector<ReportedCount> counts_in(Bytes body);
    void close(End& end);

    std::vector<End> ends_;
    RaceSink race_sink_;
    AttachSink attach_sink_;
    CrashSink crash_sink_;
    FarSink far_;
    std::uint32_t arrived_ = 0;
    std::uint64_t waiting_since_ns_ = 0;
    std::optional<int> exit_requested_;
    std::string broken_;
};

}  // namespace hiroba::tools
