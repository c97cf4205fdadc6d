// SPDX-License-Identifier: BSD-3-Clause
// Role: lists that libc makes in one block or in a few, for the program: network interfaces, names
// of a stack's functions, words of a shell's line, sets of processors.
// Invariant: the program gets a copy of the whole in one block of global memory; what frees it
// knows it by its address.
#include <execinfo.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <wordexp.h>

#include <cerrno>
#include <cstddef>

#include "abi/libc/memory/copied_results.hpp"
#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/real.hpp"

HIROBA_REAL(getifaddrs);
HIROBA_REAL(freeifaddrs);
HIROBA_REAL(if_nameindex);
HIROBA_REAL(if_freenameindex);
HIROBA_REAL(backtrace_symbols);
HIROBA_REAL(wordexp);
HIROBA_REAL(wordfree);

using namespace hiroba;

#define HIROBA_CALLER __builtin_return_address(0)

namespace {

bool serves_program(const void* return_address) noexcept {
    return abi::is_spread() && abi::is_for_program(return_address);
}

bool is_ours(const void* block) noexcept {
    return block != nullptr && abi::is_spread() && abi::is_program_memory(block);
}

/// An address says its family, not its size; libc's own block has room for these.
std::size_t bytes_of(const sockaddr* address) noexcept {
    if (address == nullptr) return 0;
    switch (address->sa_family) {
        case AF_INET: return 16;
        case AF_INET6: return 28;
        default: return sizeof(sockaddr_ll);
    }
}

sockaddr* copy_address(abi::Copying& to, const sockaddr* address) noexcept {
    return address == nullptr ? nullptr
                              : static_cast<sockaddr*>(to.bytes_at(address, bytes_of(address)));
}

ifaddrs* copy_interfaces(abi::Copying& to, const ifaddrs* made) noexcept {
    constexpr std::size_t statistics_bytes = 23 * sizeof(int);  // struct rtnl_link_stats
    ifaddrs* first = nullptr;
    ifaddrs** link = &first;
    for (; made != nullptr; made = made->ifa_next) {
        ifaddrs copy = *made;
        ifaddrs* const place = to.one(*made);
        copy.ifa_next = nullptr;
        copy.ifa_name = to.text(made->ifa_name);
        copy.ifa_addr = copy_address(to, made->ifa_addr);
        copy.ifa_netmask = copy_address(to, made->ifa_netmask);
        copy.ifa_ifu.ifu_dstaddr = copy_address(to, made->ifa_ifu.ifu_dstaddr);
        if (made->ifa_data != nullptr)
            copy.ifa_data = to.bytes_at(made->ifa_data, statistics_bytes);
        if (place == nullptr) continue;
        *place = copy;
        *link = place;
        link = &place->ifa_next;
    }
    return first;
}

/// The words of `made` behind those that `words` has, if it goes on with them. 0 or an error.
int take_words(const wordexp_t& made, wordexp_t& words, int flags) noexcept {
    const bool goes_on = (flags & WRDE_APPEND) != 0;
    const std::size_t in_front = (flags & WRDE_DOOFFS) != 0 ? words.we_offs : 0;
    const std::size_t before = goes_on ? words.we_wordc : 0;
    const std::size_t count = in_front + before + made.we_wordc;
    auto** const all = static_cast<char**>(abi::libc_calloc(count + 1, sizeof(char*)));
    if (all == nullptr) return WRDE_NOSPACE;
    for (std::size_t i = 0; i < before; ++i) all[in_front + i] = words.we_wordv[in_front + i];
    for (std::size_t i = 0; i < made.we_wordc; ++i) all[in_front + before + i] = made.we_wordv[i];
    char** const list =
        abi::copy_for_program([&](abi::Copying& to) { return to.texts(all, count, true); });
    abi::libc_free(all);
    if (list == nullptr) return WRDE_NOSPACE;
    if ((goes_on || (flags & WRDE_REUSE) != 0) && is_ours(words.we_wordv))
        abi::give_back(words.we_wordv);
    words.we_wordc = before + made.we_wordc;
    words.we_wordv = list;
    return 0;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int getifaddrs(ifaddrs** list) noexcept {
    if (!serves_program(HIROBA_CALLER)) return real_getifaddrs(list);
    ifaddrs* made = nullptr;
    if (real_getifaddrs(&made) != 0) return -1;
    *list = abi::copy_for_program([&](abi::Copying& to) { return copy_interfaces(to, made); });
    const bool is_whole = made == nullptr || *list != nullptr;
    real_freeifaddrs(made);
    return is_whole ? 0 : -1;
}
void freeifaddrs(ifaddrs* list) noexcept {
    is_ours(list) ? abi::give_back(list) : real_freeifaddrs(list);
}

struct if_nameindex* if_nameindex() noexcept {
    auto* const made = real_if_nameindex();
    if (made == nullptr || !serves_program(HIROBA_CALLER)) return made;
    std::size_t count = 0;
    while (made[count].if_index != 0) ++count;
    using Names = struct if_nameindex;
    auto* const copy = abi::copy_for_program([&](abi::Copying& to) {
        auto* const list = static_cast<Names*>(to.bytes_at(made, (count + 1) * sizeof(Names)));
        for (std::size_t i = 0; i < count; ++i) {
            char* const name = to.text(made[i].if_name);
            if (list != nullptr) list[i].if_name = name;
        }
        return list;
    });
    real_if_freenameindex(made);
    return copy;
}
void if_freenameindex(struct if_nameindex* list) noexcept {
    is_ours(list) ? abi::give_back(list) : real_if_freenameindex(list);
}

char** backtrace_symbols(void* const* addresses, int count) noexcept {
    char** const made = real_backtrace_symbols(addresses, count);
    if (made == nullptr || !serves_program(HIROBA_CALLER)) return made;
    char** const copy = abi::copy_for_program(
        [&](abi::Copying& to) { return to.texts(made, static_cast<std::size_t>(count), false); });
    abi::libc_free(made);
    return copy;
}

int wordexp(const char* text, wordexp_t* words, int flags) {
    if (!serves_program(HIROBA_CALLER)) return real_wordexp(text, words, flags);
    wordexp_t made = {};
    int result = real_wordexp(text, &made, flags & ~(WRDE_APPEND | WRDE_REUSE | WRDE_DOOFFS));
    if (result != 0) return result;
    result = take_words(made, *words, flags);
    real_wordfree(&made);
    return result;
}
void wordfree(wordexp_t* words) {
    if (!is_ours(words->we_wordv)) return real_wordfree(words);
    abi::give_back(words->we_wordv);
    words->we_wordv = nullptr;
}

cpu_set_t* __sched_cpualloc(size_t count) noexcept {
    return static_cast<cpu_set_t*>(abi::allocate(CPU_ALLOC_SIZE(count), HIROBA_CALLER));
}
void __sched_cpufree(cpu_set_t* set) noexcept { abi::release_block(set); }

}  // extern "C"
