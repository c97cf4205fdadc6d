// SPDX-License-Identifier: BSD-3-Clause
// Role: see ibverbs_library.hpp.
#include "net/provider/verbs/ibverbs_library.hpp"

#include <dlfcn.h>

#include <filesystem>
#include <string>
#include <type_traits>

#include "base/own_libraries.hpp"

namespace hiroba::net::verbs {

Result<const IbverbsLibrary*> IbverbsLibrary::load() {
    static IbverbsLibrary library;
    static bool loaded = false;
    if (loaded) return &library;
    const LoadingOwnLibraries own{AtExit::leave_usable};
    void* const handle = ::dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr)
        return Error{ErrorKind::environment,
                     std::string("HIROBA_PROVIDER=verbs: libibverbs cannot be loaded: ") +
                         ::dlerror() +
                         ". Install it (Debian: libibverbs1 ibverbs-providers), or choose another "
                         "provider"};
    const char* missing = nullptr;
    const auto find = [&](auto& function, const char* name) {
        function =
            reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(handle, name));
        if (function == nullptr) missing = name;
    };
    find(library.get_device_list, "ibv_get_device_list");
    find(library.free_device_list, "ibv_free_device_list");
    find(library.get_device_name, "ibv_get_device_name");
    find(library.open_device, "ibv_open_device");
    find(library.close_device, "ibv_close_device");
    find(library.query_device, "ibv_query_device");
    find(library.query_port, "ibv_query_port");
    find(library.query_gid, "ibv_query_gid");
    find(library.alloc_pd, "ibv_alloc_pd");
    find(library.dealloc_pd, "ibv_dealloc_pd");
    find(library.reg_mr, "ibv_reg_mr");
    find(library.dereg_mr, "ibv_dereg_mr");
    find(library.create_comp_channel, "ibv_create_comp_channel");
    find(library.destroy_comp_channel, "ibv_destroy_comp_channel");
    find(library.create_cq, "ibv_create_cq");
    find(library.destroy_cq, "ibv_destroy_cq");
    find(library.get_cq_event, "ibv_get_cq_event");
    find(library.ack_cq_events, "ibv_ack_cq_events");
    find(library.create_srq, "ibv_create_srq");
    find(library.destroy_srq, "ibv_destroy_srq");
    find(library.create_qp, "ibv_create_qp");
    find(library.modify_qp, "ibv_modify_qp");
    find(library.query_qp, "ibv_query_qp");
    find(library.destroy_qp, "ibv_destroy_qp");
    find(library.create_ah, "ibv_create_ah");
    find(library.destroy_ah, "ibv_destroy_ah");
    find(library.wc_status_str, "ibv_wc_status_str");
    if (missing != nullptr)
        return Error{ErrorKind::environment,
                     std::string("HIROBA_PROVIDER=verbs: libibverbs.so.1 has no ") + missing +
                         ". Install rdma-core 14 or later"};
    loaded = true;
    return &library;
}

std::string IbverbsLibrary::file() const {
    Dl_info about{};
    std::error_code none;
    if (::dladdr(reinterpret_cast<const void*>(open_device), &about) == 0) return "";
    return std::filesystem::canonical(about.dli_fname, none).filename().string();
}

}  // namespace hiroba::net::verbs
