#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A kick to a mapped page is one store: no call, no lock, no fence, no loop; where the page may not
# be mapped, one test goes before it; so it is in what programs include. Usage: check_kick_code.sh OBJECT
set -euo pipefail
object=$1
status=0
for width in u8 u16 u32 u64; do
    for form in mapped any face; do
        code=$(objdump -dC --no-show-raw-insn "$object" |
            awk -v name="::${form}_$width(" 'index($0, name) && /^[0-9a-f]+ </ {inside = 1; next}
                /^$/ {inside = 0} inside' | sed 's/^[^:]*:[[:space:]]*//')
        # What follows the first return is where the page is not mapped.
        path=$(sed '/^ret/q' <<<"$code")
        # Stores: a move whose last operand is memory.
        stores=$(grep -cE '^mov[bwlq]?[[:space:]]+[^,]*,[^,]*\(.*\)$' <<<"$path" || true)
        branches=$(grep -cE '^j' <<<"$path" || true)
        others=$(grep -cE '^(call|lock|mfence|sfence|xchg|push)' <<<"$path" || true)
        most=$([ "$form" = mapped ] && echo 0 || echo 1)
        if ! grep -q '^ret' <<<"$path" || [ "$stores" -ne 1 ] || [ "$branches" -gt "$most" ] ||
            [ "$others" -ne 0 ]; then
            echo "${form}_$width: $stores stores, $branches branches, $others calls or fences:"
            echo "$path"
            status=1
        fi
    done
done
exit $status
