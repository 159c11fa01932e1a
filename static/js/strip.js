// The brush of the time strip: dragged by its middle or an edge, moved by the arrow keys.

import { chooseRange, currentRange, nameOf, rangeText, TimeRange } from "./range.js";

const LEAST_MS = 60e3;
// An end within so much of the strip's end means "until now".
const NOW_PART = 0.006;

/** Follow pointer and keys on the strip; it may be replaced by newer ones at any time. */
export function startStrip(host) {
  let drag = null;
  host.addEventListener("pointerdown", (event) => {
    const band = event.target.closest("#strip-band");
    if (!band || event.button) return;
    event.preventDefault();
    const edge = event.target.closest("[data-edge]")?.dataset.edge ?? (event.target.closest(".box") ? "both" : "new");
    const start = timeAt(band, event);
    const range = currentRange();
    drag = { band, edge, from: start, start: range.start, end: range.end, chosen: null };
    host.setPointerCapture(event.pointerId);
  });
  host.addEventListener("pointermove", (event) => {
    if (!drag) return;
    drag.chosen = dragged(drag, timeAt(drag.band, event));
    show(drag.band, drag.chosen);
  });
  const done = () => {
    const chosen = drag?.chosen;
    const band = drag?.band;
    drag = null;
    if (chosen) choose(band, chosen);
  };
  host.addEventListener("pointerup", done);
  host.addEventListener("pointercancel", () => { drag = null; });
  host.addEventListener("keydown", (event) => {
    const sign = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const band = event.target.closest?.(".brush")?.closest("#strip-band");
    if (!sign || !band) return;
    event.preventDefault();
    event.stopPropagation();
    const { start, end } = currentRange();
    const step = sign * Math.max(LEAST_MS / 2, (end - start) / 4);
    choose(band, bounded(band, start + step, event.shiftKey ? end : end + step));
    requestAnimationFrame(() => host.querySelector(".brush")?.focus());
  });
  host.addEventListener("click", (event) => {
    if (!event.target.closest("[data-range-live]")) return;
    event.preventDefault();
    chooseRange(TimeRange.last("30m"));
  });
}

const ends = (band) => [Number(band.dataset.start), Number(band.dataset.end)];

function timeAt(band, event) {
  const box = band.getBoundingClientRect();
  const [start, end] = ends(band);
  return start + Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)) * (end - start);
}

function dragged({ band, edge, from, start, end }, now) {
  if (edge === "start") return bounded(band, Math.min(now, end - LEAST_MS), end);
  if (edge === "end") return bounded(band, start, Math.max(now, start + LEAST_MS));
  if (edge === "both") return bounded(band, start + now - from, end + now - from);
  return Math.abs(now - from) < LEAST_MS ? null : bounded(band, Math.min(from, now), Math.max(from, now));
}

// A range that is moved beyond an end keeps its length.
function bounded(band, start, end) {
  const [first, last] = ends(band);
  const length = Math.max(LEAST_MS, Math.min(end - start, last - first));
  const begin = Math.min(Math.max(start, first), last - length);
  return { start: begin, end: begin + length };
}

function show(band, chosen) {
  if (!chosen) return;
  const [first, last] = ends(band);
  const percent = (t) => `${(100 * (t - first)) / (last - first)}%`;
  const box = band.querySelector(".box");
  box.setAttribute("x", percent(chosen.start));
  box.setAttribute("width", `${(100 * (chosen.end - chosen.start)) / (last - first)}%`);
  band.querySelector('[data-edge="start"]').setAttribute("x", percent(chosen.start));
  band.querySelector('[data-edge="end"]').setAttribute("x", percent(chosen.end));
  band.querySelector(".brush").setAttribute("aria-valuetext", rangeText(chosen.start, chosen.end));
}

function choose(band, { start, end }) {
  show(band, { start, end });
  const [first, last] = ends(band);
  const isLive = last - end <= NOW_PART * (last - first);
  if (isLive) chooseRange(TimeRange.last(nameOf(Math.round((end - start) / LEAST_MS) * LEAST_MS)));
  else chooseRange(new TimeRange(start, end));
}
