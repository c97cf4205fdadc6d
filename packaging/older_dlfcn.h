// SPDX-License-Identifier: BSD-3-Clause
// What glibc 2.35 adds to <dlfcn.h>, for the portable build: packaging/older_glibc.cpp defines it.
#ifndef HIROBA_OLDER_DLFCN
#define HIROBA_OLDER_DLFCN
struct link_map;
struct dl_find_object {
    unsigned long long dlfo_flags;
    void *dlfo_map_start, *dlfo_map_end;
    struct link_map* dlfo_link_map;
    void* dlfo_eh_frame;
    unsigned long long dlfo_reserved[7];
};
#ifdef __cplusplus
extern "C"
#endif
    int _dl_find_object(void* address, struct dl_find_object* found)
#ifdef __cplusplus
        noexcept
#endif
    ;
#endif
