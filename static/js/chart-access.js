// What a chart gives to those who do not see it, or use no pointer: role, label, keys, and a table.

import { announce } from "./connection.js";
import { significant } from "./format.js";

const TABLE_ROWS = 120;
const FAR = 10;
const ICON = '<svg class="i" viewBox="0 0 16 16" aria-hidden="true"><rect x="2.2" y="3" width="11.6" height="10" rx="1.2"/><path d="M2.2 6.5h11.6M6.5 6.5V13"/></svg>';
let tables = 0;

/** Give a chart that Plotly has drawn its role, label, keys and table; again with each drawing. */
export function makeAccessible(element, finding = "") {
  const title = titleOf(element);
  const text = [title, finding || summaryOf(element)].filter(Boolean).join(": ");
  element.setAttribute("role", "img");
  if (element.getAttribute("aria-label") !== text) element.setAttribute("aria-label", text);
  if (!element.weirTable) {
    element.tabIndex = 0;
    element.addEventListener("keydown", (event) => step(element, event));
    element.addEventListener("blur", () => leave(element));
    element.weirTable = addTable(element, title, () => tableRows(element));
  } else if (!element.weirTable.hidden) element.weirTable.weirFill();
}

/** Add a button that shows the rows of a chart as a table below it. `rows` returns {head, body}. */
export function addTable(element, title, rows) {
  const region = Object.assign(document.createElement("div"), { className: "scroll chart-table", id: `chart-table-${++tables}`, tabIndex: 0, hidden: true });
  region.weirFill = () => region.replaceChildren(drawTable(rows()));
  region.setAttribute("role", "region");
  region.setAttribute("aria-label", `${title || "Chart"} as a table`);
  element.after(region);
  addTableButton(element, region.id, title, false, (open) => open && region.weirFill());
  return region;
}

/** Add the button that shows and hides the table with an id; `changed` is called with its state. */
export function addTableButton(element, id, title, open, changed) {
  const button = Object.assign(document.createElement("button"), { type: "button", className: "button quiet small", innerHTML: ICON });
  for (const [name, value] of [["aria-expanded", String(open)], ["aria-controls", id], ["aria-label", `Show ${title || "the chart"} as a table`]]) button.setAttribute(name, value);
  button.addEventListener("click", () => {
    // A refresh of the part may have replaced the table.
    const region = document.getElementById(id);
    region.hidden = !region.hidden;
    button.setAttribute("aria-expanded", String(!region.hidden));
    changed(!region.hidden);
  });
  placeOf(element).append(button);
}

function titleOf(element) {
  const inside = element.closest("details")?.querySelector("summary");
  return (inside ?? element.closest("section")?.querySelector("h2"))?.textContent.trim() ?? "";
}

// Beside the heading of the card, or above a chart that is folded or alone.
function placeOf(element) {
  const header = element.closest("details") ? null : element.closest("section")?.querySelector(":scope > header");
  const tools = document.createElement(header ? "span" : "div");
  tools.className = header ? "end" : "chart-tools";
  if (!header) { element.before(tools); return tools; }
  header.parentElement.classList.remove("charted");
  const known = header.querySelector(":scope > span.end:not([aria-hidden])");
  if (!known) header.append(tools);
  return known ?? tools;
}

const isLine = (trace) => trace.visible !== false && !trace.meta?.marks && !trace.meta?.ends && trace.mode !== "text" && trace.x && (trace.y || trace.z);
const isStepped = (trace) => isLine(trace) && trace.hoverinfo !== "skip";
const axisTitle = (axis) => axis?.title?.text ?? "";
const isTime = (element) => element.layout?.xaxis?.type === "date";

function number(value) {
  if (typeof value !== "number") return value === null || value === undefined ? "–" : String(value);
  return Number.isFinite(value) ? significant(value, 4) : "–";
}

function place(element, x) {
  if (!isTime(element)) return number(x);
  const moment = typeof x === "string" && !/[zZ]$/.test(x) ? `${x.replace(" ", "T")}Z` : x;
  return new Date(moment).toISOString().slice(0, 19).replace("T", " ");
}

/** Return the newest, or the range of, values of each line in words. */
function summaryOf(element) {
  const lines = (element.data ?? []).filter(isStepped);
  const known = lines.map(({ name, y, z }) => [name, (z ? z.flat() : [...y]).filter(Number.isFinite)]).filter(([, values]) => values.length);
  if (!known.length) return "no data";
  const unit = axisTitle(element.layout?.yaxis);
  return known.slice(0, 8).map(([name, values]) => `${name ?? "values"} from ${number(Math.min(...values))} to ${number(Math.max(...values))}${unit ? ` ${unit}` : ""}`).join("; ") + (known.length > 8 ? `; and ${known.length - 8} more` : "");
}

