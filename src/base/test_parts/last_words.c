// SPDX-License-Identifier: BSD-3-Clause
// Role: a library that says when it is finalized, for own_libraries_test.cpp.
#include <unistd.h>

static int told = -1;

__attribute__((visibility("default"))) void tell_end_to(int descriptor) { told = descriptor; }

__attribute__((destructor)) static void say(void) {
    if (told >= 0 && write(told, "f", 1) != 1) _exit(3);
}
