// SPDX-License-Identifier: BSD-3-Clause
// Role: a program the launcher must refuse: linked without a dynamic loader.
#include <stdio.h>

int main(void) {
    puts("ran");
    return 0;
}
