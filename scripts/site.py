#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Collects the pages of the documentation for mkdocs: those of docs/, the README as the first page,
and a reference made from the commands themselves. Links that leave the pages lose their target.

Usage: site.py ROOT BUILD TARGET [--libraries]
BUILD has bin/hiroba; TARGET is emptied; --libraries: Doxygen's pages will lie in the site's folder libraries/.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

TOP = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md",
       "SECURITY.md": "security.md", "CODE_OF_CONDUCT.md": "code_of_conduct.md"}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
CONFIGURATION = """site_name: hiroba
docs_dir: pages
site_dir: {site}
use_directory_urls: false
theme:
  name: readthedocs
  navigation_depth: 3
plugins: [search]
markdown_extensions:
  - tables
  - fenced_code
  - sane_lists
  - toc:
      slugify: !!python/name:check_links.slug
nav: {nav}
"""
LIBRARIES = "* <a href='libraries/index.html'>Libraries</a>: the public headers\n"
# The parts of the site, in order; each names pages, or a folder whose other pages follow its README.
PARTS = [
    ("Start", ["index.md"]),
    ("Guide", ["guide/README.md", "guide/first-ten-minutes.md", "guide/two-machines.md", "guide/fast.md",
               "guide/report.md", "guide/statistics.md", "guide/when-it-fails.md", "guide", "tutorials", "examples.md"]),
    ("Reference", ["reference.md", "reference", "protocol.md", "glossary.md", "versions.md"]),
    ("Internals", ["internals/README.md", "architecture.md", "internals", "layers"]),
    ("Decisions", ["decisions/README.md", "decisions"]),
    ("Results", ["results/README.md", "results", "papers.md"]),
    ("Project", ["contributing.md", "roadmap.md", "style.md", "testing.md", "changelog.md", "security.md",
                 "code_of_conduct.md"]),
]


def navigation(pages):
    """What mkdocs is to show: every page, once."""
    left = {str(page.relative_to(pages)) for page in pages.rglob("*.md")}
    parts = []
    for name, wanted in PARTS:
        found = []
        for each in wanted:
            here = [each] if each.endswith(".md") else sorted(
                page for page in left if page.startswith(each + "/"))
            found += [page for page in here if page in left]
            left -= set(here)
        parts.append({name: found})
    if left:
        sys.exit(f"pages without a part of the site (scripts/site.py): {', '.join(sorted(left))}")
    return parts


def place_in_site(root, path):
    """Where a file of the repository lies in the site, or None."""
    name = str(path.relative_to(root)) if path.is_relative_to(root) else ""
    if name in TOP:
        return Path(TOP[name])
    inside = name.startswith("docs/") and path.is_file()
    return Path(name[len("docs/"):]) if inside else None


def rewritten(root, source, here, text):
    """The page with links as the site needs them."""
    def replace(found):
        mark, words, target = found.groups()
        if re.match(r"[a-z]+:|#", target):
            return found[0]
        path, _, anchor = target.partition("#")
        place = place_in_site(root, Path(os.path.normpath(source.parent / path)))
        if place is None:
            return words
        relative = os.path.relpath(place, here.parent)
        return f"{mark}[{words}]({relative}{'#' + anchor if anchor else ''})"
    return LINK.sub(replace, text)


def settings_page(hiroba):
    facts = json.loads(subprocess.run([hiroba, "info", "-c", "--json"], check=True,
                                      capture_output=True, text=True).stdout)
    lines = ["# Settings", "", "Environment variables; `hiroba info -c` shows their values, with `--all` also those for tests and for builders of runtimes.", "",
             "| name | meaning | values | default |", "|---|---|---|---|"]
    for each in facts["settings"]:
        cells = [f"`{each['name']}`", each["help"], each["values"], each["default"] or "–"]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def commands_page(hiroba):
    def helped(*words):
        done = subprocess.run([hiroba, *words, "--help"], capture_output=True, text=True)
        if done.returncode == 78:  # built without a library that this command needs
            return done.stderr
        done.check_returncode()
        return done.stdout
    whole = helped()
    text = "# Commands\n\n```\n" + whole + "```\n"
    for name in re.findall(r"^  (\w+) ", whole.split("Subcommands:")[1], re.MULTILINE):
        text += f"\n## hiroba {name}\n\n```\n{helped(name)}```\n"
    return text


def main():
    has_libraries = "--libraries" in sys.argv
    root, build, target = (Path(word).resolve() for word in sys.argv[1:4])
    pages = target / "pages"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(root / "docs", pages)
    for name, page in TOP.items():
        if (root / name).is_file():
            shutil.copy(root / name, pages / page)
    for page in pages.rglob("*.md"):
        here = page.relative_to(pages)
        source = next((root / name for name, top in TOP.items() if str(here) == top),
                      root / "docs" / here)
        page.write_text(rewritten(root, source, here, page.read_text()))
    reference = pages / "reference"
    reference.mkdir()
    hiroba = build / "bin" / "hiroba"
    (reference / "commands.md").write_text(commands_page(hiroba))
    (reference / "settings.md").write_text(settings_page(hiroba))
    page = pages / "reference.md"
    page.write_text(page.read_text() + "\n".join([
        "", "## Pages made from the program", "", "* [Commands](reference/commands.md)",
        "* [Settings](reference/settings.md)"]) + "\n" + (LIBRARIES if has_libraries else ""))
    (target / "mkdocs.yml").write_text(
        CONFIGURATION.format(site=build / "site", nav=json.dumps(navigation(pages))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
