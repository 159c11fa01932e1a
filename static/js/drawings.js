// Drawings of the server (Explain, transfers, maps): keys and a table, as chart-access.js gives them
// to charts of Plotly. `data-drawn` has the title of a drawing, `data-line` the name of a line; the
// points of a line have a <title>, which is read out. The table is the region `<id>-table`.

import { addTableButton } from "./chart-access.js";
import { announce } from "./connection.js";

const FAR = 10;
// The point that is read out, and whether the table is shown, by the id of the drawing: a refresh
// of a part replaces the drawing, and both stay as they are.
const kept = new Map(); // id -> { text, place: [line, index], open }

/** Equip the drawings inside of an element with keys and the button of their table. */
export function equipDrawings(root) {
  for (const drawing of root.querySelectorAll("[data-drawn]")) {
    if (drawing.weirKept) continue;
    const state = kept.get(drawing.id) ?? { text: "", place: [0, 0], open: false };
    kept.set(drawing.id, state);
    drawing.weirKept = state;
    drawing.addEventListener("keydown", (event) => step(drawing, event));
    drawing.addEventListener("blur", () => leave(drawing));
    addTable(drawing, state);
    if (state.text) restore(drawing, state);
  }
}

function addTable(drawing, state) {
  const region = document.getElementById(`${drawing.id}-table`);
  if (!region) return;
  region.hidden = !state.open;
  // The button in the heading of a card stays where only the drawing is replaced.
  if (document.querySelector(`[aria-controls="${region.id}"]`)) return;
  addTableButton(drawing, region.id, drawing.dataset.drawn, state.open, (open) => { state.open = open; });
}

const linesOf = (drawing) => [...drawing.querySelectorAll("[data-line]")].map((line) => [...line.children].filter((part) => part.querySelector(":scope > title"))).filter((points) => points.length);

function textOf(point) {
  return [point.closest("[data-line]").dataset.line, point.querySelector(":scope > title").textContent].filter(Boolean).join(", ");
}

// The same point, or the one at its place if it is not drawn any more.
function restore(drawing, { text, place: [line, index] }) {
  const lines = linesOf(drawing);
  if (!lines.length) return;
  const points = lines[clamp(line, lines.length)];
  mark(drawing, lines.flat().find((point) => textOf(point) === text) ?? points[clamp(index, points.length)]);
}

// Places of points on the screen, so that up and down keep to the column.
const across = (point) => { const { left, width } = point.getBoundingClientRect(); return left + width / 2; };

function step(drawing, event) {
  if (event.key === "Escape") { leave(drawing); drawing.weirKept.text = ""; return; }
  const move = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
  const turn = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  const lines = linesOf(drawing);
  if ((!move && !turn) || !lines.length || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  event.stopPropagation();
  mark(drawing, next(lines, drawing.querySelector(".current-point"), move, turn, event.shiftKey ? FAR : 1));
}

function next(lines, present, move = 0, turn = 0, factor = 1) {
  const line = lines.findIndex((points) => points.includes(present));
  // Like charts: the first key shows the newest point, Home the first.
  if (line < 0) return move === -Infinity ? lines[0][0] : lines[0].at(-1);
  if (turn) return nearest(lines[clamp(line + turn, lines.length)], present);
  return lines[line][clamp(lines[line].indexOf(present) + move * factor, lines[line].length)];
}

function nearest(points, present) {
  const x = across(present);
  return points.reduce((best, point) => (Math.abs(across(point) - x) < Math.abs(across(best) - x) ? point : best));
}

const clamp = (place, length) => Math.min(length - 1, Math.max(0, place));

function mark(drawing, point) {
  drawing.querySelector(".current-point")?.classList.remove("current-point");
  point.classList.add("current-point");
  const text = textOf(point);
  const lines = linesOf(drawing);
  const line = lines.findIndex((points) => points.includes(point));
  drawing.weirKept.place = [line, lines[line].indexOf(point)];
  if (drawing.dataset.point === text) return;
  drawing.weirKept.text = drawing.dataset.point = text;
  announce(text, "point");
}

function leave(drawing) {
  drawing.querySelector(".current-point")?.classList.remove("current-point");
  delete drawing.dataset.point;
  // An element that is removed with its part loses the focus first: its point is kept.
  setTimeout(() => { if (drawing.isConnected && document.activeElement !== drawing) drawing.weirKept.text = ""; });
}
