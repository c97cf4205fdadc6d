#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds the documentation as a site: BUILD/site/index.html. A link to a page that is not there is an error.
# Usage: build-docs.sh [BUILD]
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(realpath "${1:-build}")
scripts/site.py . "$build" "$build/site-pages"
mkdocs build --quiet --strict --config-file "$build/site-pages/mkdocs.yml"
echo "$build/site/index.html"
