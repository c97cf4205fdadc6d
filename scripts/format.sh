#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Lays out all C and C++ text; with --check, changes nothing and names the files it would change.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -d '' files < <(find bench examples include src test tools -type f \
    '(' -name '*.cpp' -o -name '*.hpp' -o -name '*.c' -o -name '*.h' ')' -print0)

if [[ ${1:-} != --check ]]; then
    exec clang-format --style=file -i "${files[@]}"
fi
clang-format --style=file --dry-run -Werror --ferror-limit=1 "${files[@]}" 2>&1 |
    sed -n 's/^\([^ :]*\):[0-9].*error:.*/\1: not laid out as .clang-format says (make format)/p' |
    sort -u >&2
exit "${PIPESTATUS[0]}"