/** Return head and rows of the table of a chart. */
export function tableRows(element) {
  const lines = (element.data ?? []).filter(isLine);
  const [x, y] = [axisTitle(element.layout?.xaxis), axisTitle(element.layout?.yaxis)];
  const first = isTime(element) ? "Time, UTC" : x || "x";
  const grid = lines.find(({ z }) => z);
  if (grid) return { head: [`${y || "y"} \\ ${first}`, ...[...grid.x].map(number)], body: [...grid.z].map((row, i) => [number(grid.y[i]), ...[...row].map(number)]) };
  if (lines.some(({ mode }) => mode === "markers")) {
    const body = lines.flatMap((line) => [...line.x].map((value, i) => [line.name ?? "", place(element, value), number(line.y[i])]));
    return { head: ["Series", first, y || "y"], body: body.slice(0, 4 * TABLE_ROWS) };
  }
  const rows = new Map();
  lines.forEach((line, column) => [...line.x].forEach((value, i) => {
    const key = place(element, value);
    if (!rows.has(key)) rows.set(key, [value, Array(lines.length).fill(null)]);
    rows.get(key)[1][column] = line.y[i];
  }));
  const ordered = [...rows].filter(([, [, values]]) => values.some((value) => value !== null && value !== undefined));
  if (isTime(element)) ordered.sort(([a], [b]) => (a < b ? 1 : -1));
  const head = [first, ...lines.map(({ name }) => [name, y].filter(Boolean).join(", "))];
  return { head, body: ordered.slice(0, TABLE_ROWS).map(([key, [, values]]) => [key, ...values.map(number)]) };
}

function drawTable({ head, body }) {
  const table = document.createElement("table");
  const row = (tag, cells) => {
    const tr = document.createElement("tr");
    tr.append(...cells.map((text, i) => {
      const cell = Object.assign(document.createElement(tag), { textContent: text, className: i ? "num" : "" });
      if (tag === "th") cell.scope = "col";
      return cell;
    }));
    return tr;
  };
  table.createTHead().append(row("th", head));
  const rows = body.length ? body : [["No data in this time range"]];
  table.createTBody().append(...rows.map((cells) => row("td", cells)));
  return table;
}

// ---------- Keys: left and right step through the points of a line, up and down through the lines

const indices = ({ z, y }) => (z ? [...z[0].keys()] : [...y.keys()].filter((i) => y[i] !== null && y[i] !== undefined));

function step(element, event) {
  const lines = (element.data ?? []).map((trace, curve) => [trace, curve]).filter(([trace]) => isStepped(trace) && indices(trace).length);
  if (event.key === "Escape") { leave(element); return; }
  const move = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
  const turn = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if ((!move && !turn) || !lines.length || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  event.stopPropagation();
  const at = element.weirPoint ?? { line: 0, place: null };
  const line = Math.min(lines.length - 1, Math.max(0, at.line + (turn ?? 0)));
  const [trace, curve] = lines[line];
  const count = trace.z ? trace.z.length * trace.z[0].length : indices(trace).length;
  // The first key shows the newest point; Home and End go to their point from anywhere.
  const from = at.place ?? (Number.isFinite(move) ? count - 1 - move : count - 1);
  const next = Math.min(count - 1, Math.max(0, from + (move ?? 0) * (event.shiftKey ? FAR : 1)));
  element.weirPoint = { line, place: next };
  hover(element, trace, curve, next);
}

function hover(element, trace, curve, next) {
  const width = trace.z?.[0].length;
  const i = trace.z ? [Math.floor(next / width), next % width] : indices(trace)[next];
  window.Plotly?.Fx?.hover(element, [{ curveNumber: curve, pointNumber: i }]);
  const [x, y] = trace.z ? [trace.x[i[1]], trace.z[i[0]][i[1]]] : [trace.x[i], trace.y[i]];
  const text = `${trace.name ?? "value"}, ${place(element, x)}: ${number(y)}`;
  element.dataset.point = text;
  announce(text, "point");
}

function leave(element) {
  element.weirPoint = null;
  delete element.dataset.point;
  if (element.data) window.Plotly?.Fx?.unhover?.(element);
}
