// SPDX-License-Identifier: BSD-3-Clause
// Role: what the compiler's static libraries ask of a C library newer than glibc 2.31; linked into
// each program and library of the portable build (HIROBA_PORTABLE), for themselves alone.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/random.h>

#define HIDDEN __attribute__((visibility("hidden")))

namespace {

/// The program headers of a loaded object; those of the program itself come from the kernel.
struct Headers {
    explicit Headers(const link_map& object) {
        if (object.l_prev == nullptr) {
            first = reinterpret_cast<const ElfW(Phdr)*>(getauxval(AT_PHDR));
            count = getauxval(AT_PHNUM);
            return;
        }
        const auto* const file = reinterpret_cast<const ElfW(Ehdr)*>(object.l_addr);
        first = reinterpret_cast<const ElfW(Phdr)*>(object.l_addr + file->e_phoff);
        count = file->e_phnum;
    }
    const ElfW(Phdr) * first;
    unsigned long count;
};

bool describe(link_map& object, uintptr_t address, dl_find_object* found) {
    const Headers headers{object};
    uintptr_t begin = UINTPTR_MAX, end = 0, frames = 0;
    for (unsigned long i = 0; i < headers.count; ++i) {
        const ElfW(Phdr)& header = headers.first[i];
        const uintptr_t at = object.l_addr + header.p_vaddr;
        if (header.p_type == PT_GNU_EH_FRAME) frames = at;
        if (header.p_type != PT_LOAD) continue;
        if (at < begin) begin = at;
        if (at + header.p_memsz > end) end = at + header.p_memsz;
    }
    if (address < begin || address >= end) return false;
    *found = {};
    found->dlfo_map_start = reinterpret_cast<void*>(begin);
    found->dlfo_map_end = reinterpret_cast<void*>(end);
    found->dlfo_link_map = &object;
    found->dlfo_eh_frame = reinterpret_cast<void*>(frames);
    return true;
}

}  // namespace

extern "C" {

// libgcc's unwinder and the runtime (glibc 2.35). Takes no lock, as the C library's: the list of
// objects grows at its end, and nothing is asked of an address whose library is being closed.
HIDDEN int _dl_find_object(void* address, dl_find_object* found) noexcept {
    for (link_map* object = _r_debug.r_map; object != nullptr; object = object->l_next)
        if (describe(*object, reinterpret_cast<uintptr_t>(address), found)) return 0;
    return -1;
}

// libstdc++ (glibc 2.32): not 0 allows reference counts without atomic instructions.
HIDDEN char __libc_single_threaded = 0;

// libstdc++'s random_device (glibc 2.36).
HIDDEN uint32_t arc4random() {
    uint32_t value = 0;
    while (getrandom(&value, sizeof value, 0) != sizeof value) {
    }
    return value;
}

}  // extern "C"
