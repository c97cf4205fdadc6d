#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Installs one library into an empty folder and builds a program with it, by pkg-config and by CMake.
# The program, started alone, must say VERIFICATION SUCCESSFUL.
# Usage: installed.sh CMAKE BUILD_FOLDER PACKAGE TARGET PROGRAM LANGUAGE COMPILER STANDARD
#   PACKAGE   component, pkg-config's name and CMake's package; TARGET what the latter gives
#   LANGUAGE  C or CXX; STANDARD the compiler's option for it
set -eu
cmake=$1 build=$2 package=$3 target=$4 program=$5 language=$6 compiler=$7 standard=$8
command -v pkg-config > /dev/null || exit 77
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

"$cmake" --install "$build" --component "$package" --prefix "$place/prefix" > /dev/null
flags=$(PKG_CONFIG_PATH=$place/prefix/lib/pkgconfig pkg-config --cflags --libs "$package")
"$compiler" "$standard" "$program" $flags -Wl,-rpath,"$place/prefix/lib" -o "$place/by_pkg_config"
"$place/by_pkg_config" | grep "VERIFICATION SUCCESSFUL"

mkdir "$place/project"
cat > "$place/project/CMakeLists.txt" << END
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES $language)
find_package($package REQUIRED)
add_executable(user $program)
target_link_libraries(user PRIVATE $target)
END
"$cmake" -S "$place/project" -B "$place/project/build" -DCMAKE_PREFIX_PATH="$place/prefix" \
    -DCMAKE_"$language"_COMPILER="$compiler" > /dev/null
"$cmake" --build "$place/project/build" > /dev/null
"$place/project/build/user" | grep "VERIFICATION SUCCESSFUL"
