#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs clang-tidy as .clang-tidy says over the product's sources, or over those named, and fails if it finds
# anything. Needs the folder build-clang, configured (`make tidy`).
# Usage: tidy.sh [FILE...]
set -euo pipefail
cd "$(dirname "$0")/.."
if [[ $# -eq 0 ]]; then
    # Those that are compiled here: what stands in for a provider without headers is not.
    mapfile -t files < <(find src tools -name '*.cpp' ! -name '*_test.cpp' ! -path '*/launch_test/*' | sort |
        while read -r file; do grep -qF "/$file\"" build-clang/compile_commands.json && echo "$file"; done)
    set -- "${files[@]}"
fi
printf '%s\0' "$@" |
    xargs -0 -n 4 -P "${jobs:-$(nproc)}" "${CLANG_TIDY:-clang-tidy}" -p build-clang --quiet --warnings-as-errors='*'
