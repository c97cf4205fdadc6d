// SPDX-License-Identifier: BSD-3-Clause
// What code of gcc 15 and 16 calls and that of gcc 14 does not, called as that code would. Linked
// with a library that has the names under gcc's version nodes and does nothing (newer_gcc.py).
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef void* interop;
void GOMP_interop(int device, int made, interop** init, const int* kinds, const char** wanted,
                  int used, interop* use, int ended, interop** destroy, unsigned flags,
                  void** depend);
int omp_get_num_interop_properties(interop object);
intptr_t omp_get_interop_int(interop object, int property, int* code);
void* omp_get_interop_ptr(interop object, int property, int* code);
const char* omp_get_interop_name(interop object, int property);
const char* omp_get_interop_type_desc(interop object, int property);
const char* omp_get_interop_rc_desc(interop object, int code);
void omp_get_interop_name_(const char** text, size_t* length, interop object, int property);
void omp_get_interop_str_(const char** text, size_t* length, interop object, int property,
                          int* code);
const char* omp_get_uid_from_device(int device);
int omp_get_device_from_uid(const char* uid);
void omp_get_uid_from_device_(const char** text, size_t* length, int device);
int omp_get_device_from_uid_(const char* uid, size_t length);
void* omp_target_memset(void* at, int value, size_t bytes, int device);
void* omp_target_memset_async(void* at, int value, size_t bytes, int device, int count,
                              omp_depend_t* objects);

enum { initial_device = -1, default_device = -5, invalid_device = -4 };

static void pass_time(void) {
    const double until = omp_get_wtime() + 2e-3;
    while (omp_get_wtime() < until) {
    }
}

/// `interop init(first, targetsync) destroy(second) depend(in : value)` behind a task on `value`.
static void interops(void) {
    int value = 0, seen = -1;
    interop first = &value, second = &value;
#pragma omp parallel
#pragma omp single
    {
#pragma omp task depend(out : value) shared(value)
        {
            pass_time();
            value = 7;
        }
        interop* made[] = {&first};
        interop* ended[] = {&second};
        const int kinds[] = {2};
        void* depend[] = {(void*)(uintptr_t)1, (void*)(uintptr_t)0, &value};
        GOMP_interop(initial_device, 1, made, kinds, NULL, 0, NULL, 1, ended, 0, depend);
        seen = value;
    }
    printf("interop %d %s %d %d\n", seen, first == NULL && second == NULL ? "none" : "some",
           omp_get_interop_ptr(first, -9, NULL) == NULL,
           omp_get_interop_type_desc(first, -1) == NULL);
    int empty = 9, beyond = 9, code = 9;
    omp_get_interop_int(first, -5, &empty);
    omp_get_interop_int(first, -10, &beyond);
    const char* name = NULL;
    const char* text = "";
    size_t length = 0, none = 9;
    omp_get_interop_name_(&name, &length, first, -9);
    omp_get_interop_str_(&text, &none, first, -4, &code);
    printf("properties %d %d %d %s %.*s %s\n", omp_get_num_interop_properties(first), empty, beyond,
           omp_get_interop_name(first, -1), (int)length, name,
           text == NULL && none == 0 && code == -1 &&
                   omp_get_interop_rc_desc(first, code) != NULL &&
                   omp_get_interop_rc_desc(first, 2) == NULL
               ? "none"
               : "some");
}

static void names_of_devices(void) {
    const char* const name = omp_get_uid_from_device(omp_get_initial_device());
    const char* by_fortran = NULL;
    size_t length = 0;
    omp_get_uid_from_device_(&by_fortran, &length, initial_device);
    omp_set_default_device(0);
    printf("uid %d %d %d %d %d\n", name != NULL && strcmp(name, "OMP_INITIAL_DEVICE") == 0,
           length == strlen(name) && memcmp(name, by_fortran, length) == 0,
           omp_get_uid_from_device(7) == NULL && omp_get_uid_from_device(default_device) == name,
           omp_get_device_from_uid_(by_fortran, length), omp_get_device_from_uid("GPU-0"));
}

/// Set on one node, read on all; the second waits for the task that its object names.
static void sets(void) {
    static unsigned char bytes[3][1000];
    int at_end = 0;
    omp_depend_t object;
    omp_target_memset(bytes[0], 40, sizeof bytes[0], initial_device);
    omp_target_memset(bytes[1], 40, sizeof bytes[1], omp_get_initial_device());
#pragma omp parallel
#pragma omp single
    {
#pragma omp depobj(object) depend(inout : bytes[2])
#pragma omp task depend(inout : bytes[2])
        {
            pass_time();
            memset(bytes[2], 5, sizeof bytes[2]);
        }
        omp_target_memset_async(bytes[2], 40, 999, default_device, 1, &object);
#pragma omp taskwait
        at_end = bytes[2][999];
#pragma omp depobj(object) destroy
    }
    int right[3] = {0};
#pragma omp parallel for reduction(+ : right[:3])
    for (int i = 0; i < 999; ++i)
        for (int j = 0; j < 3; ++j) right[j] += bytes[j][i] == 40;
    printf("set %d %d %d %d\n", right[0] == 999 ? 40 : right[0], right[1] == 999 ? 40 : right[1],
           right[2] == 999 ? 40 : right[2], at_end);
}

int main(void) {
    interops();
    names_of_devices();
    sets();
    const omp_allocator_handle_t pinned = (omp_allocator_handle_t)200, managed = pinned + 1;
    void* const block = omp_alloc(100, managed);
    printf("pinned %s, managed %s\n", omp_alloc(100, pinned) == NULL ? "none" : "some",
           block != NULL ? "some" : "none");
    omp_free(block, managed);
    return 0;
}
