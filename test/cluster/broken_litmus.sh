#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Passes if a litmus test without what it rests on sees what is forbidden, sooner or later: how its
# nodes run beside each other follows from their start, so many short runs tell more than a long one.
# Usage: broken_litmus.sh HIROBA PROGRAM NODES PATTERN
set -euo pipefail
hiroba=$1 program=$2 nodes=$3 pattern=$4
for seed in $(seq 600); do
    said=$("$hiroba" run --spmd -n "$nodes" "$program" "$seed" 1000 "$pattern" 2>&1) || true
    if grep 'saw the forbidden outcome' <<<"$said"; then
        echo "with seed $seed"
        exit 0
    fi
done
echo "600 runs of 1000 rounds saw nothing forbidden; the last said: $said"
exit 1
