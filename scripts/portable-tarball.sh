#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds everything for glibc 2.31 and later (Debian 11, Ubuntu 20.04, RHEL 9), with what such hosts may lack linked
# in: build-portable/hiroba-VERSION-linux-x86_64.tar.gz. It compiles with this system's compiler against the C library of
# a Debian 11 root made by debootstrap, and tries the result there. As root, on Debian; downloads.
# Usage: portable-tarball.sh [FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "${1:-build-portable}"
place=$(realpath "${1:-build-portable}")
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
old=$place/debian11 sysroot=$place/sysroot library=usr/lib/x86_64-linux-gnu
[[ $(id -u) -eq 0 ]] || { echo "portable-tarball: debootstrap takes root" >&2; exit 78; }
scripts/install-packages.sh build debootstrap dpkg-dev

if [[ ! -e $old/made ]]; then
    rm -rf "$old"
    debootstrap --variant=minbase --include=libc6-dev,libdw-dev,libelf-dev,zlib1g-dev bullseye "$old" "$mirror"
    touch "$old/made"
fi

# Zydis as a source: Debian has no static library of it. Only its decoder is compiled.
if [[ ! -e $place/zydis/CMakeLists.txt ]]; then
    mkdir -p "$place/sources/lists/partial" "$place/zydis"
    release=$(. /etc/os-release && echo "$VERSION_CODENAME")
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $release main" >"$place/sources/list"
    options=(-o "Dir::Etc::sourcelist=$place/sources/list" -o Dir::Etc::sourceparts=/dev/null
        -o "Dir::State::lists=$place/sources/lists")
    apt-get "${options[@]}" update -qq
    (cd "$place/sources" && apt-get "${options[@]}" source -qq --download-only zydis)
    tar -xf "$place"/sources/zydis_*.orig.tar.* -C "$place/zydis" --strip-components=1
fi

# The old C library's headers and libraries; of this system the compiler's C++ library, the kernel's
# headers with the numbers of its calls, and libraries that are headers only.
if [[ ! -e $sysroot/made ]]; then
    rm -rf "$sysroot"
    mkdir -p "$sysroot/usr/lib"
    cp -a "$old/usr/include" "$sysroot/usr/"
    cp -a "$old/$library" "$sysroot/usr/lib/"
    cp -a "$old/usr/lib64" "$sysroot/usr/" 2>/dev/null || true
    ln -s usr/lib "$sysroot/lib"
    ln -s usr/lib64 "$sysroot/lib64"
    cp -a /usr/include/{c++,linux,asm-generic,fmt,CLI,Zycore} "$sysroot/usr/include/"
    rm -rf "$sysroot/usr/include/x86_64-linux-gnu/asm"
    cp -a /usr/include/x86_64-linux-gnu/{c++,asm} "$sysroot/usr/include/x86_64-linux-gnu/"
    cp -a /usr/include/x86_64-linux-gnu/bits/syscall.h "$sysroot/usr/include/x86_64-linux-gnu/bits/"
    cat packaging/older_dlfcn.h >>"$sysroot/usr/include/dlfcn.h"
    mkdir -p "$sysroot/$library/cmake" "$sysroot/usr/share/cmake"
    cp -a "/$library"/cmake/fmt "$sysroot/$library/cmake/"
    cp -a "/$library"/libfmt.so* "$sysroot/$library/"
    for folder in "/$library/cmake/CLI11" /usr/share/cmake/CLI11 /usr/lib/cmake/CLI11; do
        [[ -d $folder ]] && mkdir -p "$sysroot$folder" && cp -a "$folder/." "$sysroot$folder/"
    done
    touch "$sysroot/made"
fi
# Links to absolute places would lead to this system's libraries.
find "$sysroot" -type l -lname '/*' -print0 | while IFS= read -r -d '' link; do
    ln -srfn "$sysroot$(readlink "$link")" "$link"
done
# Libraries that are loaded where a job asks for them: of these only headers. Without them the tarball has no such provider.
for folder in ucp uct ucs ucm infiniband rdma; do
    [[ -d /usr/include/$folder ]] && cp -a "/usr/include/$folder" "$sysroot/usr/include/"
done

# The compiler looks for libraries beside itself first, which are this system's.
link="-B$sysroot/$library -L$sysroot/$library"
cmake -S . -B "$place/build" -G Ninja -D CMAKE_BUILD_TYPE=Release -D CMAKE_SYSROOT="$sysroot" \
    -D CMAKE_EXE_LINKER_FLAGS="$link" -D CMAKE_SHARED_LINKER_FLAGS="$link" \
    -D CMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER -D CMAKE_FIND_ROOT_PATH_MODE_PACKAGE=ONLY \
    -D CMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY -D CMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY -D CMAKE_INSTALL_LIBDIR=lib \
    -D HIROBA_PORTABLE=ON -D HIROBA_ZYDIS_SOURCE="$place/zydis"
cmake --build "$place/build" --parallel "${jobs:-$(nproc)}" --target product
(cd "$place/build" && cpack -G TGZ >/dev/null && mv ./*.tar.gz "$place/")
tarball=$(ls "$place"/hiroba-*.tar.gz)
scripts/try-tarball.sh "$tarball" "$old"
echo "$tarball"
