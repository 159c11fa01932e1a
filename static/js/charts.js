// Charts that live: a window of samples, redrawn at most once per frame and four times a second.

import { SampleWindow, withGaps } from "./samples.js";
import { themed, tokenReader } from "./theme.js";

const LEAST_MS = 250;
const KEPT_DELAYS = 2000;
const MOST_MARKS = 300;
const LABELS_AT = 0.94; // as dashboard/figures/parts.py places them

export class ChartBoard {
  /** elements: Map of figure name -> element; plotly is given so that a test can watch it. */
  constructor(elements, answer, plotly = window.Plotly) {
    Object.assign(this, { elements, plotly, figures: answer.figures, live: answer.live });
    this.span = answer.end - answer.start;
    this.shownTo = answer.end;
    this.window = new SampleWindow(this.span, answer.resolution);
    this.window.load(answer.samples);
    this.paused = false;
    this.waiting = false;
    this.drawnAt = -Infinity;
    this.drawnSample = this.window.last;
    this.marks = new Map();
    for (const trace of this.#traces("marks")) {
      trace.x.forEach((t, i) => this.#mark(t, markOf(trace, i)));
    }
    addEventListener("weir:theme", () => this.#drawAll());
    document.addEventListener("visibilitychange", () => this.#schedule());
    this.#drawAll();
  }

  /** Take live samples; the drawing comes with the next free frame. */
  add(samples) {
    const before = this.window.newest;
    if (!this.live || !this.window.add(samples)) return;
    if (before && this.window.newest.version !== before.version) this.#versionChanged(before);
    this.#schedule();
  }

  /** Remember what a routing version is about, for its mark. */
  describe(version, text, proposal) {
    this.versions ??= new Map();
    this.versions.set(version, { text, proposal });
    if (this.versions.size > MOST_MARKS) this.versions.delete(this.versions.keys().next().value);
  }

  pause(paused) {
    this.paused = paused;
    this.#schedule();
  }

  // Versions that take effect in one micro-batch share a moment: the one of a proposal is shown.
  #mark(t, mark) {
    if (!this.marks.get(t)?.proposal) this.marks.set(t, mark);
  }

  #versionOf(after, version) {
    const known = [...(this.versions ?? [])].filter(([one]) => one > after && one <= version);
    const [one, about] = known.find(([, { proposal }]) => proposal) ?? known.at(-1) ?? [version, null];
    return { version: one, ...(about ?? { text: `routing version ${version} took effect`, proposal: null }) };
  }

  #versionChanged(before) {
    const { version, t } = this.window.newest;
    this.#mark(t, { after: before.version, ...this.#versionOf(before.version, version) });
    if (this.marks.size > MOST_MARKS) this.marks.delete(this.marks.keys().next().value);
  }

  // One timer and one frame at most are outstanding; a hidden or paused page has neither.
  #schedule() {
    if (this.waiting || this.paused || document.hidden || !this.live) return;
    if (this.drawnSample === this.window.last && this.shownTo === this.window.last) return;
    this.waiting = true;
    const rest = Math.max(0, LEAST_MS - (performance.now() - this.drawnAt));
    setTimeout(() => requestAnimationFrame(() => this.#redraw()), rest);
  }

  #redraw() {
    this.waiting = false;
    if (this.paused || document.hidden) return;
    this.#fill();
    this.#drawAll();
    this.#measure();
  }

  #fill() {
    const samples = withGaps(this.window.samples);
    this.shownTo = this.window.last;
    for (const figure of Object.values(this.figures)) {
      for (const trace of figure.data) fillTrace(trace, samples, this.window.newest);
      if (figure.layout.xaxis?.type === "date") figure.layout.xaxis.range = [this.shownTo - this.span, this.shownTo];
    }
    const oldest = this.shownTo - this.span;
    for (const trace of this.#traces("marks")) fillMarks(trace, this.marks, oldest);
    for (const trace of this.#traces("labels")) fillLabels(trace, this.marks, oldest);
  }

  #drawAll() {
    this.drawnAt = performance.now();
    const token = tokenReader();
    for (const [name, element] of this.elements) {
      const figure = this.figures[name];
      if (!figure) continue;
      const empty = !this.window.samples.length;
      if (empty) element.dataset.waiting = this.live ? "No samples in this time range yet. The first comes with the next micro-batch." : "No samples are stored for this time range.";
      else delete element.dataset.waiting;
      // Without samples Plotly would draw the dates of a whole year.
      if (empty && figure.layout.xaxis?.type === "date") figure.layout.xaxis.range = [this.shownTo - this.span, this.shownTo];
      const { data, layout, config } = themed(figure, token);
      this.plotly.react(element, data, layout, config);
    }
  }

  #measure() {
    if (this.window.last === this.drawnSample) return;
    this.drawnSample = this.window.last;
    const delays = (window.weirChartDelays ??= []);
    const emitted = this.window.newest.emitted_ms;
    if (Number.isFinite(emitted)) delays.push(Date.now() - emitted);
    if (delays.length > KEPT_DELAYS) delays.splice(0, delays.length - KEPT_DELAYS);
  }

  #traces(kind) {
    return Object.values(this.figures).flatMap((figure) => figure.data.filter((trace) => trace.meta?.[kind]));
  }
}

/** Put the samples into a trace as its meta names them. */
export function fillTrace(trace, samples, newest) {
  const meta = trace.meta ?? {};
  if (meta.field) {
    trace.x = samples.map((sample) => sample.t);
    trace.y = samples.map((sample) => sample[meta.field] ?? null);
  } else if (meta.heat) {
    trace.x = samples.map((sample) => sample.t);
    trace.z = meta.heat.map((node, row) => samples.map((sample) => share(sample, node, meta.capacity[row])));
  } else if (meta.loads && newest) {
    trace.y = meta.loads.map((node) => newest.loads?.[node] ?? null);
    trace.marker.color = meta.loads.map((node, row) => share(newest, node, meta.capacity[row]) ?? 0);
  }
}

function share(sample, node, capacity) {
  const load = sample.loads?.[node];
  return load === undefined || load === null ? null : load / capacity;
}

function fillMarks(trace, marks, oldest) {
  const shown = [...marks.entries()].filter(([t]) => t >= oldest).sort((a, b) => a[0] - b[0]);
  trace.x = shown.map(([t]) => t);
  trace.y = shown.map(() => 1);
  trace.customdata = shown.map(([, mark]) => [mark.version, mark.text, mark.proposal]);
  trace.marker.size = shown.map(([, mark]) => (mark.proposal ? 7 : 0));
  trace.error_y.array = shown.map(() => 0);
  trace.error_y.arrayminus = shown.map(([, mark]) => (mark.proposal ? 1 : 0.06));
}

function fillLabels(trace, marks, oldest) {
  const shown = [...marks.entries()].filter(([t, mark]) => mark.proposal && t >= oldest);
  trace.x = shown.map(([t]) => t);
  trace.y = shown.map(() => LABELS_AT);
  trace.text = shown.map(([, mark]) => `v${mark.version}`);
}

function markOf(trace, i) {
  const [version, text, proposal] = trace.customdata[i];
  return { version, text, proposal };
}
