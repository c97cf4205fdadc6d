#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs the producers and consumers of sync_stress.cpp with seed after seed for some time.
# Usage: sync_stress.sh HIROBA SECONDS FIRST_SEED
# A failure prints the command that replays it.
set -uo pipefail
hiroba=$1 seconds=$2 seed=$3
here=$(cd "$(dirname "$0")" && pwd)
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
program=$directory/sync_stress
g++ -std=c++17 -O2 -fopenmp "$here/programs/sync_stress.cpp" -o "$program" || exit 1
passed=0 failed=0
for ((; SECONDS < seconds; ++seed)); do
    for shape in "uffd 2 1" "uffd 4 1" "uffd 2 2" "uffd 3 2" \
        "mprotect 2 1" "mprotect 4 1" "mprotect 2 2" "mprotect 3 2"; do
        read -r engine nodes threads <<<"$shape"
        command=(env HIROBA_FAULT_ENGINE="$engine" "$hiroba" run -n "$nodes" --threads "$threads"
            -- "$program" "$seed" 3000)
        if timeout -k 5 120 "${command[@]}" >"$directory/output" 2>&1; then
            ((++passed))
        else
            ((++failed))
            echo "status $?: ${command[*]}"
            cat "$directory/output"
        fi
    done
done
echo "$passed passed, $failed failed, up to seed $((seed - 1))"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
