// Charts that live: a window of samples, drawn at most once per second. New points extend the lines
// as they are drawn, and the axis of time moves (deltas.js); Plotly draws the whole chart only when
// that is not enough. Charts out of view, of a hidden or paused page are not drawn.

import { makeAccessible } from "./chart-access.js";
import { extendLines, moveEnds, rememberLines, resetAxis } from "./deltas.js";
import { format, significant } from "./format.js";
import { placeLabels, plotSize, withTicks } from "./limit-labels.js";
import { isPaused } from "./range.js";
import { LastMinute, MINUTE, Pace, SampleWindow, withGaps } from "./samples.js";
import { themed, tokenReader } from "./theme.js";

// The widths of a letter of a mark, and of what is left and right of the plot, at most.
const [LETTER_PX, AXES_PX] = [6.5, 130];
const KEPT_DELAYS = 2000;
const MOST_MARKS = 300;
// Labels at the ends of lines are so far apart, in parts of the height.
const LABELS_APART = 0.07;
// A limit of more times the highest value is out of the picture: the chart names it above.
const FAR = 2.5;
const SPARE = 1.15;
// The words at the ends of lines follow them this often, in ms.
const ENDS_MS = 5000;
const LEAST_FILLED = 0.6;
// A live axis ends so much after the newest sample: room for the next ones.
const AHEAD_PART = 1 / 15;
const AHEAD_MS = 15e3;

