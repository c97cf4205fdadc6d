// SPDX-License-Identifier: BSD-3-Clause
// The report as a page: everything comes from the element #data, and nothing from elsewhere.
"use strict";

const runs = JSON.parse(document.getElementById("data").textContent);
const shareNames = [
  ["computing_ns", "computing"], ["faults_ns", "faults: memory of other nodes is brought"],
  ["releases_ns", "releases: changes are made known"], ["acquires_ns", "acquires: changes of others are taken over"],
  ["atomics_ns", "atomics on what another node has"], ["locks_ns", "waiting for locks"],
  ["slower_ns", "waiting for slower threads"], ["serial_ns", "waiting for the serial part"],
  ["meetings_ns", "regions and barriers themselves"]];
const spanShares = {region: "region", barrier: "meetings", fork: "meetings", join: "meetings", idle: "serial", wait: "meetings",
  lock: "locks", unlock: "locks", fault: "faults", release: "releases", acquire: "acquires", atomic: "atomics",
  task: "computing"};
const state = {run: 0, variable: null, begin: 0, end: 1};

const byId = (id) => document.getElementById(id);
const element = (tag, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const share = (key) => key.replace("_ns", "");

function timeText(ns) {
  if (ns >= 1e10) return (ns / 1e9).toFixed(1) + " s";
  if (ns >= 1e9) return (ns / 1e9).toFixed(2) + " s";
  if (ns >= 1e6) return (ns / 1e6).toFixed(1) + " ms";
  return (ns / 1e3).toFixed(ns >= 1e4 ? 0 : 1) + " µs";
}
function bytesText(bytes) {
  if (bytes >= 2 ** 30) return (bytes / 2 ** 30).toFixed(1) + " GiB";
  if (bytes >= 2 ** 20) return (bytes / 2 ** 20).toFixed(1) + " MiB";
  return (bytes / 1024).toFixed(1) + " KiB";
}
const sumOf = (shares) => shareNames.reduce((sum, [key]) => sum + shares[key], 0);

// --- tip -----------------------------------------------------------------------------------------

function showTip(text, event) {
  const tip = byId("tip");
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8)) + "px";
  tip.style.top = Math.max(4, Math.min(event.clientY + 14, innerHeight - box.height - 8)) + "px";
}
const hideTip = () => { byId("tip").hidden = true; };

// --- summary -------------------------------------------------------------------------------------

function bar(shares, small) {
  const all = sumOf(shares) || 1;
  const made = element("div", {className: small ? "bar small" : "bar"});
  for (const [key, text] of shareNames) {
    if (shares[key] / all < 5e-4) continue;
    const part = element("span");
    part.style.width = 100 * shares[key] / all + "%";
    part.style.background = `var(--${share(key)})`;
    part.onmousemove = (event) => showTip(`${text}: ${(100 * shares[key] / all).toFixed(1)} %`, event);
    part.onmouseleave = hideTip;
    made.append(part);
  }
  return made;
}

function sentence(run) {
  const all = sumOf(run.shares) || 1;
  const computing = 100 * run.shares.computing_ns / all;
  const rest = shareNames.slice(1).reduce((most, each) => run.shares[each[0]] > run.shares[most[0]] ? each : most);
  const lost = 100 * run.shares[rest[0]] / all;
  const what = rest[1].split(":")[0];
  return `${timeText(run.wall_ns)}, of which threads compute ${computing.toFixed(0)} %.` +
    (lost >= 1 ? ` Most of the rest: ${what}, ${lost.toFixed(0)} %.` : "");
}

function showSummary() {
  const place = byId("runs");
  place.replaceChildren();
  runs.forEach((run, number) => {
    const box = element("div", {className: "run"});
    if (runs.length > 1)
      box.append(element("p", {className: "hint", textContent: `${"AB"[number]}: ${run.file.split("/").pop()}, ${run.nodes} nodes of ${run.threads_per_node}`}));
    box.append(element("p", {className: "say", textContent: sentence(run)}));
    for (const note of [...run.notes, run.busy].filter(Boolean)) box.append(element("p", {className: "note", textContent: note + "."}));
    box.append(bar(run.shares, false));
    for (const thread of run.threads.slice(0, 64))
      box.append(element("div", {className: "thread"}, element("span", {textContent: `node ${thread.node} thread ${thread.thread}`}), bar(thread, true)));
    const legend = element("div", {className: "legend"});
    const all = sumOf(run.shares) || 1;
    for (const [key, text] of shareNames) {
      if (run.shares[key] === 0) continue;
      const mark = element("i");
      mark.style.background = `var(--${share(key)})`;
      legend.append(element("span", {}, mark, `${text} ${(100 * run.shares[key] / all).toFixed(1)} %`));
    }
    box.append(legend);
    place.append(box);
  });
}

