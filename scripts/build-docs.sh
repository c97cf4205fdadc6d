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
PYTHONPATH=test/house PYTHONDONTWRITEBYTECODE=1 mkdocs build --quiet --strict --clean --config-file "$build/site-pages/mkdocs.yml"
# Debian's package names scripts that it does not have, or has by another name: jQuery, help for old browsers, wide tables.
for script in jquery-3.6.0.min html5shiv.min theme_extra; do
    [[ -e $build/site/js/$script.js ]] && continue
    if [[ $script == jquery* ]]; then cp "$build"/site/js/jquery-*.js "$build/site/js/$script.js"; else : >"$build/site/js/$script.js"; fi
done
if [[ ${#libraries[@]} -ne 0 ]]; then
    (cat scripts/libraries.doxygen && echo "OUTPUT_DIRECTORY = $build/site") | doxygen -
fi
scripts/check_site.py "$build/site"
echo "$build/site/index.html"
