// SPDX-License-Identifier: BSD-3-Clause
// Role: one port of an RDMA device: which it is, what it can do, how it is reached, and the queue
// pairs and memory that it is asked for. Invariant: open from open() to the end; whoever makes a
// queue or a registration gives it back first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "net/provider/verbs/ibverbs_library.hpp"

namespace hiroba::net::verbs {

/// Where a port is, as peers need it.
struct PortAddress {
    ibv_gid gid{};
    std::uint16_t lid = 0;
    std::uint8_t mtu = 0;           ///< ibv_mtu
    std::uint8_t reads_served = 0;  ///< reads and atomics under way that it bears, at a queue pair
};

/// Thread: any, but for open().
class Device {
public:
    /// @param wanted  "", "mlx5_0" or "mlx5_0:2" (its port)
    /// @param network  address of the network device whose port is meant, or empty
    static Result<std::unique_ptr<Device>> open(const IbverbsLibrary& ibv, std::string_view wanted,
                                                std::string_view network);
    ~Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    const IbverbsLibrary& ibv() const noexcept { return ibv_; }
    ibv_context* context() const noexcept { return context_; }
    ibv_pd* pd() const noexcept { return pd_; }
    ibv_comp_channel* channel() const noexcept { return channel_; }
    const ibv_device_attr& limits() const noexcept { return limits_; }
    const PortAddress& address() const noexcept { return address_; }
    std::uint8_t port() const noexcept { return port_; }
    const std::string& name() const noexcept { return name_; }

    /// `cqe` is lowered to what the device has. Completions that are asked for knock at channel().
    Result<ibv_cq*> make_cq(std::uint32_t& cqe) const;
    /// Pinned until dereg_mr(). nullptr: errno says why.
    ibv_mr* pin(void* start, std::size_t bytes) const noexcept;
    Error cannot_pin(std::size_t bytes, int error) const;

    /// A reliable queue pair in state INIT that serves reads, writes and atomics; nullptr: errno.
    ibv_qp* make_qp(ibv_cq* sends, ibv_cq* receives, ibv_srq* srq, std::uint32_t depth,
                    std::uint32_t& inline_bytes) const noexcept;
    std::uint32_t path_mtu_bytes(const PortAddress& peer) const noexcept {
        return 128u << std::min(peer.mtu, address_.mtu);
    }
    /// From INIT on it receives; false: errno.
    bool accept_from(ibv_qp* qp, const PortAddress& peer, std::uint32_t number,
                     std::uint32_t first_packet) const noexcept;
    /// And then it sends.
    bool send_to(ibv_qp* qp, const PortAddress& peer, std::uint32_t first_packet) const noexcept;
    /// All that is posted to it comes back with an error.
    void give_up(ibv_qp* qp) const noexcept;
    /// Has it receive no more; returns the number of the packet that it waited for. False: errno.
    bool give_up(ibv_qp* qp, std::uint32_t& expected) const noexcept;
    ibv_ah_attr path_to(const PortAddress& peer) const noexcept;

    Error wrong(const char* call, int error) const;

private:
    Device(const IbverbsLibrary& ibv, ibv_context* context, std::string name)
        : ibv_(ibv), context_(context), name_(std::move(name)) {}
    bool take_port(std::uint8_t port, std::string_view network);

    const IbverbsLibrary& ibv_;
    ibv_context* context_;
    std::string name_;
    ibv_pd* pd_ = nullptr;
    ibv_comp_channel* channel_ = nullptr;
    ibv_device_attr limits_{};
    PortAddress address_;
    std::uint8_t port_ = 1;
    std::uint8_t gid_index_ = 0;
    bool is_ethernet_ = false;
};

}  // namespace hiroba::net::verbs
