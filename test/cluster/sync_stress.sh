#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs the producers and consumers of sync_stress.cpp with seed after seed for some time.
# Usage: sync_stress.sh HIROBA SECONDS FIRST_SEED [ITEMS]
# Each run is a line of what has passed so far, at most one in 30 s. A failure prints the command
# that replays it. A run that has not ended after 180 s is a failure, too: the launcher is asked
# for the stacks of all nodes, and everything is killed 20 s later.
set -uo pipefail
hiroba=$1 seconds=$2 seed=$3 items=${4:-3000}
here=$(cd "$(dirname "$0")" && pwd)
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
program=$directory/sync_stress
g++ -std=c++17 -O2 -fopenmp "$here/programs/sync_stress.cpp" -o "$program" || exit 1
passed=0 failed=0 slowest=0 told=0
for ((; SECONDS < seconds; ++seed)); do
    for shape in "uffd 2 1" "uffd 4 1" "uffd 2 2" "uffd 3 2" \
        "mprotect 2 1" "mprotect 4 1" "mprotect 2 2" "mprotect 3 2"; do
        ((SECONDS < seconds)) || break
        read -r engine nodes threads <<<"$shape"
        command=(env HIROBA_FAULT_ENGINE="$engine" "$hiroba" run -n "$nodes" --threads "$threads"
            -- "$program" "$seed" "$items")
        began=$SECONDS
        # In the foreground the signal reaches the launcher alone, not rank 0 in its group.
        timeout --foreground -s USR1 -k 20 180 "${command[@]}" \
            >"$directory/output" 2>&1 </dev/null
        status=$?
        ((SECONDS - began > slowest)) && ((slowest = SECONDS - began))
        if [ "$status" -eq 0 ]; then
            ((++passed))
        else
            ((++failed))
            echo "status $status: ${command[*]}"
            cat "$directory/output"
        fi
        if ((SECONDS - told >= 30)); then
            echo "$SECONDS s: $passed passed, $failed failed, seed $seed," \
                "slowest run $slowest s"
            told=$SECONDS
        fi
    done
done
echo "$passed passed, $failed failed, seeds $3 to $((seed - 1)), slowest run $slowest s"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
