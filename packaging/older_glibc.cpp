// SPDX-License-Identifier: BSD-3-Clause
// Role: what the compiler's static libraries ask of a C library newer than glibc 2.31; linked into each program and
// library of the portable build (HIROBA_PORTABLE), for themselves alone.
#include <stdint.h>
#include <sys/random.h>

#define HIDDEN __attribute__((visibility("hidden")))

extern "C" {

// libgcc (glibc 2.35): -1 says "not found", and the unwinder then asks dl_iterate_phdr().
HIDDEN int _dl_find_object(void*, void*) { return -1; }

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
