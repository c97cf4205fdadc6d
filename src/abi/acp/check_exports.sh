#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Checks that libacp.so shows the functions that the headers declare and nothing else.
# Usage: check_exports.sh LIBRARY HEADER...
set -eu
library=$1
shift
names=$(nm -D --defined-only "$library" | sed 's/@.*//; s/.* //' | grep -v '^ACP_1.0$' | sort)
# Without comments and macros: what remains before a bracket is a function.
wanted=$(cat "$@" | gcc -fpreprocessed -dD -E -P -x c - | grep -v '^#' |
    grep -oE '\bacp_[a-z0-9_]+\(' | tr -d '(' | sort -u)
[ "$(echo "$wanted" | wc -l)" -ge 30 ] && [ "$names" = "$wanted" ] || {
    echo "declared and not shown, or shown (>) and not declared:"
    echo "$wanted" > "${TMPDIR:-/tmp}/acp_wanted.$$"
    echo "$names" | diff "${TMPDIR:-/tmp}/acp_wanted.$$" - || :
    rm -f "${TMPDIR:-/tmp}/acp_wanted.$$"
    exit 1; }
