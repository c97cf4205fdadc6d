// SPDX-License-Identifier: BSD-3-Clause
// Role: see device.hpp.
#include "net/provider/verbs/device.hpp"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "base/own_libraries.hpp"
#include "net/provider/verbs/make_verbs_provider.hpp"

namespace hiroba::net::verbs {
namespace {

constexpr int pinned_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                              IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
// 4.096 us * 2^18 = 1.07 s for each of 7 repetitions: a link may be gone for seven seconds.
constexpr std::uint8_t timeout_exponent = 18, repetitions = 7;
constexpr std::uint8_t no_buffer_for_ever = 7;
constexpr std::uint8_t no_buffer_wait = 5;  // 60 us before the peer tries again
constexpr std::uint8_t hops_max = 64;

Error unfit(std::string text) { return {ErrorKind::environment, std::move(text)}; }

/// One line of a file of the device's in /sys; empty where there is none.
std::string line_of(const std::string& path) {
    char text[128] = {};
    if (std::FILE* file = std::fopen(path.c_str(), "re")) {
        if (std::fgets(text, sizeof text, file) == nullptr) text[0] = 0;
        std::fclose(file);
    }
    std::string line = text;
    while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.pop_back();
    return line;
}

std::string port_folder(const std::string& device, unsigned port) {
    return "/sys/class/infiniband/" + device + "/ports/" + std::to_string(port);
}

bool is_zero(const ibv_gid& gid) {
    return std::ranges::all_of(gid.raw, [](std::uint8_t byte) { return byte == 0; });
}

/// An IPv4 address as RoCE writes it: ::ffff:10.0.0.1.
bool is_ipv4(const ibv_gid& gid) {
    constexpr std::uint8_t prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return std::memcmp(gid.raw, prefix, sizeof prefix) == 0;
}

ibv_gid gid_of(std::string_view network) {
    ibv_gid gid{};
    const std::string text{network};
    in_addr four{};
    if (inet_pton(AF_INET, text.c_str(), &four) == 1) {
        gid.raw[10] = gid.raw[11] = 0xff;
        std::memcpy(gid.raw + 12, &four, sizeof four);
    } else if (inet_pton(AF_INET6, text.c_str(), gid.raw) != 1) {
        gid = {};
    }
    return gid;
}

struct DeviceList {
    DeviceList(const IbverbsLibrary& library) : ibv(library) {
        const LoadingOwnLibraries drivers{AtExit::leave_usable};
        all = ibv.get_device_list(&count);
    }
    ~DeviceList() {
        if (all != nullptr) ibv.free_device_list(all);
    }
    const IbverbsLibrary& ibv;
    ibv_device** all = nullptr;
    int count = 0;
};

}  // namespace

Result<std::vector<std::string>> describe_devices() {
    const auto ibv = IbverbsLibrary::load();
    if (!ibv) return ibv.error();
    const DeviceList list{**ibv};
    if (list.count == 0)
        return unfit("no RDMA device (/sys/class/infiniband has none, or its driver is missing); " +
                     (*ibv)->file() + " is there");
    std::vector<std::string> lines{(*ibv)->file()};
    for (int i = 0; i < list.count; ++i) {
        const std::string name = (*ibv)->get_device_name(list.all[i]);
        for (unsigned port = 1; !line_of(port_folder(name, port) + "/state").empty(); ++port) {
            const std::string folder = port_folder(name, port);
            lines.push_back(name + " port " + std::to_string(port) + " (" +
                            line_of(folder + "/link_layer") + ", " + line_of(folder + "/state") +
                            ", " + line_of(folder + "/rate") + ")");
        }
    }
    return lines;
}

Result<std::unique_ptr<Device>> Device::open(const IbverbsLibrary& ibv, std::string_view wanted,
                                             std::string_view network) {
    const std::size_t colon = wanted.find(':');
    const std::string_view wanted_name = wanted.substr(0, colon);
    const int wanted_port =
        colon == wanted.npos ? 0 : std::atoi(std::string(wanted.substr(colon + 1)).c_str());
    const DeviceList list{ibv};
    std::string seen;
    for (int i = 0; i < list.count; ++i) {
        const std::string name = ibv.get_device_name(list.all[i]);
        seen += (seen.empty() ? "" : ", ") + name;
        if (!wanted_name.empty() && wanted_name != name) continue;
        const LoadingOwnLibraries descriptors{AtExit::leave_usable};
        ibv_context* const context = ibv.open_device(list.all[i]);
        if (context == nullptr) {
            seen += std::string(" (cannot be opened: ") + strerror(errno) + ")";
            continue;
        }
        std::unique_ptr<Device> device{new Device(ibv, context, name)};
        if (ibv.query_device(context, &device->limits_) != 0) continue;
        for (std::uint8_t port = 1; port <= device->limits_.phys_port_cnt; ++port) {
            if (wanted_port != 0 && wanted_port != port) continue;
            if (!device->take_port(port, network)) continue;
            device->pd_ = ibv.alloc_pd(context);
            if (device->pd_ == nullptr) return device->wrong("ibv_alloc_pd", errno);
            device->channel_ = ibv.create_comp_channel(context);
            if (device->channel_ == nullptr) return device->wrong("ibv_create_comp_channel", errno);
            const int flags = fcntl(device->channel_->fd, F_GETFL);
            fcntl(device->channel_->fd, F_SETFL, flags | O_NONBLOCK);
            return device;
        }
        seen +=
            " (no port is active" + (network.empty() ? std::string() : " on this network") + ")";
    }
    if (seen.empty())
        return unfit(
            "HIROBA_PROVIDER=verbs: there is no RDMA device (/sys/class/infiniband is empty); "
            "choose another provider");
    return unfit("HIROBA_PROVIDER=verbs: no RDMA device fits" +
                 (wanted.empty() ? std::string() : " HIROBA_VERBS_DEVICE=" + std::string(wanted)) +
                 "; there is " + seen);
}

/// An active port; on Ethernet with an address of RoCE v2: the one that is `network`, else the
/// first of IPv4, else the first that leaves the link.
bool Device::take_port(std::uint8_t port, std::string_view network) {
    ibv_port_attr attributes{};
    if (ibv_.query_port(context_, port, reinterpret_cast<_compat_ibv_port_attr*>(&attributes)) != 0)
        return false;
    if (attributes.state != IBV_PORT_ACTIVE) return false;
    port_ = port;
    is_ethernet_ = attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
    address_.lid = attributes.lid;
    address_.mtu = static_cast<std::uint8_t>(attributes.active_mtu);
    address_.reads_served = static_cast<std::uint8_t>(std::clamp(limits_.max_qp_rd_atom, 1, 16));
    if (!is_ethernet_) return ibv_.query_gid(context_, port, 0, &address_.gid) == 0;
    const ibv_gid own = gid_of(network);
    int best = 0;
    for (int index = 0; index < attributes.gid_tbl_len && index < 256; ++index) {
        ibv_gid gid{};
        if (ibv_.query_gid(context_, port, index, &gid) != 0 || is_zero(gid)) continue;
        const std::string type =
            line_of(port_folder(name_, port) + "/gid_attrs/types/" + std::to_string(index));
        const bool is_link_local = gid.raw[0] == 0xfe && gid.raw[1] == 0x80;
        const int worth = !is_zero(own) && std::memcmp(gid.raw, own.raw, sizeof gid.raw) == 0 ? 9
                          : is_ipv4(gid)                                                      ? 5
                          : is_link_local                                                     ? 1
                                                                                              : 3;
        const int typed = type == "RoCE v2" ? worth * 2 + 1 : worth * 2;
        if (typed <= best) continue;
        best = typed;
        gid_index_ = static_cast<std::uint8_t>(index);
        address_.gid = gid;
    }
    return is_zero(own) ? best > 0 : best >= 18;
}

Device::~Device() {
    if (channel_ != nullptr) ibv_.destroy_comp_channel(channel_);
    if (pd_ != nullptr) ibv_.dealloc_pd(pd_);
    ibv_.close_device(context_);
}

Error Device::wrong(const char* call, int error) const {
    return unfit("provider verbs (" + name_ + " port " + std::to_string(port_) + "): " + call +
                 ": " + strerror(error) + ". See ibv_devinfo -v, or choose another provider");
}

Result<ibv_cq*> Device::make_cq(std::uint32_t& cqe) const {
    cqe = std::min(cqe, static_cast<std::uint32_t>(limits_.max_cqe));
    ibv_cq* const cq = ibv_.create_cq(context_, static_cast<int>(cqe), nullptr, channel_, 0);
    if (cq == nullptr) return wrong("ibv_create_cq", errno);
    return cq;
}

ibv_mr* Device::pin(void* start, std::size_t bytes) const noexcept {
    return ibv_.reg_mr(pd_, start, bytes, pinned_access);
}

Error Device::cannot_pin(std::size_t bytes, int error) const {
    return unfit("provider verbs (" + name_ + "): " + std::to_string(bytes) +
                 " bytes cannot be pinned: " + strerror(error) +
                 (error == ENOMEM ? "; raise `ulimit -l` (/etc/security/limits.conf: memlock "
                                    "unlimited), or lower HIROBA_HEAP"
                                  : ""));
}

ibv_qp* Device::make_qp(ibv_cq* sends, ibv_cq* receives, ibv_srq* srq, std::uint32_t depth,
                        std::uint32_t& inline_bytes) const noexcept {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = sends;
    attributes.recv_cq = receives;
    attributes.srq = srq;
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap.max_send_wr = depth;
    attributes.cap.max_recv_wr = 1;
    attributes.cap.max_send_sge = 1;
    attributes.cap.max_recv_sge = 1;
    attributes.cap.max_inline_data = inline_bytes;
    ibv_qp* qp = ibv_.create_qp(pd_, &attributes);
    while (qp == nullptr && attributes.cap.max_inline_data > 0 && errno == EINVAL) {
        attributes.cap.max_inline_data /= 2;
        qp = ibv_.create_qp(pd_, &attributes);
    }
    if (qp == nullptr) return nullptr;
    inline_bytes = attributes.cap.max_inline_data;
    ibv_qp_attr init{};
    init.qp_state = IBV_QPS_INIT;
    init.port_num = port_;
    init.qp_access_flags =
        IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    const int error = ibv_.modify_qp(
        qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (error == 0) return qp;
    ibv_.destroy_qp(qp);
    errno = error;
    return nullptr;
}

ibv_ah_attr Device::path_to(const PortAddress& peer) const noexcept {
    ibv_ah_attr path{};
    path.dlid = peer.lid;
    path.port_num = port_;
    path.is_global = is_ethernet_ ? 1 : 0;
    path.grh.dgid = peer.gid;
    path.grh.sgid_index = gid_index_;
    path.grh.hop_limit = hops_max;
    return path;
}

bool Device::accept_from(ibv_qp* qp, const PortAddress& peer, std::uint32_t number,
                         std::uint32_t first_packet) const noexcept {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTR;
    attributes.path_mtu = static_cast<ibv_mtu>(std::min(peer.mtu, address_.mtu));
    attributes.dest_qp_num = number;
    attributes.rq_psn = first_packet;
    attributes.max_dest_rd_atomic = address_.reads_served;
    attributes.min_rnr_timer = no_buffer_wait;
    attributes.ah_attr = path_to(peer);
    const int error =
        ibv_.modify_qp(qp, &attributes,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                           IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    errno = error;
    return error == 0;
}

bool Device::send_to(ibv_qp* qp, const PortAddress& peer,
                     std::uint32_t first_packet) const noexcept {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTS;
    attributes.timeout = timeout_exponent;
    attributes.retry_cnt = repetitions;
    attributes.rnr_retry = no_buffer_for_ever;
    attributes.sq_psn = first_packet;
    attributes.max_rd_atomic = static_cast<std::uint8_t>(
        std::min<int>(peer.reads_served, std::max(limits_.max_qp_init_rd_atom, 1)));
    const int error =
        ibv_.modify_qp(qp, &attributes,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                           IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    errno = error;
    return error == 0;
}

void Device::give_up(ibv_qp* qp) const noexcept {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_ERR;
    ibv_.modify_qp(qp, &attributes, IBV_QP_STATE);
}

bool Device::give_up(ibv_qp* qp, std::uint32_t& expected) const noexcept {
    give_up(qp);
    ibv_qp_attr attributes{};
    ibv_qp_init_attr made{};
    const int error = ibv_.query_qp(qp, &attributes, IBV_QP_RQ_PSN, &made);
    expected = attributes.rq_psn;
    errno = error;
    return error == 0;
}

}  // namespace hiroba::net::verbs
