#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs the Debian packages that building and testing need and that are missing; arguments name
# further ones. Asks the network for nothing when all are there.
set -euo pipefail

packages=(
    binutils clang-format cmake g++ gcc gdb gfortran make ninja-build python3
    libbenchmark-dev libcli11-dev libdw-dev libelf-dev libfmt-dev libgtest-dev libxxhash-dev
    libzydis-dev nlohmann-json3-dev
    clustalo sumaclust
    "$@"
)

if ! command -v dpkg-query >/dev/null; then
    echo "install-packages: not a Debian system; these must be there: ${packages[*]}" >&2
    exit 0
fi

missing=()
for package in "${packages[@]}"; do
    status=$(dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null || true)
    grep -qx installed <<<"$status" || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

as_root=()
if [[ $(id -u) -ne 0 ]]; then
    if ! command -v sudo >/dev/null; then
        echo "install-packages: missing: ${missing[*]}. Install them as root." >&2
        exit 1
    fi
    as_root=(sudo)
fi
echo "install-packages: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}"