export class ChartBoard {
  /** elements: Map of figure name -> element; plotly is given so that a test can watch it. */
  constructor(elements, plotly = window.Plotly) {
    Object.assign(this, { elements, plotly, figures: {}, visible: new Set(), stale: new Set(), behind: new Set(), timer: null, pace: new Pace(), drawnSample: null });
    this.marks = new Map(); // key -> { t, label, text, url }
    this.versions = new Map();
    addEventListener("weir:theme", () => this.#drawSoon([...this.elements.keys()], 0));
    addEventListener("weir:paused", ({ detail }) => detail || this.#schedule());
    document.addEventListener("visibilitychange", () => this.#schedule());
    // Plotly's own listener, which is newer, draws the charts as it knows them.
    addEventListener("resize", () => { elements.forEach(resetAxis); this.#drawSoon([...elements.keys()], 0); });
    for (const [name, element] of elements) for (const event of ["pointerenter", "focus"]) element.addEventListener(event, () => this.#settle(name));
    this.observer = new IntersectionObserver((entries) => this.#seen(entries), { rootMargin: "120px" });
    for (const element of elements.values()) this.observer.observe(element);
  }

  /** Take the figures and stored samples of a range. */
  load(answer) {
    this.figures = answer.figures;
    this.live = answer.live;
    this.missing = answer.missing;
    this.range = { start: answer.start, end: answer.end };
    this.window = new SampleWindow(answer.end - answer.start, answer.resolution, Object.keys(answer.columns), answer.outage_ms);
    this.window.load(rowsOf(answer.columns), answer.waited);
    this.minute = new LastMinute(answer.recent ?? [], Object.keys(answer.columns));
    this.drawnSample = this.window.last;
    this.marks.clear();
    const traces = Object.values(this.figures).flatMap(({ data }) => data.filter((trace) => trace.meta?.marks));
    for (const trace of traces) trace.x.forEach((t, i) => this.#mark(t, ...trace.customdata[i]));
    this.#drawSoon([...this.elements.keys()], 0);
  }

  /** Take live samples; they are drawn with the next free frame. */
  add(samples) {
    if (!this.window || !this.live) return;
    const before = this.window.newest;
    if (!this.window.add(samples.map((sample) => this.minute.add(sample)))) return;
    if (before && this.window.newest.version !== before.version) this.#versionChanged(before.version);
    this.#schedule();
  }

  /** Remember what a routing version is about, for its mark. */
  describe(version, text, proposal) {
    this.versions.set(version, { text, proposal });
    if (this.versions.size > MOST_MARKS) this.versions.delete(this.versions.keys().next().value);
  }

  // Placements of single queries are many: the time strip shows them as a density.
  #versionChanged(before) {
    const { version, t } = this.window.newest;
    for (const [number, { text, proposal }] of this.versions) {
      if (number > before && number <= version && proposal) this.#mark(t, `◆ ${proposal}`, text, "");
    }
  }

  // A plan of many versions has one mark, where it began.
  #mark(t, label, text, url) {
    const known = this.marks.get(label);
    if (known && t >= known.t) return;
    this.marks.set(label, { t, label, text, url });
    for (const name of this.elements.keys()) this.stale.add(name);
    if (this.marks.size > MOST_MARKS) this.marks.delete(this.marks.keys().next().value);
  }

  #seen(entries) {
    for (const { target, isIntersecting } of entries) {
      const name = target.dataset.figure;
      if (isIntersecting) this.visible.add(name);
      else this.visible.delete(name);
    }
    if ([...this.visible].some((name) => this.stale.has(name) || this.behind.has(name))) this.#drawSoon([], 0);
  }

  #schedule() {
    if (!this.live || !this.window || this.drawnSample === this.window.last) return;
    for (const name of this.elements.keys()) this.behind.add(name);
    this.#drawSoon([], Math.max(1, this.pace.rest()));
  }

  #drawSoon(names, wait) {
    for (const name of names) this.stale.add(name);
    if (wait === 0) { clearTimeout(this.timer); this.timer = null; }
    this.timer ??= setTimeout(() => requestAnimationFrame(() => this.#draw(wait === 0)), wait);
  }

  #draw(asked) {
    this.timer = null;
    if (!this.window || document.hidden || (isPaused() && !asked)) return;
    this.pace.happened();
    const samples = withGaps(this.window.samples);
    const names = [...this.visible].filter((name) => this.stale.has(name) || this.behind.has(name));
    for (const name of names) {
      if (this.stale.has(name) || !this.#extend(name, samples)) this.#drawFigure(name, samples);
      this.stale.delete(name);
      this.behind.delete(name);
    }
    if (names.length) this.#measure();
  }

  #extend(name, samples) {
    const [figure, element] = [this.figures[name], this.elements.get(name)];
    if (!figure || !this.live) return false;
    const lines = figure.data.filter(({ meta, visible }) => meta?.field && visible !== false);
    const range = liveRange(this.range, this.window.last);
    // Under a pointer or with keys, the points are those that Plotly has drawn.
    const isUsed = element.matches(":hover, :focus-within");
    const before = element.weirLines?.moved;
    if (!extendLines(element, samples, lines.map(({ meta }) => meta.field), isUsed ? null : range)) return false;
    for (const trace of lines) {
      fillTrace(trace, samples);
      const drawn = element.data.find(({ meta }) => meta?.field === trace.meta.field);
      Object.assign(drawn, { x: trace.x, y: trace.y });
    }
    const isFitting = element.weirLines.moved === before || isStillFitting(figure, samples, this.window.waited, range, element);
    return isFitting && this.#moveEnds(figure, element, samples, range);
  }

  // Each time they move, the browser lays out the texts of the drawing.
  #moveEnds(figure, element, samples, range) {
    const now = performance.now();
    if (now - (element.weirEndsMoved ?? -Infinity) < ENDS_MS) return true;
    element.weirEndsMoved = now;
    const ends = figure.data.find(({ meta }) => meta?.ends);
    fillTrace(ends, samples, figure.layout.yaxis.range[1], range);
    return moveEnds(element, ends);
  }

  // Before it is pointed to or gets the keys: Plotly knows neither new points nor a moved axis.
  #settle(name) {
    if (this.window && this.elements.get(name).weirLines?.isBehind) this.#drawFigure(name, withGaps(this.window.samples));
  }

  #drawFigure(name, samples) {
    const [figure, element] = [this.figures[name], this.elements.get(name)];
    if (!figure) return;
    const range = this.live ? liveRange(this.range, this.window.last) : this.range;
    if (samples.some((sample) => figure.data.some(({ meta }) => sample[meta?.field] != null))) delete element.dataset.waiting;
    else element.dataset.waiting = this.missing;
    const top = topOf(figure, samples, this.window.waited);
    for (const trace of figure.data) fillTrace(trace, samples, top, range);
    const marks = [...this.marks.values(), ...waitedMarks(figure, samples, this.window.waited, top)];
    for (const trace of figure.data.filter(({ meta }) => meta?.marks)) fillMarks(trace, marks, range, element.clientWidth - AXES_PX);
    const { layout } = figure;
    layout.xaxis.range = [range.start, range.end];
    layout.yaxis.range = [figure.layout.meta.floor && !samples.length ? 0 : lowOf(figure), top];
    layout.annotations = [...farLimits(layout, top), ...nearLimits(figure, top, element)];
    layout.datarevision = (layout.datarevision ?? 0) + 1;
    const shapes = layout.shapes.map(({ label, ...shape }) => shape);
    const shown = themed({ ...figure, layout: { ...withTicks(layout, element), shapes } }, tokenReader());
    resetAxis(element);
    this.plotly.react(element, shown.data, shown.layout, shown.config).then(() => {
      rememberLines(element, samples.at(-1));
      makeAccessible(element, findingOf(figure, samples));
      if (element.weirDrawn) return;
      element.weirDrawn = true;
      element.dispatchEvent(new CustomEvent("weir:drawn", { bubbles: true }));
    });
  }

  #measure() {
    if (this.window.last === this.drawnSample) return;
    this.drawnSample = this.window.last;
    const delays = (window.weirChartDelays ??= []);
    const emitted = this.window.newest.emitted_ms;
    if (Number.isFinite(emitted)) delays.push(Date.now() - emitted);
    if (delays.length > KEPT_DELAYS) delays.splice(0, delays.length - KEPT_DELAYS);
  }
}

