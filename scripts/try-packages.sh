#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs the Debian packages of `make deb` in a copy of this system that nobody else sees (an overlay in a mount
# namespace of its own), uses them, removes them and looks for what they left. As root.
# Usage: try-packages.sh [FOLDER WITH THE PACKAGES]
set -euo pipefail
cd "$(dirname "$0")/.."
packages=$(realpath "${1:-build-deb}")

if [[ ${2:-} != inside ]]; then
    [[ $(id -u) -eq 0 ]] || { echo "try-packages: mounting an overlay takes root" >&2; exit 78; }
    exec unshare --mount --pid --fork "$0" "$packages" inside
fi

work=$(mktemp -d)
mount -t tmpfs tmpfs "$work"
mkdir "$work"/{upper,work,root}
mount -t overlay overlay -o "lowerdir=/,upperdir=$work/upper,workdir=$work/work" "$work/root"
root=$work/root
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mkdir -p "$root/packages" "$root/examples"
cp "$packages"/*.deb "$root/packages/"
cp examples/{spmd_sum.cpp,acp_ring.c,gas_table.cpp} "$root/examples/"

cat >"$root/try.sh" <<'END'
set -euo pipefail
list() { find /etc /usr /var/lib /opt -xdev ! -path '/var/lib/dpkg/*' ! -path '/var/cache/*' ! -name ld.so.cache | sort; }
list >/before
dpkg -i /packages/*.deb >/dev/null
cd /tmp
cat >sum.c <<'C'
#include <stdio.h>
int main(void) {
    double sum = 0;
    #pragma omp parallel for reduction(+ : sum)
    for (long i = 1; i <= 1000000; ++i) sum += 1.0 / ((double)i * (double)i);
    printf("pi^2/6 = %.5f\n", sum);
}
C
gcc -O2 -fopenmp sum.c -o sum
hiroba run -n 4 ./sum | grep -x 'pi^2/6 = 1.64493'
hiroba perf put_latency --milliseconds 2 | grep -c 'put_latency over shm: 2 nodes'
hiroba perf openmp --provider shm --milliseconds 1 --only single | grep -c 'openmp over shm: 2 nodes'
g++ /examples/spmd_sum.cpp $(pkg-config --cflags --libs hiroba_dsm) -o spmd_sum
hiroba run --spmd -n 2 ./spmd_sum | grep 'VERIFICATION SUCCESSFUL'
g++ /examples/gas_table.cpp $(pkg-config --cflags --libs hiroba_gas) -o gas_table
hiroba run --spmd -n 2 ./gas_table 8 2000 | grep 'VERIFICATION SUCCESSFUL'
mkdir project && cat >project/CMakeLists.txt <<'C'
cmake_minimum_required(VERSION 3.16)
project(user LANGUAGES C)
find_package(hiroba 0.1 REQUIRED COMPONENTS acp)
add_executable(ring /examples/acp_ring.c)
target_link_libraries(ring PRIVATE hiroba::acp)
C
cmake -S project -B project/build >/dev/null
cmake --build project/build >/dev/null
hiroba run -n 2 project/build/ring | grep 'VERIFICATION SUCCESSFUL'
man -w hiroba-run hiroba-settings >/dev/null
# Programs built by OpenMP's compilers still have their own runtime.
ldd ./sum | grep -q 'libgomp.so.1 => /lib/x86_64-linux-gnu/'
dpkg --purge hiroba libhiroba-dev libhiroba1 >/dev/null
list >/after
diff /before /after && echo 'removed without a trace'
END
chroot "$root" bash /try.sh
