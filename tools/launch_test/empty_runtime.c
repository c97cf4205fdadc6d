// SPDX-License-Identifier: BSD-3-Clause
// Role: stands where the runtime library would be; preloading it changes nothing.

int hiroba_empty_runtime(void) { return 1; }
