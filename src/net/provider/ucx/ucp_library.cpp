// SPDX-License-Identifier: BSD-3-Clause
// Role: see ucp_library.hpp.
#include "net/provider/ucx/ucp_library.hpp"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
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

namespace {

/// UCX's own description: a line for each way and device, which ends with "way/device".
std::string facts_of(const UcpLibrary& ucp) {
    void* const loaded = ::dlopen("libucp.so.0", RTLD_NOW | RTLD_NOLOAD);
    const auto print_info = reinterpret_cast<decltype(&::ucp_context_print_info)>(
        ::dlsym(loaded, "ucp_context_print_info"));
    if (loaded == nullptr || print_info == nullptr) return "";
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_RMA | UCP_FEATURE_AMO64 | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
    ucp_config_t* config = nullptr;
    if (ucp.config_read(nullptr, nullptr, &config) != UCS_OK) return "";
    ucp_context_h context = nullptr;
    const LoadingOwnLibraries modules{AtExit::leave_usable};  // one for each kind of wire
    const auto status = ucp.init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context);
    ucp.config_release(config);
    if (status != UCS_OK) return "";
    char* text = nullptr;
    std::size_t bytes = 0;
    std::string facts;
    if (std::FILE* const out = ::open_memstream(&text, &bytes)) {
        print_info(context, out);
        std::fclose(out);
        facts.assign(text, bytes);
        std::free(text);
    }
    ucp.cleanup(context);
    return facts;
}

/// "tcp (lo, eth0), posix (memory)": what UCX_TLS and UCX_NET_DEVICES leave of what is there.
std::string ways_of(std::string_view facts) {
    std::string all, open_way;
    while (!facts.empty()) {
        const std::string_view line = facts.substr(0, facts.find('\n'));
        facts.remove_prefix(std::min(facts.size(), line.size() + 1));
        const std::string_view last = line.substr(line.find_last_of(' ') + 1);
        const std::size_t slash = last.find('/');
        if (line.find(" resource ") == line.npos || slash == last.npos) continue;
        const std::string way{last.substr(0, slash)}, device{last.substr(slash + 1)};
        if (way == "self") continue;
        if (way == open_way)
            all.insert(all.size() - 1, ", " + device);
        else
            all += (all.empty() ? "" : ", ") + way + " (" + device + ")";
        open_way = way;
    }
    return all.empty() ? "none" : all;
}

}  // namespace

Result<std::string> describe_library() {
    const auto ucp = UcpLibrary::load();
    if (!ucp) return ucp.error();
    return std::string("UCX ") + (*ucp)->get_version_string() +
           "; wires: " + ways_of(facts_of(**ucp));
}

}  // namespace hiroba::net::ucx
