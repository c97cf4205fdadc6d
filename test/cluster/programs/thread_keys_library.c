// SPDX-License-Identifier: BSD-3-Clause
// A library that makes a thread-specific key before main, and sets it there.
#include <pthread.h>

static pthread_key_t key;

pthread_key_t key_of_library(void) { return key; }
const char* value_of_library(void) { return pthread_getspecific(key); }

__attribute__((constructor)) static void make(void) {
    pthread_key_create(&key, NULL);
    pthread_setspecific(key, "early");
}