function showAdvice(run) {
  const place = byId("advice-list");
  place.replaceChildren();
  if (run.advice.length === 0) place.append(element("p", {textContent: "Nothing that the guide lists takes more than 2 % of the time."}));
  for (const each of run.advice) {
    const part = 100 * each.saves_ns / run.wall_ns;
    const box = element("div", {className: "advice"},
      element("span", {className: "saves", textContent: `saves up to ${timeText(each.saves_ns)} (${part.toFixed(0)} %), ${each.sure}`}),
      element("b", {textContent: each.illness}), " ", element("code", {textContent: each.line}),
      element("p", {textContent: each.what + "."}), element("p", {textContent: "→ " + each.cure + "."}));
    box.style.borderLeftWidth = Math.max(3, Math.min(20, part / 3)) + "px";
    place.append(box);
  }
}

// --- timeline ------------------------------------------------------------------------------------

const rowHeight = 26, rowGap = 6, labelWidth = 120, axisHeight = 20;

class Timeline {
  constructor(canvas) {
    this.canvas = canvas;
    this.drag = null;
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(event.deltaY < 0 ? 0.7 : 1 / 0.7, this.timeAt(event.offsetX));
    }, {passive: false});
    canvas.addEventListener("pointerdown", (event) => { this.drag = {x: event.offsetX, begin: state.begin, end: state.end}; canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointerup", () => { this.drag = null; });
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerleave", hideTip);
    canvas.addEventListener("dblclick", () => this.show(0, this.run.wall_ns));
  }
  open(run) {
    this.run = run;
    this.show(0, run.wall_ns);
  }
  get width() { return this.canvas.clientWidth - labelWidth; }
  timeAt(x) { return state.begin + (x - labelWidth) / this.width * (state.end - state.begin); }
  xAt(time) { return labelWidth + (time - state.begin) / (state.end - state.begin) * this.width; }
  show(begin, end) {
    const least = 1000, all = Math.max(this.run.wall_ns, least);
    const length = Math.min(all, Math.max(least, end - begin));
    state.begin = Math.max(0, Math.min(begin, all - length));
    state.end = state.begin + length;
    this.draw();
  }
  zoom(factor, around) {
    const length = (state.end - state.begin) * factor;
    const part = (around - state.begin) / (state.end - state.begin);
    this.show(around - part * length, around + (1 - part) * length);
  }
  move(event) {
    if (this.drag) {
      const by = (this.drag.x - event.offsetX) / this.width * (this.drag.end - this.drag.begin);
      this.show(this.drag.begin + by, this.drag.end + by);
      return;
    }
    const found = this.spanAt(event.offsetX, event.offsetY);
    if (!found) return hideTip();
    const {kinds, places} = this.run.timeline;
    const variable = found.variable >= 0 ? "\n" + this.run.timeline.variables[found.variable] : "";
    showTip(`${kinds[found.kind]} ${timeText(found.length)}\n${places[found.place]}${variable}`, event);
  }
  /// Spans are five numbers each: begin, length, kind, place, variable; outer ones come first.
  *spans(track) {
    const all = track.spans;
    for (let at = 0; at < all.length; at += 5)
      yield {begin: all[at], length: all[at + 1], kind: all[at + 2], place: all[at + 3], variable: all[at + 4]};
  }
  spanAt(x, y) {
    const tracks = this.run.timeline.tracks;
    const track = tracks[Math.floor((y - axisHeight) / (rowHeight + rowGap))];
    if (!track || x < labelWidth) return null;
    const time = this.timeAt(x), near = 2 * (state.end - state.begin) / this.width;
    let best = null;
    for (const span of this.spans(track)) {
      if (time < span.begin - near || time > span.begin + span.length + near) continue;
      if (!best || span.length <= best.length) best = span;
    }
    return best;
  }
  draw() {
    const {canvas, run} = this;
    const tracks = run.timeline.tracks, ratio = devicePixelRatio || 1;
    const height = axisHeight + tracks.length * (rowHeight + rowGap);
    canvas.style.height = height + "px";
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = height * ratio;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = "12px system-ui, sans-serif";
    this.drawAxis(pen, height);
    const colours = run.timeline.kinds.map((kind) => colour(spanShares[kind] || "meetings"));
    const marked = state.variable === null ? -1 : run.timeline.variables.indexOf(state.variable);
    tracks.forEach((track, row) => this.drawTrack(pen, track, axisHeight + row * (rowHeight + rowGap), colours, marked));
    this.drawFlows(pen, marked);
    byId("range").textContent = `${timeText(state.begin)} to ${timeText(state.end)}`;
  }
  drawAxis(pen, height) {
    const length = state.end - state.begin;
    let step = 10 ** Math.floor(Math.log10(length / 5));
    for (const more of [5, 2]) if (length / (step * more) >= 5) { step *= more; break; }
    pen.fillStyle = colour("faint");
    pen.strokeStyle = colour("line");
    for (let time = Math.ceil(state.begin / step) * step; time <= state.end; time += step) {
      const x = this.xAt(time);
      pen.fillText(timeText(time), x + 3, 13);
      pen.beginPath(); pen.moveTo(x, 0); pen.lineTo(x, height); pen.stroke();
    }
  }
  drawTrack(pen, track, top, colours, marked) {
    pen.fillStyle = colour("ink");
    pen.fillText(track.name, 2, top + rowHeight / 2 + 4);
    pen.fillStyle = colour("card");
    pen.fillRect(labelWidth, top, this.width, rowHeight);
    const lastAt = [];
    for (const span of this.spans(track)) {
      const end = span.begin + span.length;
      if (end < state.begin || span.begin > state.end) continue;
      const left = Math.max(labelWidth, this.xAt(span.begin)), right = Math.min(labelWidth + this.width, this.xAt(end));
      const width = Math.max(right - left, 0.7);
      const isMarked = marked >= 0 && span.variable === marked;
      if (width < 1 && !isMarked && lastAt[span.kind] !== undefined && left - lastAt[span.kind] < 0.5) continue;
      lastAt[span.kind] = left;
      const isRegion = this.run.timeline.kinds[span.kind] === "region";
      pen.fillStyle = isMarked ? colour("mark") : colours[span.kind];
      pen.fillRect(left, isRegion || isMarked ? top : top + 4, isMarked ? Math.max(width, 2) : width, isRegion || isMarked ? rowHeight : rowHeight - 8);
    }
  }
  /// From the release that published to the thread that brought it; of the chosen variable, or all where few are seen.
  drawFlows(pen, marked) {
    const {flows} = this.run.timeline;
    const seen = [];
    for (let at = 0; at < flows.length && seen.length <= 400; at += 5) {
      const [from, fromTime, to, toTime, variable] = flows.slice(at, at + 5);
      if (toTime < state.begin || fromTime > state.end || (marked >= 0 && variable !== marked)) continue;
      seen.push([from, fromTime, to, toTime]);
    }
    if (seen.length > 400) return;
    pen.strokeStyle = colour("mark");
    pen.globalAlpha = 0.45;
    const middle = (row) => axisHeight + row * (rowHeight + rowGap) + rowHeight / 2;
    for (const [from, fromTime, to, toTime] of seen) {
      pen.beginPath(); pen.moveTo(this.xAt(fromTime), middle(from)); pen.lineTo(this.xAt(toTime), middle(to)); pen.stroke();
    }
    pen.globalAlpha = 1;
  }
}

