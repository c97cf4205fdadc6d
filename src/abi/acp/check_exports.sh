#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Checks that libacp.so shows the thirty functions of the basic layer and nothing else.
set -eu
names=$(nm -D --defined-only "$1" | sed 's/@.*//; s/.* //' | grep -v '^ACP_1.0$' | sort)
wanted=$(for name in init finalize reset abort sync rank procs query_starter_ga register_memory \
    unregister_memory query_ga query_address query_rank query_color colors copy cas4 cas8 swap4 \
    swap8 add4 add8 xor4 xor8 or4 or8 and4 and8 complete inquire; do echo "acp_$name"; done | sort)
[ "$(echo "$names" | wc -l)" = 30 ] && [ "$names" = "$wanted" ] || {
    echo "exported:"; echo "$names"; exit 1; }
