// SPDX-License-Identifier: BSD-3-Clause
// Role: see loss_watch.hpp.
#include "net/loss_watch.hpp"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "base/own_descriptors.hpp"
#include "base/service_thread.hpp"
#include "base/settings.hpp"
#include "net/bootstrap/control_packet.hpp"

namespace hiroba::net {

Result<std::unique_ptr<LossWatch>> LossWatch::start(const JobInfo& job, Provider& provider,
                                                    std::function<void(NodeId)> lost) {
    const auto grace_ms = setting_number("HIROBA_LOSS_GRACE");
    if (!grace_ms) return grace_ms.error();
    if (*grace_ms == 0 || job.control_fd < 0) return std::unique_ptr<LossWatch>();
    const int stop = keep_descriptor(eventfd(0, EFD_CLOEXEC));
    if (stop < 0) {
        return Error{ErrorKind::environment, std::string("eventfd of the watch for lost nodes: ") +
                                                 strerror(errno) + "; see ulimit -n"};
    }
    return std::unique_ptr<LossWatch>(new LossWatch(job, provider, std::move(lost), stop));
}

LossWatch::LossWatch(const JobInfo& job, Provider& provider, std::function<void(NodeId)> lost,
                     int stop)
    : control_(job.control_fd),
      stop_(stop),
      nodes_(job.nodes),
      provider_(provider),
      lost_(std::move(lost)) {
    thread_ = start_service_thread("hears of lost nodes", [this] { watch(); });
}

LossWatch::~LossWatch() {
    eventfd_write(stop_, 1);
    thread_.join();
    close_kept_descriptor(stop_);
}

void LossWatch::watch() noexcept {
    pollfd watched[2] = {{control_, POLLIN, 0}, {stop_, POLLIN, 0}};
    ControlPacket packet;
    while (true) {
        if (poll(watched, 2, -1) < 0) continue;
        if (watched[1].revents != 0) return;
        switch (receive_packet(control_, packet, false)) {
            case Transfer::done: break;
            case Transfer::again:
            case Transfer::malformed: continue;
            case Transfer::closed: return;  // the launcher is gone, and soon so is this process
        }
        if (packet.fd >= 0) close(packet.fd);
        if (packet.header.kind != ControlKind::lost || packet.header.rank >= nodes_) continue;
        provider_.peer_lost(NodeId{packet.header.rank});
        if (lost_) lost_(NodeId{packet.header.rank});
    }
}

}  // namespace hiroba::net