function showTimeLegend(run) {
  const legend = byId("time-legend");
  legend.replaceChildren();
  for (const kind of run.timeline.kinds) {
    const mark = element("i");
    mark.style.background = `var(--${spanShares[kind] || "meetings"})`;
    legend.append(element("span", {}, mark, kind));
  }
  if (run.timeline.left_out > 0) legend.append(element("span", {className: "note", textContent: `${run.timeline.left_out} spans below ${timeText(run.timeline.least_ns)} are left out`}));
}

// --- memory --------------------------------------------------------------------------------------

const useColours = {exclusive: "computing", read: "meetings", shared: "releases", false: "faults"};
const useTexts = {exclusive: "one node uses it", read: "one writes, others read", shared: "several write", false: "several write different bytes: false sharing"};

function showMemory(run) {
  const legend = byId("memory-legend"), map = byId("memory-map");
  legend.replaceChildren();
  map.replaceChildren();
  for (const [use, text] of Object.entries(useTexts)) {
    const mark = element("i");
    mark.style.background = `var(--${useColours[use]})`;
    legend.append(element("span", {}, mark, text));
  }
  for (const variable of run.memory) map.append(variableMap(run, variable));
}

function variableMap(run, variable) {
  const box = element("div", {className: "variable-map"});
  box.dataset.variable = variable.name;
  const title = element("h3", {textContent: `${variable.name} · ${variable.blocks.length / 5} blocks`});
  title.onclick = () => choose(variable.name);
  const canvas = element("canvas");
  box.append(title, canvas);
  requestAnimationFrame(() => drawBlocks(run, variable, canvas));
  return box;
}

