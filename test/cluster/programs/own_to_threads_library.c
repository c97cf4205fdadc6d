// SPDX-License-Identifier: BSD-3-Clause
// Data that each thread has for itself in a library: it is found by a call of the loader's.
static __thread long own;
long* own_in_library(void) { return &own; }
