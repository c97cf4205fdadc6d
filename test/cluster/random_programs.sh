#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs seeded random programs on real nodes, half of them with signatures of 4 notices, a third with a
# thread on each node that flushes all the time.
# Usage: random_programs.sh HIROBA SPMD_RANDOM ENGINE NODES FIRST_SEED LAST_SEED [PROVIDER]
# A failure prints the command that replays it.
set -uo pipefail
hiroba=$1 program=$2 engine=$3 nodes=$4 first=$5 last=$6 provider=${7:-shm}
passed=0 failed=0
for ((seed = first; seed <= last; ++seed)); do
    notices=$((seed % 2 ? 1024 : 4))
    command=(env HIROBA_FAULT_ENGINE="$engine" HIROBA_PROVIDER="$provider"
        HIROBA_NOTICES=$notices "$hiroba" run --spmd -n "$nodes" "$program" "$seed" 30)
    ((seed % 3)) || command+=(flusher)
    if timeout -k 5 120 "${command[@]}" >/tmp/random_programs.$$ 2>&1; then
        ((++passed))
    else
        ((++failed))
        echo "status $?: ${command[*]}"
        cat /tmp/random_programs.$$
    fi
done
rm -f /tmp/random_programs.$$
echo "$engine, $provider, $nodes nodes: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
