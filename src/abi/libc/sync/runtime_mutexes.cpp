// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/sync/runtime_mutexes.hpp"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "abi/libc/real.hpp"

namespace hiroba::abi {
namespace {

constexpr const char* functions[] = {"_ZNSt10_Sp_lockerC1EPKv", "_ZNSt10_Sp_lockerC1EPKvS1_",
                                     "_ZNSt6locale5_Impl16_M_install_cacheEPKNS_5facetEm"};

struct Code {
    std::uintptr_t begin = 0, end = 0;
};
constinit Code code[std::size(functions)];
constinit std::atomic<bool> is_learned{false};

/// libstdc++ has one for what locales put aside, and 16 for shared pointers.
constexpr std::size_t mutexes_max = 32;
constinit std::atomic<const pthread_mutex_t*> mutexes[mutexes_max];

Code code_of(const char* name) noexcept {
    void* const function = find_real_if_any(name);
    Dl_info info;
    const ElfW(Sym)* symbol = nullptr;
    if (function == nullptr ||
        dladdr1(function, &info, reinterpret_cast<void**>(const_cast<ElfW(Sym)**>(&symbol)),
                RTLD_DL_SYMENT) == 0 ||
        symbol == nullptr)
        return {};
    const auto begin = reinterpret_cast<std::uintptr_t>(function);
    return {begin, begin + symbol->st_size};
}

/// False: there is no room.
bool remember(const pthread_mutex_t* mutex) noexcept {
    for (auto& each : mutexes) {
        const pthread_mutex_t* known = nullptr;  // relaxed: the word is all there is to know
        if (each.compare_exchange_strong(known, mutex, std::memory_order_relaxed)) return true;
        if (known == mutex) return true;
    }
    return false;
}

}  // namespace

void learn_runtime_mutexes() noexcept {
    for (std::size_t i = 0; i < std::size(functions); ++i) code[i] = code_of(functions[i]);
    is_learned.store(true, std::memory_order_release);  // pairs with takes_runtime_mutex()
}

bool takes_runtime_mutex(const pthread_mutex_t* mutex, const void* return_address) noexcept {
    if (!is_learned.load(std::memory_order_acquire)) return false;
    const auto address = reinterpret_cast<std::uintptr_t>(return_address);
    for (const Code& each : code)
        if (address >= each.begin && address < each.end) return remember(mutex);
    return false;
}

bool is_runtime_mutex(const pthread_mutex_t* mutex) noexcept {
    for (const auto& each : mutexes) {
        const pthread_mutex_t* const known = each.load(std::memory_order_relaxed);
        if (known == mutex) return true;
        if (known == nullptr) return false;
    }
    return false;
}

}  // namespace hiroba::abi
