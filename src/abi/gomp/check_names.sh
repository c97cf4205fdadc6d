#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Checks that a library exports every GOMP_* and omp_* name that libgomp of gcc 12 exports
# (libgomp_names.txt; its plugin interface excepted): a name that is missing would stop a program
# at load, or make it call another runtime.
# The same for another list: src/abi/kmp/llvm_names.txt.
# Usage: check_names.sh libhiroba.so [list]
set -euo pipefail
export LC_ALL=C
wanted=${2:-$(dirname "$0")/libgomp_names.txt}
missing=$(comm -13 <(nm -D --defined-only "$1" | sed 's/@.*//; s/.* //' | sort -u) \
    <(grep -v '^#' "$wanted"))
[ -z "$missing" ] || { echo "not exported:"; echo "$missing"; exit 1; }