/// A block is five numbers: its number in the variable, use, moves, nodes that wrote, nodes that read (as bits).
function drawBlocks(run, variable, canvas) {
  const side = 9, across = Math.max(8, Math.floor(canvas.parentElement.clientWidth / side));
  const count = variable.blocks.length / 5, ratio = devicePixelRatio || 1;
  const height = Math.ceil(count / across) * side;
  canvas.style.height = height + "px";
  canvas.width = across * side * ratio;
  canvas.style.width = across * side + "px";
  canvas.height = height * ratio;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const uses = Object.keys(useTexts), most = Math.max(1, variable.most_moves);
  for (let at = 0; at < count; ++at) {
    const [, use, moves] = variable.blocks.slice(at * 5, at * 5 + 3);
    pen.fillStyle = colour(useColours[uses[use]]);
    pen.globalAlpha = 0.25 + 0.75 * Math.sqrt(moves / most);
    pen.fillRect(at % across * side, Math.floor(at / across) * side, side - 1, side - 1);
  }
  const nodes = (bits) => [...Array(run.nodes).keys()].filter((node) => node < 31 && bits >> node & 1).join(" ") || "none";
  canvas.onmousemove = (event) => {
    const at = Math.floor(event.offsetY / side) * across + Math.floor(event.offsetX / side);
    if (at >= count) return hideTip();
    const [number, use, moves, writers, readers] = variable.blocks.slice(at * 5, at * 5 + 5);
    showTip(`block ${number} of ${variable.name}\n${useTexts[uses[use]]}\nmoved ${moves} times; written by node ${nodes(writers)}, brought by ${nodes(readers)}`, event);
  };
  canvas.onmouseleave = hideTip;
  canvas.onclick = () => choose(variable.name);
}

// --- tables --------------------------------------------------------------------------------------

function fillTable(table, columns, rows, onRow) {
  const order = {column: 1, down: true};
  const head = element("tr"), body = element("tbody");
  const fill = () => {
    const key = columns[order.column].value;
    const sorted = [...rows].sort((a, b) => {
      const [first, second] = [key(a), key(b)];
      const less = typeof first === "string" ? first.localeCompare(second) : first - second;
      return order.down ? -less : less;
    });
    body.replaceChildren(...sorted.map((row) => {
      const line = element("tr", {}, ...columns.map((column) => element("td", {textContent: column.text ? column.text(row) : column.value(row)})));
      if (onRow) onRow(line, row);
      return line;
    }));
    [...head.children].forEach((cell, at) => { cell.className = at !== order.column ? "" : order.down ? "down" : "up"; });
  };
  columns.forEach((column, at) => head.append(element("th", {textContent: column.title, onclick: () => {
    order.down = order.column === at ? !order.down : at !== 0;
    order.column = at;
    fill();
  }})));
  table.replaceChildren(element("thead", {}, head), body);
  fill();
}