// A live range ends after its newest sample.
function liveRange({ start, end }, last) {
  const length = end - start;
  const ahead = Math.min(length / 10, Math.max(AHEAD_MS, AHEAD_PART * length));
  const stop = (last ?? end) + ahead;
  return { start: stop - length, end: stop };
}

/** Return samples as objects from columns. */
export function rowsOf(columns) {
  const names = Object.keys(columns);
  return columns.t.map((_, i) => Object.fromEntries(names.map((name) => [name, columns[name][i]])));
}

/** Put the samples into a trace as its meta names them. */
export function fillTrace(trace, samples, top, range) {
  const meta = trace.meta ?? {};
  const scaled = (value) => (value === null || value === undefined ? null : value * (meta.scale ?? 1));
  if (meta.field) {
    trace.x = samples.map((sample) => sample.t);
    trace.y = samples.map((sample) => scaled(sample[meta.field]));
    trace.mode = trace.y.filter(Number.isFinite).length === 1 ? "lines+markers" : "lines";
    // A percentile that is a copy of a lower one is not drawn: p99 of a small batch is its p95.
    if (meta.field === "p99") trace.visible = differs(samples);
    // Nor is a limit before it is known: a line without points could not be extended.
    if (meta.field === "rf_limit") trace.visible = trace.y.some(Number.isFinite);
  } else if (meta.ends) fillEnds(trace, samples, top, range, scaled);
}

function differs(samples) {
  const known = samples.filter(({ p95, p99 }) => p95 && p99);
  return known.filter(({ p95, p99 }) => p99 > 1.02 * p95).length > known.length / 20;
}

const valueOf = (sample, field) => sample[field] ?? sample[field.replace(MINUTE, "")];

// The words stand at the right end of the axis, beside the newest values.
function fillEnds(trace, samples, top, range, scaled) {
  const { ends, words } = trace.meta;
  const labels = ends.map((field, place) => {
    // In the first minute there is no mean: the name stands beside the newest micro-batch.
    const last = samples.findLast((sample) => Number.isFinite(valueOf(sample, field)));
    const hidden = !last || !words[place] || (field === "p99" && !differs(samples));
    return hidden ? { t: null, y: null, text: "", place } : { t: range.end, y: Math.min(top, scaled(valueOf(last, field))), text: words[place], place };
  });
  const shown = labels.filter(({ text }) => text).sort((a, b) => a.y - b.y);
  for (let i = 1; i < shown.length; i += 1) shown[i].y = Math.max(shown[i].y, shown[i - 1].y + LABELS_APART * top);
  trace.x = labels.map(({ t }) => t);
  trace.y = labels.map(({ y }) => y);
  trace.text = labels.map(({ text }) => text && ` ${text}`);
}

function fillMarks(trace, marks, range, width) {
  const shown = marks.filter(({ t }) => t >= range.start && t <= range.end).sort((a, b) => a.t - b.t);
  trace.x = shown.map(({ t }) => t);
  trace.y = shown.map(() => 1);
  trace.text = markWords(shown, range, width);
  trace.customdata = shown.map(({ label, text, url }) => [label, text, url]);
  trace.error_y.array = shown.map(() => 0);
  trace.error_y.arrayminus = shown.map(() => 1);
}

