#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Has other compilers than the default look at the product: each checks every source with the warnings of the build, and
# makes no object (-fsyntax-only). Prints a line a compiler; fails if one finds anything. Without names it takes those of
# g++-11 to -16 and clang++-14 to -21 that are installed. Needs the folder BUILD, configured.
# Usage: try-compilers.sh [BUILD [COMPILER...]]      SOURCES=REGEX for some of them
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
shift || true
if [[ $# -eq 0 ]]; then
    for compiler in g++-{11..16} clang++-{14..21}; do
        command -v "$compiler" >/dev/null && set -- "$@" "$compiler"
    done
fi
for compiler in "$@"; do
    command -v "$compiler" >/dev/null || { echo "try-compilers: there is no $compiler here" >&2; exit 78; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 - "$build/compile_commands.json" >"$work/sources" <<'END'
import json, re, shlex, sys
for entry in json.load(open(sys.argv[1])):
    file = entry["file"]
    if not file.endswith(".cpp") or not re.search(r"/(src|tools)/", file) or re.search(r"_test\.cpp$|test_parts|launch_test", file):
        continue
    words, kept = shlex.split(entry["command"]), []
    for at, word in enumerate(words):
        if word in ("-I", "-isystem", "-D") or re.match(r"-(I|D|isystem|std=|Wall|Wextra|Werror|f(no-plt|visibility|tls-model))", word):
            kept.append(word)
        elif words[at - 1] == "-isystem":
            kept.append(word)
    print(shlex.join([file, *kept]))
END
sort -u -k 1,1 "$work/sources" | { grep -E "^[^ ]*(${SOURCES:-.})" || true; } >"$work/chosen"
[[ -s $work/chosen ]] || { echo "try-compilers: no source matches ${SOURCES:-.}" >&2; exit 64; }
failed=0
for compiler in "$@"; do
    # gcc 11 and 12 see overlapping copies that are not there (cmake/layer.cmake); without optimizing, none does.
    if xargs -a "$work/chosen" -d '\n' -P "${jobs:-$(nproc)}" -I{} bash -c \
        'eval "words=($2)"; "$1" -fsyntax-only "${words[@]:1}" "${words[0]}" >>"$3" 2>&1' _ "$compiler" {} "$work/$compiler"; then
        echo "$compiler ($("$compiler" -dumpfullversion -dumpversion)): $(wc -l <"$work/chosen") sources, no warning"
    else
        echo "$compiler ($("$compiler" -dumpfullversion -dumpversion)):"
        grep -E 'error|warning' "$work/$compiler" | sort -u | head -n 20
        failed=1
    fi
done
exit $failed
