// SPDX-License-Identifier: BSD-3-Clause
// Role: getaddrinfo() for the program. libc makes the list in its own heap beside what the resolver
// keeps, so the finished list is copied, as in duplicates.cpp.
// Invariant: a list is the program's as a whole or libc's as a whole; freeaddrinfo() tells them by
// their address.
#include <netdb.h>
#include <string.h>

#include <cstddef>

#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/real.hpp"

using namespace hiroba;

HIROBA_REAL(getaddrinfo);
HIROBA_REAL(freeaddrinfo);

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

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int getaddrinfo(const char* name, const char* service, const addrinfo* hints, addrinfo** list) {
    if (!abi::is_spread() || !abi::is_for_program(__builtin_return_address(0)))
        return real_getaddrinfo(name, service, hints, list);
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

void freeaddrinfo(addrinfo* list) noexcept {
    if (list != nullptr && abi::is_spread() && abi::is_program_memory(list))
        return free_copies(list);
    real_freeaddrinfo(list);
}

}  // extern "C"
