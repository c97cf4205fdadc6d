/* SPDX-License-Identifier: BSD-3-Clause
   Role: what the programs of the C face share. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hiroba/hiroba.h"

/* Ends the process, and with it the job. */
#define INSIST(good)                                                                            \
    do {                                                                                        \
        if (!(good)) {                                                                          \
            fprintf(stderr, "WRONG: line %d: %s (%s)\n", __LINE__, #good, hiroba_last_error()); \
            exit(9);                                                                            \
        }                                                                                       \
    } while (0)
/* A call that is to end with `code`, and whose line has `text` in it. */
#define EXPECT(call, code, text)                             \
    do {                                                     \
        INSIST((call) == (code));                            \
        INSIST(strstr(hiroba_last_error(), (text)) != NULL); \
    } while (0)
