#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Opens the page of `hiroba report --html` in a browser (chromium, by chromedriver) and uses it: the
summary and the first advice, a variable that is chosen, zoom and drag, a table that is sorted, two runs
beside each other, light and dark. It must ask for nothing from elsewhere and say no error.

Status 77 where there is no chromedriver. --screenshots FOLDER takes pictures of it, for the guide.
Usage: page_runs.py --hiroba PATH [--screenshots FOLDER]
"""
import argparse
import base64
import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request

from report_runs import Runs

SECONDS = 300  # of wall time: a hang, and no busy machine
BYTES_MAX = 5 << 20


class Browser:
    """One window, spoken to by the WebDriver protocol."""

    def __init__(self, port):
        self.at = f"http://127.0.0.1:{port}/session"
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                            "--window-size=1280,900", "--force-device-scale-factor=1"]}
        made = self.ask("POST", "", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.at += "/" + made["sessionId"]

    def ask(self, method, path, body=None):
        request = urllib.request.Request(self.at + path, method=method, headers={"Content-Type": "application/json"},
                                         data=None if body is None else json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return json.load(answer)["value"]

    def open(self, file):
        self.ask("POST", "/url", {"url": pathlib.Path(file).as_uri()})

    def run(self, script, *arguments):
        return self.ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def click(self, selector):
        self.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", selector)
        found = self.ask("POST", "/element", {"using": "css selector", "value": selector})
        self.ask("POST", f"/element/{next(iter(found.values()))}/click", {})

    def pointer(self, *actions):
        """A mouse that moves, presses and releases: (type, x, y) in the window."""
        steps = [{"type": kind, "button": 0} if kind != "pointerMove" else {"type": kind, "x": x, "y": y, "duration": 50}
                 for kind, x, y in actions]
        self.ask("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": steps,
                                                   "parameters": {"pointerType": "mouse"}}]})

    def errors(self):
        return [entry["message"] for entry in self.ask("POST", "/se/log", {"type": "browser"})
                if entry["level"] == "SEVERE"]

    def screenshot(self, file):
        pathlib.Path(file).write_bytes(base64.b64decode(self.ask("GET", "/screenshot")))

    def close(self):
        self.ask("DELETE", "")


def started_driver():
    """chromedriver and its port. It chooses one by its IPv6 address, and ends where the same of IPv4 is in use."""
    for _ in range(20):
        driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        said = ""
        for line in driver.stdout:
            if found := re.search(r"started successfully on port (\d+)", line):
                return driver, found[1]
            said = line
        driver.wait()
        if "port not available" not in said:
            break
    raise RuntimeError(f"chromedriver ended with status {driver.returncode}: {said}")


@contextlib.contextmanager
def browser():
    driver, port = started_driver()
    try:
        window = Browser(port)
        try:
            yield window
        finally:
            window.close()
    finally:
        driver.terminate()
        driver.wait()


def page_of(runs):
    """Of a program with an illness, beside its cured twin."""
    ill, cured, page = runs.file, runs.folder / "cured.hrec", runs.folder / "page.html"
    runs.file = cured
    runs.run("column_wise", "cured")
    runs.file = ill
    runs.run("column_wise", "ill")
    runs.report("--html", page, "--beside", cured)
    return page


# What the page has to do, as scripts that return what there is.
FIRST = "return document.querySelector('.advice b').textContent"
ROWS = "return [...document.querySelectorAll('#variable-table tbody tr')].map(row => row.cells[0].textContent)"
RANGE = "return document.getElementById('range').textContent"
MARKED = """
const canvas = document.getElementById('time-canvas');
const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
const pen = document.createElement('canvas').getContext('2d');
pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--mark').trim();
pen.fillRect(0, 0, 1, 1);
const mark = pen.getImageData(0, 0, 1, 1).data;
let count = 0;
for (let at = 0; at < pixels.length; at += 4)
  count += pixels[at] === mark[0] && pixels[at + 1] === mark[1] && pixels[at + 2] === mark[2];