// A name that another one would cover is only its sign, or nothing; plans go before exceeded limits.
function markWords(marks, range, width) {
  const taken = [];
  const fits = (t, text) => {
    const [middle, half] = [((t - range.start) / (range.end - range.start)) * width, (LETTER_PX * (text.length + 1)) / 2];
    if (taken.some(([left, right]) => middle - half < right && middle + half > left)) return false;
    taken.push([middle - half, middle + half]);
    return true;
  };
  const words = new Map();
  for (const mark of [...marks].sort((a, b) => a.label.startsWith("!") - b.label.startsWith("!"))) {
    words.set(mark, [mark.label, mark.label[0]].find((text) => fits(mark.t, text)) ?? "");
  }
  return marks.map((mark) => words.get(mark));
}

/** Return the highest value of the lines at the moments for which `holds(t)`, 0 without one. */
function highest(figure, samples, holds) {
  const values = figure.data.filter(({ meta }) => meta?.field).flatMap(({ meta: { field, scale = 1 } }) =>
    samples.filter(({ t }) => holds(t)).map((sample) => sample[field] * scale).filter(Number.isFinite));
  return values.reduce((a, b) => Math.max(a, b), 0);
}

/** Return the upper end of the axis: above the values, and above limits that are not far from them.
 *
 * waited: samples whose records waited for a start show no load; the axis has them only while there
 * is nothing else.
 */
function topOf(figure, samples, waited) {
  const most = highest(figure, samples, (t) => !waited.includes(t)) || highest(figure, samples, () => true);
  const levels = figure.layout.meta.levels.filter((level) => !most || level <= FAR * most);
  return SPARE * Math.max(most, ...levels) || 1;
}

// What the axis leaves out has a mark with its value.
function waitedMarks(figure, samples, waited, top) {
  const { tickformat, ticksuffix = "" } = figure.layout.yaxis;
  const write = (value) => (tickformat?.endsWith("%") ? format.percent(value) : `${significant(value, 3)}${ticksuffix}`);
  return waited.map((t) => [t, highest(figure, samples, (time) => time === t)]).filter(([, value]) => value > top).map(([t, value]) =>
    ({ t, label: `↑ ${write(value)}`, text: `Records that waited for a start: ${write(value)}`, url: "" }));
}

// After its axis has moved: its scale of values is not too coarse, and names still cover no line.
function isStillFitting(figure, samples, waited, range, element) {
  const { layout } = figure;
  const top = layout.yaxis.range[1];
  if (topOf(figure, samples, waited) < LEAST_FILLED * top) return false;
  layout.xaxis.range = [range.start, range.end];
  const names = nearLimits(figure, top, element);
  return names.every((name) => layout.annotations.some((drawn) => ["text", "x", "y", "yanchor"].every((part) => drawn[part] === name[part])));
}

function lowOf(figure) { return figure.layout.meta.floor ? 0.9 * figure.layout.meta.floor : 0; }

// A limit above the axis is named at its top.
function farLimits(layout, top) {
  return layout.shapes.filter(({ type, y0 }) => type === "line" && y0 > top).map(({ label }, i) => ({
    text: `${label.text} ↑`, xref: "paper", yref: "paper", x: 0, y: 1 - 0.1 * i, xanchor: "left", yanchor: "top", showarrow: false, font: label.font,
  }));
}

// A limit within the axis has its name where the fewest points are.
function nearLimits({ data, layout }, top, element) {
  const labels = layout.shapes.filter(({ label, y0 }) => label && y0 <= top).map(({ label, y0 }) => ({ text: label.text, y: y0, font: label.font }));
  const lines = data.filter(({ meta, visible }) => meta?.field && visible !== false);
  return placeLabels(labels, lines, { x: layout.xaxis.range, y: layout.yaxis.range, ...plotSize(layout.margin, element) });
}

function findingOf(figure, samples) {
  const lines = figure.data.filter(({ meta, visible }) => meta?.field && visible !== false);
  const parts = lines.map(({ name, meta, y }) => {
    const known = y.filter(Number.isFinite);
    if (!known.length) return `${name}: no data`;
    const write = (value) => significant(value, 3);
    return `${name} from ${write(Math.min(...known))} to ${write(Math.max(...known))}${meta.scale ? " s" : ""}`;
  });
  const limits = figure.layout.shapes.filter(({ label }) => label).map(({ label }) => label.text);
  return samples.length ? [...parts, ...limits].join("; ") : "No samples in this time range";
}
