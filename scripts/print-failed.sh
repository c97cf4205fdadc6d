#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Prints again, behind all else, what the tests have said that failed in the last run of ctest, and
# no more of each than its last lines and those that name a failure.
# Usage: print-failed.sh BUILD
set -euo pipefail
log=$1/Testing/Temporary/LastTest.log
awk '
    / Test: / { name = $3; lines = 0; inside = 0; next }
    /^Output:$/ { inside = 1; next }
    /^<end of output>$/ { inside = 0; next }
    inside { text[lines++] = $0 }
    /^Test (Failed|timed out)/ {
        print "\n--- " name
        first = lines > 25 ? lines - 25 : 0
        for (i = 0; i < lines; ++i)
            if (i >= first || text[i] ~ /FAIL|Failure|Expected|Actual|Which is|ThreadSanitizer|ERROR/) print text[i]
    }' "$log"
