#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Looks at the portable tarball: no symbol newer than glibc 2.31, no library that hosts may lack. With a root of an
# older system, unpacks it there and runs an OpenMP program built there or here. As root for that.
# Usage: try-tarball.sh TARBALL [ROOT]
set -euo pipefail
cd "$(dirname "$0")/.."
tarball=$(realpath "$1") root=${2:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar -xf "$tarball" -C "$work"
tree=$(echo "$work"/hiroba-*)

wrong=0
while read -r file; do
    newest=$(objdump -T "$file" | { grep -oE 'GLIBC_[0-9.]+' || true; } | sort -V | tail -n 1)
    if [[ -n $newest && $(printf '%s\nGLIBC_2.31\n' "$newest" | sort -V | tail -n 1) != GLIBC_2.31 ]]; then
        echo "${file#"$tree"/} needs $newest: $(objdump -T "$file" | grep -F "$newest" | awk '{print $NF}' | tr '\n' ' ')"
        wrong=1
    fi
    foreign=$(objdump -p "$file" | awk '/NEEDED/ {print $2}' |
        grep -vE '^(lib(c|m|pthread|dl|rt|util|dw|elf)\.so\.|ld-linux)' || true)
    # What stands in for libomp needs the runtime, whose name is libgomp's.
    [[ $file == */lib/hiroba/lib*omp* ]] && foreign=${foreign/libgomp.so.1/}
    # So does the OpenMP program that `hiroba perf openmp` measures with.
    [[ $file == */libexec/hiroba/* ]] && foreign=${foreign/libgomp.so.1/}
    if [[ -n $foreign ]]; then
        echo "${file#"$tree"/} needs the libraries" $foreign
        wrong=1
    fi
    if [[ $file == *libhiroba.so ]] && objdump -p "$file" | grep -qE 'NEEDED +lib(dw|elf)'; then
        echo "the runtime needs elfutils"
        wrong=1
    fi
done < <(find "$tree" -type f '(' -name '*.so*' -o -path '*/bin/*' -o -path '*/libexec/*' ')')
[[ $wrong -eq 0 ]] && echo "all of it runs with glibc 2.31"

if [[ -n $root ]]; then
    [[ $(id -u) -eq 0 ]] || { echo "try-tarball: chroot takes root" >&2; exit 78; }
    exec unshare --mount --pid --fork bash -euo pipefail -c '
        root=$1 tree=$2 work=$3
        mount -t proc proc "$root/proc"
        mount --rbind /dev "$root/dev"
        mount -t tmpfs tmpfs "$root/mnt"
        cp -a "$tree" "$root/mnt/hiroba"
        gomp=$(gcc -print-file-name=libgomp.so.1)
        cat >"$work/sum.c" <<"C"
#include <stdio.h>
int main(void) {
    double sum = 0;
    #pragma omp parallel for reduction(+ : sum)
    for (long i = 1; i <= 1000000; ++i) sum += 1.0 / ((double)i * (double)i);
    printf("pi^2/6 = %.5f\n", sum);
}
C
        # The libgomp that is linked with is this system'"'"'s, and not used there.
        gcc -O2 -fopenmp -Wl,--allow-shlib-undefined ${4:+--sysroot=$4 "-B$4/usr/lib/x86_64-linux-gnu" "-L$4/usr/lib/x86_64-linux-gnu"} \
            "$work/sum.c" -o "$root/mnt/sum"
        chroot "$root" /mnt/hiroba/bin/hiroba run -n 4 /mnt/sum | grep -x "pi^2/6 = 1.64493"
        chroot "$root" /mnt/hiroba/bin/hiroba perf put_latency --milliseconds 2 | grep "put_latency over shm: 2 nodes"
        chroot "$root" sh -c ". /etc/os-release; echo \"it runs on \$PRETTY_NAME\""
    ' try "$root" "$tree" "$work" "${SYSROOT:-$(dirname "$root")/sysroot}"
fi
exit $wrong
