// SPDX-License-Identifier: BSD-3-Clause
// A program without OpenMP runs once and ends as ever.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
    char* text = strdup("no OpenMP here");
    printf("%s, %d arguments, %s\n", text, argc, argv[argc - 1]);
    fprintf(stderr, "and this goes to stderr\n");
    free(text);
    return 5;
}
