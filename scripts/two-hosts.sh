#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs a command beside two hosts that are none: network namespaces with a wire between them, each bound to a core of its
# own. `hiroba run` without --hosts runs there; $HOSTS has their names. As root; needs iproute2 and python3.
# Usage: two-hosts.sh [-n HOSTS] [--mtu BYTES] [--cores LIST] COMMAND...
#        two-hosts.sh build/bin/hiroba run -t 1 ./a.out
#        two-hosts.sh -n 4 sh -c 'build/bin/hiroba perf get_latency --hosts $HOSTS'
set -euo pipefail
exec python3 -B "$(dirname "$(realpath "$0")")/../test/cluster/two_hosts.py" "$@"
