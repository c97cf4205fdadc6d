#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Passes if the settings of the suite are those named: a setting that CMakeLists.txt does not know
# would never run. Usage: check_settings.sh TEST_CONFORMANCE SETTING...
set -euo pipefail
program=$1
shift
diff <("$program" --gtest_list_tests | sed -n 's|^ .*/\([a-z0-9_]*\)  # GetParam.*|\1|p' | sort -u) \
    <(printf '%s\n' "$@" | sort) ||
    { echo "< is in suite.hpp alone, > in CMakeLists.txt alone"; exit 1; }
