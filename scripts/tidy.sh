#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs clang-tidy as .clang-tidy says over the product's sources, or over those named, and fails if it finds
# anything. Needs the folder build-clang, configured (`make tidy`).
# Usage: tidy.sh [FILE...]
set -euo pipefail
cd "$(dirname "$0")/.."
if [[ $# -eq 0 ]]; then
    mapfile -t files < <(find src tools -name '*.cpp' ! -name '*_test.cpp' ! -path '*/launch_test/*' | sort)
    set -- "${files[@]}"
fi
printf '%s\0' "$@" |
    xargs -0 -n 4 -P "${jobs:-$(nproc)}" clang-tidy-14 -p build-clang --quiet --warnings-as-errors='*'