const timeColumn = (title, value) => ({title, value, text: (row) => timeText(value(row))});

function showTables(run) {
  const label = (row) => row.line ? `${row.name}, ${row.line}` : row.name;
  const cost = (row) => row.fault_ns + row.release_ns + row.acquire_ns + row.atomic_ns;
  const other = runs.length > 1 ? runs[1 - state.run] : null;
  const before = other ? new Map(other.variables.map((row) => [label(row), cost(row)])) : null;
  const variableColumns = [
    {title: "variable", value: label}, timeColumn("time", cost), timeColumn("faults'", (row) => row.fault_ns),
    timeColumn("releases'", (row) => row.release_ns), timeColumn("acquires'", (row) => row.acquire_ns),
    {title: "faults", value: (row) => row.read_faults + row.write_faults},
    {title: "published", value: (row) => row.blocks_published},
    {title: "fetched", value: (row) => row.bytes_fetched, text: (row) => bytesText(row.bytes_fetched)},
    {title: "blocks", value: (row) => row.blocks}, {title: "falsely shared", value: (row) => row.blocks_falsely_shared},
    {title: "written by", value: (row) => row.writers.join(" ")}, {title: "read by", value: (row) => row.readers.join(" ")}];
  if (before) variableColumns.splice(2, 0, timeColumn(`time in ${"AB"[1 - state.run]}`, (row) => before.get(label(row)) || 0));
  fillTable(byId("variable-table"), variableColumns, run.variables, (line, row) => {
    line.dataset.variable = label(row);
    line.onclick = () => choose(label(row));
  });
  const waiting = (row) => row.slower_ns + row.serial_ns + row.locks_ns;
  const all = (row) => sumOf(row) - row.computing_ns;
  const syncsBefore = other ? new Map(other.synchronizations.map((row) => [row.place, all(row)])) : null;
  const syncColumns = [
    {title: "synchronization", value: (row) => row.place}, timeColumn("time", all), {title: "times", value: (row) => row.times},
    timeColumn("waiting", waiting), timeColumn("itself", (row) => row.meetings_ns), timeColumn("releases", (row) => row.releases_ns),
    timeColumn("acquires", (row) => row.acquires_ns), timeColumn("faults", (row) => row.faults_ns),
    {title: "blocks published", value: (row) => row.blocks_published}, {title: "made stale", value: (row) => row.blocks_made_stale}];
  if (syncsBefore) syncColumns.splice(2, 0, timeColumn(`time in ${"AB"[1 - state.run]}`, (row) => syncsBefore.get(row.place) || 0));
  fillTable(byId("sync-table"), syncColumns, run.synchronizations);
}

// --- all together --------------------------------------------------------------------------------

const timeline = new Timeline(byId("time-canvas"));

/// Marks a variable everywhere; the same once more: none.
function choose(name) {
  state.variable = state.variable === name ? null : name;
  for (const marked of document.querySelectorAll("[data-variable]"))
    marked.classList.toggle("chosen", marked.dataset.variable === state.variable);
  timeline.draw();
}

function showRun(number) {
  state.run = number;
  state.variable = null;
  const run = runs[number];
  byId("command").textContent = run.command;
  byId("shape").textContent = `${run.nodes} nodes of ${run.threads_per_node} threads, ${timeText(run.wall_ns)}, ${run.regions} regions`;
  document.title = "hiroba report: " + run.command;
  byId("run-choice").replaceChildren(...(runs.length < 2 ? [] : runs.map((_, at) =>
    element("button", {textContent: "AB"[at], className: at === number ? "chosen" : "", onclick: () => showRun(at)}))));
  showAdvice(run);
  showTimeLegend(run);
  timeline.open(run);
  showMemory(run);
  showTables(run);
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  showRun(state.run);
}

byId("theme").onclick = () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
byId("zoom-in").onclick = () => timeline.zoom(0.5, (state.begin + state.end) / 2);
byId("zoom-out").onclick = () => timeline.zoom(2, (state.begin + state.end) / 2);
byId("zoom-all").onclick = () => timeline.show(0, runs[state.run].wall_ns);
addEventListener("resize", () => showRun(state.run));
showSummary();
setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
