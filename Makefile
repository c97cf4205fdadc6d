# SPDX-License-Identifier: BSD-3-Clause
# The short commands. Each can be given again and again, and works offline once the packages are
# there (scripts/install-packages.sh).
jobs ?= $(shell nproc)
# What may run at once is limited by what tests compute (build/cores.json); this only limits those that wait.
test_jobs ?= $(shell expr 6 '*' $$(nproc))
# No process of a test computes longer, in seconds; of wall time tests may take much (docs/testing.md).
test_seconds ?= 300
prefix ?= /usr/local
# What is missing is installed by apt-get; PACKAGES=no only names it.
PACKAGES ?= yes
export PACKAGES
# The presets name Ninja. Looked up when a recipe runs, because `packages` may just have installed it.
configure = cmake $(if $(shell command -v ninja),,-G "Unix Makefiles") --preset
build = cmake --build --parallel $(jobs) --preset
ctest = ulimit -t $(test_seconds) && ctest --parallel $(test_jobs) --preset

.PHONY: build check check-fast nightly demo examples install deb tarball docs format tidy asan tsan \
  check-clang check-asan check-tsan packages check-packages help
.DEFAULT_GOAL := build

build: packages  ## build/bin/hiroba and its libraries, optimized; nothing else
	$(configure) release
	$(build) release

check: check-packages  ## builds all and runs all tests, also those that take long
	$(configure) check
	$(build) check
	$(ctest) check || { scripts/print-failed.sh build; exit 1; }

check-fast: check-packages  ## the tests of a minute and a half
	$(configure) check
	$(build) check
	$(ctest) fast

nightly: check-packages  ## the long forms of the tests, for hours
	$(configure) check
	$(build) check
	cmake --build build --parallel $(jobs) --target planted_at_night
	ctest --preset nightly

install:  ## what `make` built, below prefix=/usr/local; DESTDIR is honoured
	cmake --install build --prefix $(prefix)

deb: packages  ## Debian packages: build-deb/*.deb
	scripts/install-packages.sh deb
	$(configure) deb
	$(build) deb
	cd build-deb && cpack -G DEB

tarball: packages  ## everything in one archive, for hosts with glibc 2.31 and later: build-portable/*.tar.gz
	scripts/portable-tarball.sh

docs: build  ## the guide and the reference as a site: build/site
	scripts/install-packages.sh docs
	scripts/build-docs.sh build

examples: packages  ## build/examples
	$(configure) release -D HIROBA_EXAMPLES=ON
	cmake --build build --parallel $(jobs) --target product examples

demo: examples  ## an OpenMP program on several nodes, measured
	scripts/demo.sh build

format:  ## lays out all C and C++ text as .clang-format says
	scripts/install-packages.sh format
	scripts/format.sh

tidy: check-packages  ## clang-tidy over the product, as .clang-tidy says
	scripts/install-packages.sh tidy
	$(configure) clang
	scripts/tidy.sh

check-clang: check-packages  ## everything built by clang, warnings are errors
	$(configure) clang
	$(build) clang

asan: check-asan  ## the unit tests under the address and undefined-behaviour sanitizers
tsan: check-tsan  ## the unit tests under the thread sanitizer

check-asan check-tsan: check-%: check-packages
	$(configure) $*
	$(build) $*
	ctest --preset $*

packages:
	@scripts/install-packages.sh build

check-packages:
	@scripts/install-packages.sh build check

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*##  *\(.*\)/  make \1@\2/p' Makefile | column -t -s @
