#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Installs libacp into an empty folder and builds a program with it, by pkg-config and by CMake.
# Usage: installed.sh CMAKE BUILD_FOLDER PROGRAM.c COMPILER
set -eu
cmake=$1 build=$2 program=$3 compiler=$4
command -v pkg-config > /dev/null || exit 77
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

"$cmake" --install "$build" --component acp --prefix "$place/prefix" > /dev/null
flags=$(PKG_CONFIG_PATH=$place/prefix/lib/pkgconfig pkg-config --cflags --libs acp)
"$compiler" -std=gnu11 "$program" $flags -Wl,-rpath,"$place/prefix/lib" -o "$place/by_pkg_config"
"$place/by_pkg_config" | grep VERIFICATION

mkdir "$place/project"
cp "$program" "$place/project/ring.c"
cat > "$place/project/CMakeLists.txt" << 'END'
cmake_minimum_required(VERSION 3.25)
project(ring LANGUAGES C)
find_package(acp REQUIRED)
add_executable(ring ring.c)
target_link_libraries(ring PRIVATE hiroba::acp)
END
"$cmake" -S "$place/project" -B "$place/project/build" -DCMAKE_PREFIX_PATH="$place/prefix" \
    -DCMAKE_C_COMPILER="$compiler" > /dev/null
"$cmake" --build "$place/project/build" > /dev/null
"$place/project/build/ring" | grep VERIFICATION
