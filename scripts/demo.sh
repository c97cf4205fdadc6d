#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs CG class A, an ordinary OpenMP program, on one node and on two, one thread each, in turn;
# prints what each verified, the median seconds, their ratio, and what the two nodes communicated.
# A wrong answer or status fails the demo.
# Usage: demo.sh [build folder]
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
program=$build/examples/cg
runs=3
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT

run_on() {
    local nodes=$1
    if ! HIROBA_STATS=1 timeout 300 "$build/bin/hiroba" run -n "$nodes" --threads 1 -- "$program" A \
        </dev/null >"$temporary/out" 2>"$temporary/stats.$nodes" ||
        ! grep -q 'VERIFICATION SUCCESSFUL' "$temporary/out" ||
        [[ $(wc -l <"$temporary/out") -ne 1 ]]; then
        echo "CG class A failed on $nodes node(s):" >&2
        cat "$temporary/out" "$temporary/stats.$nodes" >&2
        exit 1
    fi
    printf '%d node%s: %s\n' "$nodes" "$([[ $nodes -eq 1 ]] || echo s)" "$(cat "$temporary/out")"
    sed -n 's/.* seconds \([0-9.]*\) .*/\1/p' "$temporary/out" >>"$temporary/seconds.$nodes"
}
median() { sort -g "$temporary/seconds.$1" | sed -n "$((runs / 2 + 1))p"; }

echo "hiroba run -n NODES --threads 1 $program A"
for ((run = 0; run < runs; ++run)); do
    run_on 1
    run_on 2
done
one=$(median 1) two=$(median 2)
printf '\nmedian: 1 node %s s, 2 nodes %s s, ratio %s\n\n' "$one" "$two" \
    "$(awk "BEGIN { printf \"%.2f\", $two / $one }")"
echo 'What was communicated on two nodes (docs/guide/statistics.md explains the names):'
cat "$temporary/stats.2"
