// SPDX-License-Identifier: BSD-3-Clause
// Role: getaddrinfo() and getaddrinfo_a() for the program. libc makes the list in its own heap
// beside what the resolver keeps, so the finished list is copied, as in duplicates.cpp. It serves
// getaddrinfo_a() by threads of its own, which know nothing of pages that are elsewhere: the caller
// looks all names up at once, and they are complete when the function returns. gai_error,
// gai_suspend and gai_cancel are libc's.
// Invariant: a list is the program's as a whole or libc's as a whole; freeaddrinfo() tells them by
// their address.
#include <netdb.h>
#include <signal.h>
#include <string.h>

#include <cerrno>
#include <cstddef>

#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/real.hpp"
#include "abi/libc/threads/notices.hpp"

using namespace hiroba;

HIROBA_REAL(getaddrinfo);
HIROBA_REAL(freeaddrinfo);
HIROBA_REAL(getaddrinfo_a);

namespace {

/// One entry with its address and name behind it, in one block. nullptr when there is no room.
addrinfo* copy_entry(const addrinfo& made) noexcept {
    const std::size_t name_bytes = made.ai_canonname != nullptr ? strlen(made.ai_canonname) + 1 : 0;
    const std::size_t address_bytes = made.ai_addr != nullptr ? made.ai_addrlen : 0;
    auto* const block = static_cast<char*>(
        abi::allocate_for_program(sizeof(addrinfo) + address_bytes + name_bytes, 16, false));
    if (block == nullptr) return nullptr;
    auto* const copy = reinterpret_cast<addrinfo*>(block);
    char* const address = block + sizeof(addrinfo);
    *copy = made;
    copy->ai_next = nullptr;
    if (made.ai_addr != nullptr)
        copy->ai_addr = static_cast<sockaddr*>(memcpy(address, made.ai_addr, address_bytes));
    if (name_bytes != 0)
        copy->ai_canonname =
            static_cast<char*>(memcpy(address + address_bytes, made.ai_canonname, name_bytes));
    return copy;
}

void free_copies(addrinfo* list) noexcept {
    while (list != nullptr) {
        addrinfo* const next = list->ai_next;
        abi::give_back(list);
        list = next;
    }
}

/// A list of the program's.
int look_up(const char* name, const char* service, const addrinfo* hints, addrinfo** list) {
    addrinfo* made = nullptr;
    const int result = real_getaddrinfo(name, service, hints, &made);
    if (result != 0) return result;
    addrinfo* first = nullptr;
    addrinfo** link = &first;
    bool complete = true;
    for (const addrinfo* each = made; each != nullptr && complete; each = each->ai_next) {
        *link = copy_entry(*each);
        complete = *link != nullptr;
        if (complete) link = &(*link)->ai_next;
    }
    real_freeaddrinfo(made);
    if (!complete) {
        free_copies(first);
        return EAI_MEMORY;
    }
    *list = first;
    return 0;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int getaddrinfo(const char* name, const char* service, const addrinfo* hints, addrinfo** list) {
    if (!abi::is_spread() || !abi::is_for_program(__builtin_return_address(0)))
        return real_getaddrinfo(name, service, hints, list);
    return look_up(name, service, hints, list);
}

void freeaddrinfo(addrinfo* list) noexcept {
    if (list != nullptr && abi::is_spread() && abi::is_program_memory(list))
        return free_copies(list);
    real_freeaddrinfo(list);
}

int getaddrinfo_a(int mode, gaicb* list[], int count, sigevent* event) {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_getaddrinfo_a(mode, list, count, event);
    if (mode != GAI_WAIT && mode != GAI_NOWAIT) {
        errno = EINVAL;
        return EAI_SYSTEM;
    }
    for (int i = 0; i < count; ++i) {
        if (list[i] == nullptr) continue;
        gaicb& request = *list[i];
        request.__return =
            look_up(request.ar_name, request.ar_service, request.ar_request, &request.ar_result);
    }
    if (mode == GAI_NOWAIT && event != nullptr) abi::tell_program(*event, SI_ASYNCNL);
    return 0;
}

}  // extern "C"
