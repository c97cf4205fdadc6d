# SPDX-License-Identifier: BSD-3-Clause
# The short commands. Each can be given again and again, and works offline once the packages are
# there (scripts/install-packages.sh).
jobs ?= $(shell nproc)
# Looked up when a recipe runs, because `packages` may just have installed it.
export CMAKE_GENERATOR = $(if $(shell command -v ninja),Ninja,Unix Makefiles)

.PHONY: build check demo format check-clang check-asan check-tsan packages
.DEFAULT_GOAL := build

build: packages  ## build/bin/hiroba and everything else, optimized
	cmake --preset release
	cmake --build --preset release --parallel $(jobs)

check: build  ## all tests
	ctest --preset release

demo: build  ## an OpenMP program on several nodes, measured
	scripts/demo.sh build

format: packages  ## lays out all C and C++ text as .clang-format says
	scripts/format.sh

check-clang: packages  ## everything built by clang, warnings are errors
	scripts/install-packages.sh clang-14
	cmake --preset clang
	cmake --build --preset clang --parallel $(jobs)

check-asan check-tsan: check-%: packages  ## the unit tests under sanitizers
	cmake --preset $*
	cmake --build --preset $* --parallel $(jobs)
	ctest --preset $*

packages:
	@scripts/install-packages.sh
