// What is new in a live chart, without Plotly, which would lay out the whole chart: lines grow at
// their ends, the words at their ends follow, and the axis of time moves. Plotly draws the chart again
// when the scale of values or the places of names must change, or when somebody points to it.

import { clock } from "./format.js";

// Labels of longer steps are days.
const LONGEST_STEP_MS = 12 * 3600e3;
const EDGE_PX = 0.5;

/** Remember a chart as Plotly drew it; `last`: the last sample. */
export function rememberLines(element, last) {
  const lines = new Map();
  for (const group of element.querySelectorAll(".scatterlayer .trace")) {
    const { meta } = group.__data__?.[0]?.trace ?? {};
    const parts = [...group.querySelectorAll("path.js-line")];
    const path = parts.pop();
    if (!meta?.field || !path) continue;
    // Without a value at the last sample, the last point is an older one, which does not change.
    const text = path.getAttribute("d") ?? "";
    const isKnown = Number.isFinite(last?.[meta.field]);
    lines.set(meta.field, { path, parts, kept: isKnown ? withoutLast(text) : text, isJoined: isKnown, scale: meta.scale ?? 1 });
  }
  element.weirLines = { lines, last: last?.t, moved: 0, isBehind: false };
}

/** Return whether the newest samples could be added to the lines as they are drawn.
 *
 * range: the time that the axis shows if it has no room for them; null: it must not move.
 */
export function extendLines(element, samples, fields, range) {
  const known = element.weirLines;
  const { xaxis, yaxis } = element._fullLayout ?? {};
  if (!known || !xaxis || !yaxis || known.last === undefined) return false;
  const tail = tailOf(samples, known.last);
  if (tail[0]?.t !== known.last) return false;
  const isFull = xaxis.d2p(tail.at(-1).t) - known.moved > xaxis._length;
  if (isFull && !range) return false;
  const moved = isFull ? xaxis.d2p(range.start) : known.moved;
  const added = isFull ? samples : tail;
  const drawn = [];
  for (const field of fields) {
    const line = known.lines.get(field);
    const values = tail.map((sample) => sample[field]).filter(Number.isFinite);
    // Plotly draws no line before its first value.
    if (!line && !values.length) continue;
    if (!line?.path.isConnected || !values.every((value) => fits(value, line.scale, yaxis))) return false;
    const place = (sample) => `${(xaxis.d2p(sample.t) - moved).toFixed(1)},${yaxis.d2p(sample[field] * line.scale).toFixed(1)}`;
    drawn.push([line, field, joined(isFull ? { kept: "" } : line, added, field, place)]);
  }
  if (isFull && !moveAxis(element, moved)) return false;
  for (const [line, field, text] of drawn) {
    line.path.setAttribute("d", text);
    if (!isFull) continue;
    line.isJoined = Number.isFinite(samples.at(-1)[field]);
    line.kept = line.isJoined ? withoutLast(text) : text;
    // Plotly draws the parts of a line that gaps divide apart; now they are in the text.
    for (const part of line.parts.splice(0)) part.remove();
  }
  if (isFull) known.last = samples.at(-1).t;
  known.isBehind = true;
  return true;
}

/** Return whether the words at the ends of lines could be written at new values of the axis. */
export function moveEnds(element, { y, text }) {
  const { yaxis } = element._fullLayout;
  const group = [...element.querySelectorAll(".scatterlayer .trace")].find(({ __data__ }) => __data__?.[0]?.trace?.meta?.ends);
  const words = [...(group?.querySelectorAll(".textpoint text") ?? [])];
  const shown = y.map((value, place) => [value, text[place]]).filter(([value]) => value !== null);
  if (words.length !== shown.length) return false;
  shown.forEach(([value, word], place) => {
    words[place].setAttribute("y", yaxis.d2p(value));
    if (words[place].textContent !== word) words[place].textContent = word;
  });
  return true;
}

/** Set the marks back to where Plotly takes them to be, before it draws the chart. */
export function resetAxis(element) {
  for (const layer of marksOf(element)) layer.removeAttribute("transform");
}

// By moment, not by number: as samples come, the oldest ones leave the window.
function tailOf(samples, last) {
  let start = samples.length;
  while (start > 0 && samples[start - 1].t >= last) start -= 1;
  return samples.slice(start);
}

function fits(value, scale, yaxis) {
  const y = yaxis.d2p(value * scale);
  return y >= 0 && y <= yaxis._length;
}

// A sample without a value breaks the line.
function joined({ kept, isJoined: isContinued }, samples, field, place) {
  let text = kept;
  let isJoined = kept !== "" && isContinued;
  for (const sample of samples) {
    const isKnown = Number.isFinite(sample[field]);
    if (isKnown) text += `${isJoined ? "L" : "M"}${place(sample)}`;
    isJoined = isKnown;
  }
  return text;
}

// The last point may still change: a bucket fills.
function withoutLast(text) {
  const cut = text.lastIndexOf("L");
  return cut > text.lastIndexOf("M") ? text.slice(0, cut) : text;
}

// Returns whether the axis could be moved by so many px in all; ticks keep their moments.
function moveAxis(element, moved) {
  const { xaxis } = element._fullLayout;
  const layer = element.querySelector(".xaxislayer-above");
  const step = xaxis.dtick;
  if (!layer || typeof step !== "number" || step >= LONGEST_STEP_MS) return false;
  for (const last of [...layer.querySelectorAll("path.xtick"), ...layer.querySelectorAll("g.xtick")].filter(isLast)) addTicks(last, xaxis, moved);
  for (const tick of [...layer.children]) {
    const x = xaxis.d2p(tick.__data__.x) - moved;
    if (x < -EDGE_PX) tick.remove();
    else (tick.querySelector("text") ?? tick).setAttribute("transform", `translate(${xaxis._offset + x},0)`);
  }
  for (const marks of marksOf(element)) marks.setAttribute("transform", `translate(${-moved},0)`);
  element.weirLines.moved = moved;
  return true;
}

const isLast = (tick, place, ticks) => tick.tagName !== ticks[place + 1]?.tagName;

// Ticks as Plotly makes them, with the data by which it finds them again.
function addTicks(last, xaxis, moved) {
  for (let t = last.__data__.x + xaxis.dtick; xaxis.d2p(t) - moved <= xaxis._length + EDGE_PX; t += xaxis.dtick) {
    const tick = last.cloneNode(true);
    tick.__data__ = { ...last.__data__, x: t, text: clock(t, xaxis.dtick < 60e3) };
    const label = tick.querySelector("text");
    if (label) label.textContent = label.dataset.unformatted = tick.__data__.text;
    last.parentNode.append(tick);
  }
}

const marksOf = (element) => element.querySelectorAll(".overplot > .xy2 > .scatterlayer");
