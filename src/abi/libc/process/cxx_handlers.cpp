// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/process/cxx_handlers.hpp"

#include <dlfcn.h>

namespace hiroba::abi {
namespace {

using Handler = CxxHandlers::Handler;

/// One of them in the program's libstdc++; our own is hidden, and another.
struct Access {
    Handler (*get)() = nullptr;
    Handler (*set)(Handler) = nullptr;

    Access(const char* get_name, const char* set_name) noexcept
        : get(reinterpret_cast<Handler (*)()>(dlsym(RTLD_DEFAULT, get_name))),
          set(reinterpret_cast<Handler (*)(Handler)>(dlsym(RTLD_DEFAULT, set_name))) {}

    Handler now() const noexcept { return get != nullptr && set != nullptr ? get() : nullptr; }
    void become(Handler handler) const noexcept {
        if (get != nullptr && set != nullptr && get() != handler) set(handler);
    }
};

struct Accesses {
    Access terminate{"_ZSt13get_terminatev", "_ZSt13set_terminatePFvvE"};
    Access unexpected{"_ZSt14get_unexpectedv", "_ZSt14set_unexpectedPFvvE"};
    Access no_memory{"_ZSt15get_new_handlerv", "_ZSt15set_new_handlerPFvvE"};
};

const Accesses& accesses() noexcept {
    static const Accesses found;
    return found;
}

}  // namespace

CxxHandlers cxx_handlers() noexcept {
    const Accesses& access = accesses();
    return {access.terminate.now(), access.unexpected.now(), access.no_memory.now()};
}

void set_cxx_handlers(const CxxHandlers& handlers) noexcept {
    const Accesses& access = accesses();
    access.terminate.become(handlers.terminate);
    access.unexpected.become(handlers.unexpected);
    access.no_memory.become(handlers.no_memory);
}

}  // namespace hiroba::abi
