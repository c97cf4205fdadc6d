#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds the documentation as a site: BUILD/site/index.html. A link to a page that is not there is an error, and so is a docstring of
# a public header that Doxygen does not understand. Without Doxygen the site has no pages of the libraries, and says so.
# Usage: build-docs.sh [BUILD]
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(realpath "${1:-build}")
libraries=()
if command -v doxygen >/dev/null; then libraries=(--libraries); else echo "build-docs: no doxygen, so no pages of the libraries" >&2; fi
scripts/site.py . "$build" "$build/site-pages" "${libraries[@]}"
mkdocs build --quiet --strict --clean --config-file "$build/site-pages/mkdocs.yml"
if [[ ${#libraries[@]} -ne 0 ]]; then
    (cat scripts/libraries.doxygen && echo "OUTPUT_DIRECTORY = $build/site") | doxygen -
fi
echo "$build/site/index.html"