return count"""


def looks(window, page):
    """What is wrong with it, a line each."""
    if page.stat().st_size > BYTES_MAX:
        yield f"the page has {page.stat().st_size} bytes"
    window.open(page)
    if window.run(FIRST) != "column-wise loop":
        yield f"the first advice is {window.run(FIRST)}"
    say = window.run("return document.querySelector('.say').textContent")
    if "threads compute" not in say:
        yield f"the summary says: {say}"
    if window.run("return document.querySelectorAll('.run').length") != 2:
        yield "there are not two runs in the summary"
    whole = window.run(RANGE)
    for button in "#zoom-in", "#zoom-in":
        window.click(button)
    near = window.run(RANGE)
    if near == whole:
        yield f"nothing is zoomed: {near}"
    box = window.run("const box = document.getElementById('time-canvas').getBoundingClientRect(); return [box.x, box.y]")
    x, y = int(box[0]) + 600, int(box[1]) + 40
    window.pointer(("pointerMove", x, y), ("pointerDown", 0, 0), ("pointerMove", x - 200, y), ("pointerUp", 0, 0))
    if window.run(RANGE) == near:
        yield f"nothing moves when it is dragged: {near}"
    window.click("#zoom-all")
    if window.run(RANGE) != whole:
        yield f"all is {window.run(RANGE)}, was {whole}"
    yield from chooses(window)
    yield from compares(window)
    asked = window.run("return performance.getEntriesByType('resource').map(each => each.name)")
    if asked:
        yield f"the page asks for {asked}"
    yield from window.errors()


def chooses(window):
    window.run("document.querySelector('#variable-table').scrollIntoView()")
    before = window.run(MARKED)
    name = window.run("return [...document.querySelectorAll('#variable-table tbody tr')]"
                      ".find(row => row.dataset.variable.startsWith('matrix')).dataset.variable")
    window.run("[...document.querySelectorAll('#variable-table tbody tr')].find(row => row.dataset.variable === arguments[0]).click()", name)
    if window.run(MARKED) <= before:
        yield f"choosing {name} marks nothing in the timeline"
    chosen = window.run("return [...document.querySelectorAll('.chosen[data-variable]')].map(each => each.dataset.variable)")
    if chosen != [name] * 2:
        yield f"chosen are {chosen}, not {name} in the map and in the table"
    before = window.run(ROWS)
    window.click("#variable-table th")
    if window.run(ROWS) != sorted(before, key=str.lower) and window.run(ROWS) == before:
        yield "a click on a title sorts nothing"
    down = window.run(ROWS)
    window.click("#variable-table th")
    if window.run(ROWS) != down[::-1]:
        yield "a second click does not turn the order round"


def compares(window):
    titles = window.run("return [...document.querySelectorAll('#variable-table th')].map(each => each.textContent)")
    if "time in B" not in titles:
        yield f"the table has no column of the other run: {titles}"
    first = window.run("return document.getElementById('command').textContent")
    window.click("#run-choice button:nth-child(2)")
    second = window.run("return document.getElementById('command').textContent")
    if not (first.endswith("column_wise ill") and second.endswith("column_wise cured")):
        yield f"the runs are {first} and {second}"
    if "column-wise" in window.run("return document.getElementById('advice-list').textContent"):
        yield "the cured twin has the advice, too"
    paper = "return getComputedStyle(document.body).backgroundColor"
    light = window.run(paper)
    window.click("#theme")
    if window.run(paper) == light:
        yield f"light and dark are the same: {light}"


def take_pictures(window, page, folder):
    window.open(page)
    folder.mkdir(parents=True, exist_ok=True)
    for section in "summary", "timeline", "memory", "variables":
        window.run("document.getElementById(arguments[0]).scrollIntoView()", section)
        window.screenshot(folder / f"report_{section}.png")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hiroba", required=True)
    parser.add_argument("--screenshots", type=pathlib.Path)
    words = parser.parse_args()
    if shutil.which("chromedriver") is None:
        print("no chromedriver")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(words.hiroba, folder)
        page = page_of(runs)
        with browser() as window:
            faults = list(looks(window, page))
            if words.screenshots:
                take_pictures(window, page, words.screenshots)
    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
