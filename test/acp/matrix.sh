#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The whole matrix of copies: every provider, clean and with loss, on 2 to 5 ranks, up to 64 MiB.
# Usage: matrix.sh HIROBA PROGRAM [LARGEST_BYTES [RANKS...]]; status 1 when any of them was wrong.
set -u
hiroba=$1 program=$2 largest=${3:-67108864}
shift 2
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- 2 3 4 5
wrong=0
run() {  # ranks, settings
    ranks=$1
    shift
    begun=$(date +%s)
    if env "$@" timeout 1800 "$hiroba" run -n "$ranks" "$program" "$largest"; then
        echo "$* on $ranks ranks: right, $(($(date +%s) - begun)) s"
    else
        echo "$* on $ranks ranks: WRONG"
        wrong=1
    fi
}
for ranks; do
    run "$ranks" HIROBA_PROVIDER=shm
    run "$ranks" HIROBA_PROVIDER=udp
    run "$ranks" HIROBA_PROVIDER=udp HIROBA_UDP_LOSS=5 HIROBA_UDP_DUPLICATE=2 HIROBA_UDP_REORDER=2
done
exit $wrong
