// SPDX-License-Identifier: BSD-3-Clause
// Role: see ucp_library.hpp.
#include "net/provider/ucx/ucp_library.hpp"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/own_libraries.hpp"
#include "net/provider/ucx/make_ucx_provider.hpp"

namespace hiroba::net::ucx {
namespace {

// UCX reads these in its constructors. It would take SIGSEGV, which is ours to handle, and patch
// the mapping functions of the process, which stand between the program and its memory already.
constexpr const char* settings[] = {"UCX_HANDLE_ERRORS=none",      "UCX_MEM_EVENTS=n",
                                    "UCX_MEM_MMAP_HOOK_MODE=none", "UCX_MEM_MALLOC_HOOKS=n",
                                    "UCX_WARN_UNUSED_ENV_VARS=n",  "UCX_LOG_LEVEL=fatal"};

/// dlopen() with `settings` in the environment; what the user has set himself stays, but for the
/// first, without which nothing works. The program's environment is not touched.
void* open_quietly(const char* name) {
    std::vector<char*> entries;
    for (char** entry = environ; *entry != nullptr; ++entry)
        if (!std::string_view(*entry).starts_with("UCX_HANDLE_ERRORS=")) entries.push_back(*entry);
    // The first of a name counts.
    for (const char* const entry : settings) entries.push_back(const_cast<char*>(entry));
    entries.push_back(nullptr);
    char** const former = environ;
    environ = entries.data();
    void* const handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    environ = former;
    return handle;
}

Error unfit(std::string text) { return {ErrorKind::environment, std::move(text)}; }

}  // namespace

Result<const UcpLibrary*> UcpLibrary::load() {
    static UcpLibrary library;
    static bool loaded = false;
    if (loaded) return &library;
    const LoadingOwnLibraries own{AtExit::leave_usable};
    void* const handle = open_quietly("libucp.so.0");
    if (handle == nullptr)
        return unfit(std::string("HIROBA_PROVIDER=ucx: UCX cannot be loaded: ") + ::dlerror() +
                     ". Install it (Debian: libucx0), or choose another provider");
    const char* missing = nullptr;
    const auto find = [&](auto& function, const char* name) {
        function =
            reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(handle, name));
        if (function == nullptr) missing = name;
    };
    find(library.get_version_string, "ucp_get_version_string");
    find(library.config_read, "ucp_config_read");
    find(library.config_modify, "ucp_config_modify");
    find(library.config_release, "ucp_config_release");
    find(library.init_version, "ucp_init_version");
    find(library.cleanup, "ucp_cleanup");
    find(library.worker_create, "ucp_worker_create");
    find(library.worker_destroy, "ucp_worker_destroy");
    find(library.worker_get_address, "ucp_worker_get_address");
    find(library.worker_release_address, "ucp_worker_release_address");
    find(library.worker_get_efd, "ucp_worker_get_efd");
    find(library.worker_arm, "ucp_worker_arm");
    find(library.worker_progress, "ucp_worker_progress");
    find(library.worker_set_am_recv_handler, "ucp_worker_set_am_recv_handler");
    find(library.ep_create, "ucp_ep_create");
    find(library.ep_close_nbx, "ucp_ep_close_nbx");
    find(library.ep_flush_nbx, "ucp_ep_flush_nbx");
    find(library.mem_map, "ucp_mem_map");
    find(library.mem_unmap, "ucp_mem_unmap");
    find(library.rkey_pack, "ucp_rkey_pack");
    find(library.rkey_buffer_release, "ucp_rkey_buffer_release");
    find(library.ep_rkey_unpack, "ucp_ep_rkey_unpack");
    find(library.rkey_destroy, "ucp_rkey_destroy");
    find(library.put_nbx, "ucp_put_nbx");
    find(library.get_nbx, "ucp_get_nbx");
    find(library.atomic_op_nbx, "ucp_atomic_op_nbx");
    find(library.am_send_nbx, "ucp_am_send_nbx");
    find(library.request_free, "ucp_request_free");
    find(library.status_string, "ucs_status_string");
    if (missing != nullptr)
        return unfit(std::string("HIROBA_PROVIDER=ucx: libucp.so.0 has no ") + missing +
                     ". Install UCX 1.10 or later");
    loaded = true;
    return &library;
}

Result<std::string> describe_library() {
    const auto ucp = UcpLibrary::load();
    if (!ucp) return ucp.error();
    return std::string("UCX ") + (*ucp)->get_version_string() + "; its devices: ucx_info -d";
}

}  // namespace hiroba::net::ucx
