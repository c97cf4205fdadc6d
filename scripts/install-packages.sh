#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs the Debian packages that are missing for a purpose. It looks for what a package holds, so
# what lies elsewhere in PATH or CPATH counts, and asks neither the network nor for root when all is
# there. Where it may not install (PACKAGES=no, or not for root), it names what is missing and leaves the
# verdict to CMake.
# Usage: [PACKAGES=no] install-packages.sh [build|check|beds|deb|docs|format|tidy|PACKAGE]...
set -euo pipefail

# package, and the header or command it is asked for
headers=()
commands=()
others=()
for purpose in "${@:-build}"; do
    case $purpose in
        build)
            commands+=(cmake:cmake ninja-build:ninja "g++:${CXX:-c++}" "gcc:${CC:-cc}")
            headers+=(libfmt-dev:fmt/core.h libcli11-dev:CLI/CLI.hpp libdw-dev:elfutils/libdwfl.h
                libelf-dev:libelf.h libzydis-dev:Zydis/Zydis.h)
            ;;
        check)
            commands+=(python3:python3 binutils:readelf clang-format:clang-format gdb:gdb
                gfortran:gfortran clustalo:clustalo sumaclust:sumaclust kalign:kalign openmpi-bin:mpirun.openmpi
                libopenmpi-dev:mpicc.openmpi mpich:mpirun.mpich libmpich-dev:mpicc.mpich)
            # Programs of clang, and the runtime they are compared with.
            commands+=(clang:clang)
            others+=(libomp-dev)
            headers+=(libucx-dev:ucp/api/ucp.h libibverbs-dev:infiniband/verbs.h libgtest-dev:gtest/gtest.h nlohmann-json3-dev:nlohmann/json.hpp)
            ;;
        beds)
            commands+=(qemu-system-x86:qemu-system-x86_64 busybox-static:busybox cpio:cpio iproute2:ip openmpi-bin:mpirun.openmpi
                slurmctld:/usr/sbin/slurmctld slurmd:/usr/sbin/slurmd slurm-client:srun openssh-server:/usr/sbin/sshd
                ucx-utils:ucx_perftest)
            others+=(libpmix-dev)  # Slurm loads libpmix.so, without the number
            ;;
        deb) commands+=(dpkg-dev:dpkg-shlibdeps file:file) ;;
        docs) commands+=(mkdocs:mkdocs doxygen:doxygen) ;;
        format) commands+=(clang-format:clang-format) ;;
        tidy) commands+=(clang:clang++ "clang-tidy:${CLANG_TIDY:-clang-tidy}") ;;
        *) others+=("$purpose") ;;
    esac
done

missing=()
for pair in "${commands[@]}"; do
    command -v "${pair#*:}" >/dev/null || missing+=("${pair%%:*}")
done
if [[ ${#headers[@]} -gt 0 ]]; then
    text=
    for pair in "${headers[@]}"; do
        text+=$'#if !__has_include(<'${pair#*:}$'>)\nMISSING '${pair%%:*}$'\n#endif\n'
    done
    found=$("${CXX:-c++}" -E -x c++ - <<<"$text" 2>/dev/null) ||
        found=$(for pair in "${headers[@]}"; do echo "MISSING ${pair%%:*}"; done)
    while read -r word package; do
        [[ $word == MISSING ]] && missing+=("$package")
    done <<<"$found"
fi
for package in "${others[@]}"; do
    status=$(dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null || true)
    grep -qx installed <<<"$status" || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

if ! command -v apt-get >/dev/null; then
    echo "install-packages: not a Debian system, and these seem to be missing: ${missing[*]}" >&2
    exit 0
fi
as_root=()
[[ $(id -u) -eq 0 ]] || as_root=(sudo)
if [[ ${PACKAGES:-yes} == no ]] || { [[ $(id -u) -ne 0 ]] && ! command -v sudo >/dev/null; }; then
    echo "install-packages: these seem to be missing: ${missing[*]}. As root: apt-get install ${missing[*]}" >&2
    exit 0
fi
echo "install-packages: now ${as_root[*]:+${as_root[*]} }apt-get install ${missing[*]} (make PACKAGES=no names them only)"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}"
