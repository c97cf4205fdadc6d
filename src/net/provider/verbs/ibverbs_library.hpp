// SPDX-License-Identifier: BSD-3-Clause
// Role: the functions of libibverbs, loaded when a job asks for provider verbs. Those that its
// header defines inline go through the context's table of operations and need nothing from here.
// Invariant: the library is loaded at most once and never unloaded. Its headers are needed to build
// this folder, its binaries never.
#pragma once

#include <infiniband/verbs.h>

#include <string>

#include "base/result.hpp"

namespace hiroba::net::verbs {

/// The calls that concern devices, their ports and memory.
struct IbverbsDeviceCalls {
    ibv_device** (*get_device_list)(int*);
    decltype(&::ibv_free_device_list) free_device_list;
    decltype(&::ibv_get_device_name) get_device_name;
    decltype(&::ibv_open_device) open_device;
    decltype(&::ibv_close_device) close_device;
    decltype(&::ibv_query_device) query_device;
    decltype(&::ibv_query_port) query_port;  ///< fills the first part of ibv_port_attr
    decltype(&::ibv_query_gid) query_gid;
    decltype(&::ibv_alloc_pd) alloc_pd;
    decltype(&::ibv_dealloc_pd) dealloc_pd;
    ibv_mr* (*reg_mr)(ibv_pd*, void*, std::size_t, int);
    decltype(&::ibv_dereg_mr) dereg_mr;
};

/// The calls that concern completion queues, receive queues and queue pairs.
struct IbverbsQueueCalls {
    decltype(&::ibv_create_comp_channel) create_comp_channel;
    decltype(&::ibv_destroy_comp_channel) destroy_comp_channel;
    decltype(&::ibv_create_cq) create_cq;
    decltype(&::ibv_destroy_cq) destroy_cq;
    decltype(&::ibv_get_cq_event) get_cq_event;
    decltype(&::ibv_ack_cq_events) ack_cq_events;
    decltype(&::ibv_create_srq) create_srq;
    decltype(&::ibv_destroy_srq) destroy_srq;
    decltype(&::ibv_create_qp) create_qp;
    decltype(&::ibv_modify_qp) modify_qp;
    decltype(&::ibv_query_qp) query_qp;
    decltype(&::ibv_destroy_qp) destroy_qp;
    decltype(&::ibv_create_ah) create_ah;
    decltype(&::ibv_destroy_ah) destroy_ah;
    decltype(&::ibv_wc_status_str) wc_status_str;
};

/// Each member is the function of that name, without its prefix.
struct IbverbsLibrary : IbverbsDeviceCalls, IbverbsQueueCalls {
    /// The name of the file that was loaded, which ends with the version.
    std::string file() const;

    /// Environment errors: the library is missing or older. Thread: one.
    static Result<const IbverbsLibrary*> load();
};

}  // namespace hiroba::net::verbs
