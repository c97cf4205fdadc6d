#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Checks what libhiroba.so shows to a program: its interposed entry points and version nodes, and
# nothing of its own C++ runtime, which would replace the program's.
set -eu
library=$1
names=$(nm -D --defined-only "$library" | sed 's/@.*//; s/.* //')
status=0

for wanted in __libc_start_main malloc free read write sigaction pthread_create exit GOMP_parallel \
              pthread_mutex_lock pthread_cond_wait \
              omp_get_thread_num; do
    echo "$names" | grep -qx "$wanted" || { echo "not exported: $wanted"; status=1; }
done
for node in GOMP_1.0 GOMP_4.0 GOMP_5.1 GOMP_5.1.1 GOMP_5.1.2 GOMP_5.1.3 GOMP_6.0 GOMP_6.0.1 OMP_1.0 OMP_5.1 \
            OMP_5.1.1 OMP_5.2 GOACC_2.0 VERSION; do
    readelf -W --version-info "$library" | grep -q "Name: $node\$" ||
        { echo "no version node: $node"; status=1; }
done
# A version would keep them from a program that wants CXXABI_1.3.
nm -D "$library" | grep -q ' __cxa_guard_acquire$' || { echo "not ours: guards"; status=1; }
# Handlers of the program's end are the C library's, in spite of their names.
leaked=$(echo "$names" | grep -E '^(_ZN|_ZS|_ZT|_ZG|_ZZ|__cxa_|_Unwind_|__gxx_)' |
    grep -vxE '__cxa_guard_.*|__cxa_atexit|__cxa_at_quick_exit|_ZNSt8ios_base15sync_with_stdioEb' || true)
[ -z "$leaked" ] || { echo "exported by mistake:"; echo "$leaked"; status=1; }
readelf -d "$library" | grep -q 'soname: \[libgomp.so.1\]' ||
    { echo "not named libgomp.so.1: the loader would load the real one as well"; status=1; }
if readelf -d "$library" | grep -qE 'NEEDED.*(libstdc\+\+|libgcc_s)'; then
    echo "needs the program's C++ runtime"; status=1
fi
exit $status
