// SPDX-License-Identifier: BSD-3-Clause
// Role: the functions of UCX's UCP layer, loaded when a job asks for provider ucx.
// Invariant: the library is loaded at most once and never unloaded: it keeps threads. Its headers
// are needed to build this folder, its binaries never.
#pragma once

#include <ucp/api/ucp.h>

#include "base/result.hpp"

namespace hiroba::net::ucx {

/// The calls that concern the library, its contexts and workers.
struct UcpWorkerCalls {
    decltype(&::ucp_get_version_string) get_version_string;
    decltype(&::ucp_config_read) config_read;
    decltype(&::ucp_config_modify) config_modify;
    decltype(&::ucp_config_release) config_release;
    decltype(&::ucp_init_version) init_version;
    decltype(&::ucp_cleanup) cleanup;
    decltype(&::ucp_worker_create) worker_create;
    decltype(&::ucp_worker_destroy) worker_destroy;
    decltype(&::ucp_worker_get_address) worker_get_address;
    decltype(&::ucp_worker_release_address) worker_release_address;
    decltype(&::ucp_worker_get_efd) worker_get_efd;
    decltype(&::ucp_worker_arm) worker_arm;
    decltype(&::ucp_worker_progress) worker_progress;
    decltype(&::ucp_worker_set_am_recv_handler) worker_set_am_recv_handler;
    decltype(&::ucs_status_string) status_string;
};

/// The calls that concern endpoints, memory and messages.
struct UcpEndpointCalls {
    decltype(&::ucp_ep_create) ep_create;
    decltype(&::ucp_ep_close_nbx) ep_close_nbx;
    decltype(&::ucp_ep_flush_nbx) ep_flush_nbx;
    decltype(&::ucp_mem_map) mem_map;
    decltype(&::ucp_mem_unmap) mem_unmap;
    decltype(&::ucp_rkey_pack) rkey_pack;
    decltype(&::ucp_rkey_buffer_release) rkey_buffer_release;
    decltype(&::ucp_ep_rkey_unpack) ep_rkey_unpack;
    decltype(&::ucp_rkey_destroy) rkey_destroy;
    decltype(&::ucp_put_nbx) put_nbx;
    decltype(&::ucp_get_nbx) get_nbx;
    decltype(&::ucp_atomic_op_nbx) atomic_op_nbx;
    decltype(&::ucp_am_send_nbx) am_send_nbx;
    decltype(&::ucp_request_free) request_free;
};

/// Each member is the function of that name (UCX 1.10 or later).
struct UcpLibrary : UcpWorkerCalls, UcpEndpointCalls {
    /// Environment errors: the library is missing or older. Thread: one.
    static Result<const UcpLibrary*> load();
};

}  // namespace hiroba::net::ucx
