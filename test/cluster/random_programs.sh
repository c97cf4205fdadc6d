#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs seeded random programs on real nodes: memory_program (those of the simulator) or spmd_random.
# A third has a thread on each node that flushes all the time; half of spmd_random's have signatures
# of 4 notices (memory_program draws its own).
# Usage: random_programs.sh HIROBA PROGRAM ENGINE NODES FIRST_SEED LAST_SEED [PROVIDER [STEPS]]
# A failure prints the command that replays it.
set -uo pipefail
hiroba=$1 program=$2 engine=$3 nodes=$4 first=$5 last=$6 provider=${7:-shm} steps=${8:-30}
passed=0 failed=0
for ((seed = first; seed <= last; ++seed)); do
    notices=$((seed % 2 ? 1024 : 4))
    command=(env HIROBA_FAULT_ENGINE="$engine" HIROBA_PROVIDER="$provider"
        HIROBA_NOTICES=$notices "$hiroba" run --spmd -n "$nodes" "$program" "$seed" "$steps")
    ((seed % 3)) || command+=(flusher)
    timeout -k 5 300 "${command[@]}" >/tmp/random_programs.$$ 2>&1
    status=$?
    if ((status == 0)); then
        ((++passed))
    else
        ((++failed))
        echo "status $status: ${command[*]}"
        cat /tmp/random_programs.$$
    fi
done
rm -f /tmp/random_programs.$$
echo "${program##*/}, $engine, $provider, $nodes nodes: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
