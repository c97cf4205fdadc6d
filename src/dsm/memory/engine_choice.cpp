// SPDX-License-Identifier: BSD-3-Clause
// Role: chooses the fault engine: the user's wish, or else the first that works here.
#include <string>
#include <string_view>

#include "dsm/memory/fault_engine.hpp"
#include "dsm/memory/mprotect_engine.hpp"
#include "dsm/memory/uffd_engine.hpp"

namespace hiroba::dsm {
namespace {

template <class Engine>
Result<std::unique_ptr<FaultEngine>> make(std::string why) {
    auto engine = Engine::create(std::move(why));
    if (!engine) return engine.error();
    return std::unique_ptr<FaultEngine>{std::move(*engine)};
}

}  // namespace

Result<std::unique_ptr<FaultEngine>> make_fault_engine(std::string_view wanted) {
    if (wanted != "auto" && wanted != "uffd" && wanted != "mprotect")
        return Error{ErrorKind::usage, "HIROBA_FAULT_ENGINE=" + std::string(wanted) +
                                           " is none of auto, uffd, mprotect"};
    if (wanted == "mprotect") return make<MprotectEngine>("HIROBA_FAULT_ENGINE asks for it");

    const EngineProbe uffd = probe_uffd();
    if (uffd.usable)
        return make<UffdEngine>(wanted == "uffd" ? "HIROBA_FAULT_ENGINE asks for it" : uffd.reason);
    if (wanted == "uffd")
        return Error{ErrorKind::environment, "HIROBA_FAULT_ENGINE=uffd cannot be had: " +
                                                 uffd.reason + "; auto or mprotect would work"};
    return make<MprotectEngine>(uffd.reason);
}

}  // namespace hiroba::dsm
