#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs verified NAS kernels bare and over nodes, and prints the README's table: seconds as the
# program measures them, best of HIROBA_DEMO_RUNS (3). A wrong answer, status or a second line of
# output counts as FAILED and fails the demo.
# Usage: demo.sh [build folder]
set -uo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
runs=${HIROBA_DEMO_RUNS:-3}
limit_s=300
unset HIROBA_DEMO_RUNS  # Not a setting of hiroba, which would warn of it.

failed=0
seconds=

# Sets `seconds` to the best of `runs`, or to FAILED.
best_of() {
    local output status line
    seconds=
    for ((run = 0; run < runs; ++run)); do
        output=$(timeout "$limit_s" "$@" </dev/null)
        status=$?
        line=$(sed -n 's/.* seconds \([0-9.]*\) VERIFICATION SUCCESSFUL$/\1/p' <<<"$output")
        if [[ $status -ne 0 || -z $line || $(wc -l <<<"$output") -ne 1 ]]; then
            printf 'failed with status %d: %s\n%s\n' "$status" "$*" "$output" >&2
            seconds=FAILED
            failed=1
            return
        fi
        seconds=$(printf '%s\n' "$line" $seconds | sort -g | head -n 1)
    done
    seconds+=' s'
}

printf '| program, class | bare, 2 threads | hiroba, 1 node × 2 threads | hiroba, 2 nodes × 1 thread | hiroba, 4 nodes × 1 thread |\n'
printf '|---|---|---|---|---|\n'
for kernel in 'ep W' 'ep A' 'cg S' 'cg W' 'cg A'; do
    read -r program class <<<"$kernel"
    binary=$build/examples/$program
    printf '| %s %s |' "${program^^}" "$class"
    best_of env OMP_NUM_THREADS=2 "$binary" "$class"
    printf ' %s |' "$seconds"
    for shape in '1 2' '2 1' '4 1'; do
        read -r nodes threads <<<"$shape"
        best_of env -u OMP_NUM_THREADS "$build/bin/hiroba" run -n "$nodes" --threads "$threads" \
            "$binary" "$class"
        printf ' %s |' "$seconds"
    done
    printf '\n'
done
exit "$failed"
