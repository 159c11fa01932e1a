// The page of a cluster: first paint from stored samples, then live; one range for all of it.

import { serverNow } from "./clock.js";
import { announce } from "./connection.js";
import { ChartBoard } from "./charts.js";
import { HeatMap } from "./heat.js";
import { chooseRange, currentRange, follow, isPaused, nameOf, TimeRange } from "./range.js";
import { Pace } from "./samples.js";
import { startStrip } from "./strip.js";

const NOW_PART = 0.02;

const page = document.getElementById("cluster-page");
const elements = new Map([...page.querySelectorAll("[data-figure]")].map((element) => [element.dataset.figure, element]));
const board = new ChartBoard(elements);
const heat = new HeatMap(document.getElementById("heat"));
let waiting = [];
let timer = null;
let asked = 0;
let beforeZoom = null;

async function load(range = currentRange()) {
  const number = ++asked;
  const query = new URLSearchParams(range.query);
  const answer = await (await fetch(`${page.dataset.charts}?${query}`, { headers: { Accept: "application/json" } })).json();
  // A later range was chosen meanwhile.
  if (number !== asked) return;
  board.load(answer);
  heat.load(answer.heat, answer.live);
  if (answer.live && board.window.last !== null) dispatchEvent(new CustomEvent("weir:known", { detail: board.window.last }));
  flush();
}

// Samples are taken together: at most once per second, and not while paused or hidden.
function take(samples) {
  waiting.push(...samples);
  if (waiting.length > 4000) waiting.splice(0, waiting.length - 4000);
  timer ??= setTimeout(flush, 0);
}

const pace = new Pace();
function flush() {
  timer = null;
  if (!board.window || !waiting.length || isPaused() || document.hidden) return;
  const rest = pace.rest();
  if (rest > 0) { timer = setTimeout(flush, rest); return; }
  pace.happened();
  const samples = waiting;
  waiting = [];
  board.add(samples);
  heat.add(samples);
  if (!currentRange().live) return;
  const newest = board.window.newest;
  if (!newest) return;
  const [place, version] = [document.getElementById("routing-version"), `routing v${newest.version}`];
  if (place.textContent !== version) place.textContent = version;
}

addEventListener("weir:sample!", ({ detail }) => take(detail));
addEventListener("weir:paused", ({ detail }) => detail || flush());
document.addEventListener("visibilitychange", flush);
addEventListener("weir:event!", ({ detail }) => {
  if (detail.version !== null) board.describe(detail.version, detail.text, detail.proposal);
});

/** Zoom of one chart is zoom of all: it becomes the range of the page. */
function startZoom(element) {
  element.on("plotly_relayout", (changes) => {
    const [from, to] = [changes["xaxis.range[0]"], changes["xaxis.range[1]"]].map((value) => (typeof value === "string" ? Date.parse(`${value.replace(" ", "T")}Z`) : value));
    if (Number.isFinite(from) && Number.isFinite(to)) {
      const shown = currentRange();
      beforeZoom ??= shown;
      const isLive = shown.live && to >= shown.end - NOW_PART * shown.length;
      chooseRange(isLive ? TimeRange.last(nameOf(Math.max(10e3, serverNow() - from))) : new TimeRange(from, Math.max(to, from + 10e3)));
    } else if (changes["xaxis.autorange"] || changes["xaxis.showspikes"] === false) {
      if (beforeZoom) chooseRange(beforeZoom.live ? TimeRange.last(beforeZoom.name) : beforeZoom);
      beforeZoom = null;
    }
  });
  element.on("plotly_doubleclick", () => {
    if (beforeZoom) chooseRange(beforeZoom.live ? TimeRange.last(beforeZoom.name) : beforeZoom);
    beforeZoom = null;
    return false;
  });
  element.on("plotly_click", ({ points }) => {
    const url = points.find(({ data }) => data.meta?.marks)?.customdata?.[2];
    if (url) location.assign(url);
  });
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-toggle]");
  if (!button) return;
  const place = document.getElementById(button.dataset.toggle);
  place.hidden = !place.hidden;
  button.setAttribute("aria-expanded", String(!place.hidden));
});

// The headline is announced when it changes, not each time it is read.
let headline = document.querySelector("#status .what")?.textContent;
document.body.addEventListener("htmx:afterSwap", ({ detail }) => {
  if (detail.target.id !== "summary") return;
  const text = document.querySelector("#status .what")?.textContent;
  if (text && text !== headline && currentRange().live) announce(text);
  headline = text;
});

for (const element of elements.values()) element.addEventListener("weir:drawn", () => startZoom(element), { once: true });
startStrip(document.getElementById("strip"));
follow((range) => load(range).catch(failed));
load().catch(failed);

function failed(error) {
  for (const element of elements.values()) element.dataset.waiting = "The charts could not be loaded. Reload the page to try again.";
  // An error of a script is not one of the network: it must be seen.
  if (!(error instanceof TypeError) || !/fetch/i.test(error.message)) throw error;
}
