// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/process/cxx_handlers.hpp"

#include <dlfcn.h>

#include <cstddef>

#include "abi/libc/sync/runtime_mutexes.hpp"

namespace hiroba::abi {
namespace {

template <class Function>
Function* find(const char* name) noexcept {
    return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

/// One that is a pointer, in the program's libstdc++; our own is hidden, and another.
template <class Value>
struct Access {
    Value (*get)() = nullptr;
    Value (*set)(Value) = nullptr;

    Access(const char* get_name, const char* set_name) noexcept
        : get(find<Value()>(get_name)), set(find<Value(Value)>(set_name)) {}

    Value now() const noexcept { return get != nullptr && set != nullptr ? get() : nullptr; }
    void become(Value value) const noexcept {
        if (get != nullptr && set != nullptr && get() != value) set(value);
    }
};

// A std::locale is a pointer to a body, which counts its objects, and points to facets, which count
// bodies. So libstdc++ lays them out since its first version with this ABI.
struct Facet {
    void* functions;
    int references;
};
struct LocaleBody {
    int references;
    Facet** facets;
    std::size_t count;
    Facet** caches;
};
struct Locale {
    LocaleBody* body;
};

/// The one of "C" is static: each node has its own. Objects that one node makes and another
/// destroys would take it, or a facet, for done with.
void keep_for_ever(LocaleBody& body) noexcept {
    constexpr int many = 1 << 29;
    body.references += many;
    for (Facet** const list : {body.facets, body.caches})
        for (std::size_t i = 0; i < body.count; ++i)
            if (list[i] != nullptr) list[i]->references += many;
}

/// std::locale::global() and what a default object refers to.
class LocaleAccess {
public:
    LocaleAccess() noexcept {
        if (classic_ != nullptr) keep_for_ever(*classic_()->body);
    }
    void* now() const noexcept {
        if (!is_whole()) return nullptr;
        Locale made;
        make_(&made);
        LocaleBody* const body = made.body;
        if (body != classic_()->body) destroy_(&made);  // it counts
        return body;
    }
    void become(void* body) const noexcept {
        if (body == nullptr || !is_whole() || now() == body) return;
        const Locale next{static_cast<LocaleBody*>(body)};
        Locale before;
        set_(&before, &next);
        destroy_(&before);
    }

private:
    bool is_whole() const noexcept {
        return classic_ != nullptr && make_ != nullptr && destroy_ != nullptr && set_ != nullptr;
    }

    const Locale* (*classic_)() = find<const Locale*()>("_ZNSt6locale7classicEv");
    void (*make_)(Locale*) = find<void(Locale*)>("_ZNSt6localeC1Ev");
    void (*destroy_)(Locale*) = find<void(Locale*)>("_ZNSt6localeD1Ev");
    /// Its result is an object, so the caller gives the place first.
    void* (*set_)(Locale*,
                  const Locale*) = find<void*(Locale*, const Locale*)>("_ZNSt6locale6globalERKS_");
};

using Handler = CxxHandlers::Handler;

struct Accesses {
    Accesses() noexcept { learn_runtime_mutexes(); }

    Access<Handler> terminate{"_ZSt13get_terminatev", "_ZSt13set_terminatePFvvE"};
    Access<Handler> unexpected{"_ZSt14get_unexpectedv", "_ZSt14set_unexpectedPFvvE"};
    Access<Handler> no_memory{"_ZSt15get_new_handlerv", "_ZSt15set_new_handlerPFvvE"};
    Access<void*> resource{"_ZNSt3pmr20get_default_resourceEv",
                           "_ZNSt3pmr20set_default_resourceEPNS_15memory_resourceE"};
    LocaleAccess locale;
};

const Accesses& accesses() noexcept {
    static const Accesses found;
    return found;
}

}  // namespace

CxxHandlers cxx_handlers() noexcept {
    const Accesses& access = accesses();
    return {access.terminate.now(), access.unexpected.now(), access.no_memory.now(),
            access.resource.now(), access.locale.now()};
}

void set_cxx_handlers(const CxxHandlers& handlers) noexcept {
    const Accesses& access = accesses();
    access.terminate.become(handlers.terminate);
    access.unexpected.become(handlers.unexpected);
    access.no_memory.become(handlers.no_memory);
    access.resource.become(handlers.resource);
    access.locale.become(handlers.locale);
}

}  // namespace hiroba::abi
