// SPDX-License-Identifier: BSD-3-Clause
#include "base/own_libraries.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bitset>
#include <span>

#include "base/bytes.hpp"
#include "base/fatal.hpp"

namespace hiroba {
namespace {

/// Addresses of objects. One thread adds; others may read what was there when they began.
struct Objects {
    std::array<std::uintptr_t, 512> biases{};
    std::atomic<std::size_t> count{0};

    bool contain(std::uintptr_t bias) const noexcept {
        const auto known = std::span(biases).first(count.load(std::memory_order_acquire));  // add()
        return std::ranges::find(known, bias) != known.end();
    }
    void add(std::uintptr_t bias) noexcept {
        const std::size_t at = count.load(std::memory_order_relaxed);
        HIROBA_INVARIANT(at < biases.size(), "%lu shared objects", at);
        biases[at] = bias;
        count.store(at + 1, std::memory_order_release);  // pairs with contain()
    }
};

constexpr int descriptors_max = 1024;
using Descriptors = std::bitset<descriptors_max>;

Descriptors open_descriptors() noexcept {
    Descriptors open;
    for (int fd = 0; fd < descriptors_max; ++fd)
        if (::fcntl(fd, F_GETFD) >= 0) open.set(static_cast<std::size_t>(fd));
    return open;
}

/// Executable segments of own libraries, each its begin and end.
struct Code {
    std::array<std::uintptr_t, 128> begins{}, ends{};
    std::atomic<std::size_t> count{0};
};
constinit Code code;

void add_code(const dl_phdr_info& info) noexcept {
    for (int i = 0; i < info.dlpi_phnum; ++i) {
        const ElfW(Phdr)& header = info.dlpi_phdr[i];
        if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
        const std::size_t at = code.count.load(std::memory_order_relaxed);
        HIROBA_INVARIANT(at < code.begins.size(), "%lu pieces of code", at);
        code.begins[at] = info.dlpi_addr + header.p_vaddr;
        code.ends[at] = code.begins[at] + header.p_memsz;
        code.count.store(at + 1, std::memory_order_release);  // pairs with is_own_library_code()
    }
}

/// The object's dynamic section, as the loader uses it; empty when there is none.
std::span<ElfW(Dyn)> dynamic_section(const dl_phdr_info& info) noexcept {
    for (int i = 0; i < info.dlpi_phnum; ++i) {
        const ElfW(Phdr)& header = info.dlpi_phdr[i];
        if (header.p_type != PT_DYNAMIC) continue;
        auto* const first = reinterpret_cast<ElfW(Dyn)*>(info.dlpi_addr + header.p_vaddr);
        return {first, header.p_memsz / sizeof *first};
    }
    return {};
}

bool is_read_only_since_relocation(const dl_phdr_info& info, std::uintptr_t at) noexcept {
    return std::ranges::any_of(std::span(info.dlpi_phdr, info.dlpi_phnum),
                               [&](const ElfW(Phdr) & header) {
                                   return header.p_type == PT_GNU_RELRO &&
                                          at - (info.dlpi_addr + header.p_vaddr) < header.p_memsz;
                               });
}

/// Gives an entry of an object's dynamic section another value, which the loader reads when it
/// needs it. The section may be read-only since the object was relocated (PT_GNU_RELRO), and is so
/// after.
void set_dynamic(const dl_phdr_info& info, ElfW(Sxword) tag, ElfW(Xword) value) noexcept {
    const std::span<ElfW(Dyn)> section = dynamic_section(info);
    const auto entry = std::ranges::find(section, tag, &ElfW(Dyn)::d_tag);
    if (entry == section.end() || entry->d_un.d_val == value) return;
    const auto at = reinterpret_cast<std::uintptr_t>(&entry->d_un.d_val);
    void* const page = reinterpret_cast<void*>(round_down(at, page_bytes));
    const std::size_t bytes =
        round_up(at + sizeof entry->d_un.d_val, page_bytes) - round_down(at, page_bytes);
    if (::mprotect(page, bytes, PROT_READ | PROT_WRITE) != 0) return;  // as before
    entry->d_un.d_val = value;
    if (is_read_only_since_relocation(info, at)) ::mprotect(page, bytes, PROT_READ);
}

/// Empties the object's list of finalizers, whose length the loader reads when it runs them.
void drop_finalizers(const dl_phdr_info& info) noexcept { set_dynamic(info, DT_FINI_ARRAYSZ, 0); }

constinit Objects before, own;
/// Written by the one thread that loads, read by others that were made later.
Descriptors open_before, own_descriptors;
constinit bool loaded_any = false;
constinit std::atomic<bool> loading{false};

}  // namespace

LoadingOwnLibraries::LoadingOwnLibraries(AtExit at_exit) noexcept : at_exit_(at_exit) {
    HIROBA_INVARIANT(!loading.load(), "two loads of own libraries at once, objects %lu",
                     before.count.load());
    before.count.store(0);
    if (!loaded_any) open_before = open_descriptors();
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void*) {
            before.add(info->dlpi_addr);
            return 0;
        },
        nullptr);
    loading.store(true, std::memory_order_release);  // pairs with is_own_library()
}

LoadingOwnLibraries::~LoadingOwnLibraries() {
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* at_exit) {
            if (!before.contain(info->dlpi_addr) && !own.contain(info->dlpi_addr)) {
                own.add(info->dlpi_addr);
                add_code(*info);
                if (*static_cast<AtExit*>(at_exit) == AtExit::leave_usable) drop_finalizers(*info);
            }
            return 0;
        },
        &at_exit_);
    loaded_any = true;
    note_own_descriptors();
    loading.store(false, std::memory_order_release);
}

void hide_name(void* handle) noexcept {
    link_map* map = nullptr;
    if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return;
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* bias) {
            // The table of names begins with the empty one.
            if (info->dlpi_addr == *static_cast<ElfW(Addr)*>(bias))
                set_dynamic(*info, DT_SONAME, 0);
            return 0;
        },
        &map->l_addr);
}

void note_own_descriptors() noexcept {
    if (loaded_any) own_descriptors |= open_descriptors() & ~open_before;
}

bool is_own_descriptor(int fd) noexcept {
    return fd >= 0 && fd < descriptors_max && own_descriptors.test(static_cast<std::size_t>(fd));
}

bool is_own_library_code(std::uintptr_t address) noexcept {
    const std::size_t count = code.count.load(std::memory_order_acquire);  // as add_code()
    for (std::size_t i = 0; i < count; ++i)
        if (address - code.begins[i] < code.ends[i] - code.begins[i]) return true;
    return false;
}

bool is_own_library(std::uintptr_t bias) noexcept {
    if (own.contain(bias)) return true;
    // Constructors run, and allocate, before the load is over.
    return loading.load(std::memory_order_acquire) && !before.contain(bias);
}

}  // namespace hiroba
