#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs the seeded OpenMP program random_barriers on real nodes; every other seed with two threads on
# each node, every third with signatures of 4 notices.
# Usage: random_barriers.sh HIROBA RANDOM_BARRIERS ENGINE NODES FIRST_SEED LAST_SEED
# A failure prints the command that replays it.
set -uo pipefail
hiroba=$1 program=$2 engine=$3 nodes=$4 first=$5 last=$6
output=$(mktemp)
passed=0 failed=0
for ((seed = first; seed <= last; ++seed)); do
    command=(env HIROBA_FAULT_ENGINE="$engine" HIROBA_NOTICES=$((seed % 3 ? 1024 : 4))
        "$hiroba" run -n "$nodes" -t $((seed % 2 ? 1 : 2)) "$program" "$seed" 80)
    if timeout -k 5 120 "${command[@]}" >"$output" 2>&1; then
        ((++passed))
    else
        ((++failed))
        echo "status $?: ${command[*]}"
        cat "$output"
    fi
done
rm -f "$output"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
