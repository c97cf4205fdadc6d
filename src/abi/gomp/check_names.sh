#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Checks that a library exports every GOMP_* and omp_* name that libgomp of gcc 12 exports
# (libgomp_names.txt; its plugin interface excepted): a name that is missing would stop a program
# at load, or make it call another runtime.
# Usage: check_names.sh libhiroba.so
set -eu
library=$1
wanted=$(dirname "$0")/libgomp_names.txt
missing=$(nm -D --defined-only "$library" | sed 's/@.*//; s/.* //' | LC_ALL=C sort -u |
    LC_ALL=C comm -13 - "$wanted")
[ -z "$missing" ] || { echo "not exported:"; echo "$missing"; exit 1; }
