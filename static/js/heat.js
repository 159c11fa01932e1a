// The heat map of nodes over time: cells on a canvas, words in HTML, and one link that stands on the
// selected cell: the pointer and the arrow keys move it, a click or Enter opens Explain.

import { addTable } from "./chart-access.js";
import { serverNow } from "./clock.js";
import { clock, format } from "./format.js";
import { tokenReader } from "./theme.js";

const BLUE = [[0, "--heat-0"], [0.5, "--heat-1"], [0.8, "--heat-2"]];
const GAP = 1;
const ROW_PX = 26;
const LEAST_ROW_PX = 12;
const TABLE_ROWS = 120;
const ALL = Symbol("all columns");

export class HeatMap {
  constructor(card) {
    Object.assign(this, { card, canvas: card.querySelector("canvas"), area: card.querySelector(".area"), link: card.querySelector(".cell-focus"), names: card.querySelector(".names"), times: card.querySelector(".xs"), at: null });
    addTable(card.querySelector(".heat"), "Load per node", () => this.#table());
    this.near = Number(card.dataset.near) || 1;
    this.limit = Number(card.dataset.limit) || 1;
    this.area.addEventListener("pointermove", (event) => this.#point(event));
    this.area.addEventListener("click", (event) => { if (event.target === this.canvas) { this.#point(event); this.link.click(); } });
    this.link.addEventListener("keydown", (event) => this.#key(event));
    addEventListener("weir:theme", () => { this.color = null; this.#draw(); });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.color = null; this.#draw(); });
    // The size is remembered: reading it would lay out the page once per second.
    this.size = [0, 0];
    new ResizeObserver(([{ contentRect }]) => {
      this.size = [contentRect.width, contentRect.height];
      this.#draw();
    }).observe(this.area);
  }

  /** Take the cells of a range; `live`: samples are added. */
  load({ start, step, nodes, shares }, live) {
    Object.assign(this, { start, step, nodes, shares, live, count: shares[0]?.length ?? 0 });
    this.counts = nodes.map(() => 0);
    this.bucket = null;
    this.at = null;
    this.names.replaceChildren(...nodes.map(([index, name]) => this.#nodeLink(index, name)));
    const row = nodes.length > 16 ? LEAST_ROW_PX : ROW_PX;
    this.area.style.height = `${Math.max(5 * ROW_PX, row * nodes.length)}px`;
    const empty = this.card.querySelector(".empty");
    empty.hidden = nodes.length > 0;
    empty.textContent = nodes.length ? "" : "This cluster has no node yet.";
    this.#times();
    this.#draw();
  }

  /** Add a live sample to the cells of its bucket. */
  add(samples) {
    if (!this.live || !this.count) return;
    const columns = new Set(samples.map((sample) => this.#addOne(sample)));
    this.isStale ||= document.hidden || columns.has(ALL);
    if (document.hidden) return;
    this.#draw(this.isStale ? null : columns);
    this.isStale = false;
  }

  // Returns the column that changed, ALL if they moved.
  #addOne({ t, loads }) {
    const bucket = Math.floor(t / this.step);
    let column = bucket - this.start / this.step;
    if (column < 0 || !loads) return null;
    const isMoved = column >= this.count;
    while (column >= this.count) {
      for (const row of this.shares) { row.shift(); row.push(null); }
      this.start += this.step;
      column -= 1;
      if (this.at) this.at[1] = Math.max(0, this.at[1] - 1);
      this.bucket = null;
      if (column >= 2 * this.count) return ALL;
    }
    if (this.bucket !== bucket) {
      this.bucket = bucket;
      this.counts.fill(this.shares[0][column] === null ? 0 : 1);
      this.#times();
    }
    this.nodes.forEach(([index, , capacity], row) => {
      const load = loads[index];
      if (load === undefined || load === null) return;
      const n = this.counts[row]++;
      this.shares[row][column] = ((this.shares[row][column] ?? 0) * n + load / capacity) / (n + 1);
    });
    return isMoved ? ALL : column;
  }

  #nodeLink(index, name) {
    const link = document.createElement("a");
    link.href = `/clusters/${document.body.dataset.cluster}/nodes/${index}/`;
    link.textContent = name;
    return link;
  }

  #times() {
    const marks = [0, 0.25, 0.5, 0.75, 1].map((part) => {
      const span = document.createElement("span");
      const length = this.count * this.step;
      const t = this.start + part * length;
      span.textContent = length > 36 * 3600e3 ? new Date(t).toISOString().slice(5, 16).replace("T", " ") : clock(t);
      span.style.left = `${100 * part}%`;
      return span;
    });
    this.times.replaceChildren(...marks);
  }

  // Draws the given columns, null for all.
  #draw(columns = null) {
    const [width, height] = this.size;
    if (!this.count || !width) return;
    const ratio = devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      columns = null;
    }
    const context = this.canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const [w, h] = [width / this.count, height / this.nodes.length];
    const color = (this.color ??= colorer(tokenReader(), this.near, this.limit));
    for (const x of columns ?? Array(this.count).keys()) {
      if (x === null) continue;
      context.clearRect(x * w, 0, w, height);
      this.shares.forEach((row, y) => {
        const share = row[x];
        if (share === null) return;
        context.fillStyle = color(share);
        context.fillRect(x * w, y * h, Math.max(1, w - GAP), Math.max(1, h - GAP));
      });
    }
    const finding = this.#finding();
    if (this.canvas.getAttribute("aria-label") !== finding) this.canvas.setAttribute("aria-label", finding);
    this.#place();
  }

  #finding() {
    const over = this.nodes.filter((_, row) => this.shares[row].some((share) => share > this.limit));
    const limit = format.percent(this.limit);
    const text = over.length ? `${over.slice(0, 5).map(([, name]) => name).join(", ")}${over.length > 5 ? ` and ${over.length - 5} others` : ""} exceed${over.length === 1 ? "s" : ""} ${limit}` : `no node exceeds ${limit}`;
    return `Load of ${this.nodes.length} nodes over time as a share of capacity: ${text}. Each cell is explained by the link that the arrow keys move.`;
  }

  // The newest cells first, one column per node.
  #table() {
    const columns = [...Array(this.count ?? 0).keys()].reverse().slice(0, TABLE_ROWS);
    const write = (share) => (share === null ? "–" : format.percent(share));
    const time = (column) => new Date(this.start + column * this.step).toISOString().slice(0, 19).replace("T", " ");
    return { head: ["Time, UTC", ...(this.nodes ?? []).map(([, name]) => name)], body: columns.map((column) => [time(column), ...this.shares.map((row) => write(row[column]))]) };
  }

  #point(event) {
    const box = this.area.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * this.count);
    const row = Math.floor(((event.clientY - box.top) / box.height) * this.nodes?.length);
    this.#select(row, column);
  }

  #key(event) {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!step || !this.shown) return;
    event.preventDefault();
    event.stopPropagation();
    this.#select(this.shown[0] + step[0], this.shown[1] + step[1]);
  }

  #select(row, column) {
    if (!this.count) return;
    this.at = [Math.min(this.nodes.length - 1, Math.max(0, row)), Math.min(this.count - 1, Math.max(0, column))];
    this.#place();
  }

  // Until a cell is selected, the link stands on the newest cell of the fullest node.
  #place() {
    const [row, column] = this.at ?? this.#fullest();
    const [index, name] = this.nodes[row];
    const [t, share] = [this.start + column * this.step, this.shares[row][column]];
    const [w, h] = [100 / this.count, 100 / this.nodes.length];
    const middle = Math.round(t + this.step / 2);
    const subject = `node:${index}@${middle <= serverNow() ? middle : t}`;
    const place = `${row} ${column} ${this.count} ${this.nodes.length}`;
    if (place !== this.placed) {
      this.placed = place;
      Object.assign(this.link.style, { left: `${column * w}%`, top: `${row * h}%`, width: `${w}%`, height: `${h}%` });
      this.link.hidden = false;
    }
    if (subject !== this.link.dataset.explain) {
      this.link.dataset.explain = subject;
      const url = new URL(location.href);
      url.searchParams.set("explain", subject);
      this.link.href = url;
    }
    const text = `${name} · ${clock(t, this.step < 60e3)} · ${share === null ? "no data" : format.percent(share)}`;
    if (text !== this.link.firstElementChild.textContent) {
      this.link.firstElementChild.textContent = text;
      this.link.setAttribute("aria-label", `Explain ${text}`);
    }
    this.link.classList.toggle("selected", this.at !== null);
    this.link.classList.toggle("left", column < this.count / 3);
    this.link.classList.toggle("below", row === 0);
    this.shown = [row, column];
  }

  #fullest() {
    for (let column = this.count - 1; column >= 0; column -= 1) {
      const values = this.shares.map((row) => row[column] ?? -1);
      const most = Math.max(...values);
      if (most >= 0) return [values.indexOf(most), column];
    }
    return [0, this.count - 1];
  }
}

/** Return the colour of a share: shades of blue, amber near the limit, red above it. */
function colorer(token, near, limit) {
  const stops = BLUE.map(([share, name]) => [share * near, rgb(token(name))]);
  const [warn, bad] = [token("--heat-3"), token("--heat-4")];
  return (share) => {
    if (share > limit) return bad;
    if (share >= near) return warn;
    const i = Math.max(0, stops.findLastIndex(([from]) => share >= from));
    const [[from, a], [to, b]] = [stops[i], stops[Math.min(i + 1, stops.length - 1)]];
    // In steps of a fifth, so that neighbours are compared at a glance.
    const part = to > from ? Math.round(5 * Math.min(1, (share - from) / (to - from))) / 5 : 0;
    return `rgb(${a.map((value, k) => Math.round(value + part * (b[k] - value))).join(" ")})`;
  };
}

const rgb = (text) => text.match(/[\d.]+/g).slice(0, 3).map(Number);
