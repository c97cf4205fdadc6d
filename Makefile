# SPDX-License-Identifier: BSD-3-Clause
# The short commands. Each can be given again and again, and works offline once the packages are
# there (scripts/install-packages.sh).
jobs ?= $(shell nproc)
# The presets name Ninja. Looked up when a recipe runs, because `packages` may just have installed it.
configure = cmake $(if $(shell command -v ninja),,-G "Unix Makefiles") --preset
build = cmake --build --parallel $(jobs) --preset

.PHONY: build check demo examples format check-clang check-asan check-tsan packages check-packages
.DEFAULT_GOAL := build

build: packages  ## build/bin/hiroba and its libraries, optimized; nothing else
	$(configure) release
	$(build) release

check: check-packages  ## all tests
	$(configure) check
	$(build) check
	ctest --preset check

examples: packages  ## build/examples
	$(configure) release -D HIROBA_EXAMPLES=ON
	cmake --build build --parallel $(jobs) --target product examples

demo: examples  ## an OpenMP program on several nodes, measured
	scripts/demo.sh build

format:  ## lays out all C and C++ text as .clang-format says
	scripts/install-packages.sh format
	scripts/format.sh

check-clang: check-packages  ## everything built by clang, warnings are errors
	scripts/install-packages.sh clang-14
	$(configure) clang
	$(build) clang

check-asan check-tsan: check-%: check-packages  ## the unit tests under sanitizers
	$(configure) $*
	$(build) $*
	ctest --preset $*

packages:
	@scripts/install-packages.sh build

check-packages:
	@scripts/install-packages.sh build check
