// The fields of a query: colours, faults underlined at their place, and completion of words.

import { startCompletion } from "./completion.js";

const TOKEN = /('(?:[^']|'')*'?)|(\d+(?:\.\d+)?)|([A-Za-z_][\w.]*)|(\s+|.)/gsu;

function words() {
  const known = JSON.parse(document.getElementById("completions").textContent);
  const kinds = new Map();
  for (const kind of ["keyword", "function", "aggregate"]) {
    for (const word of known[kind]) kinds.set(word.name, kind);
  }
  return { known, kinds };
}

export function columns() {
  const listed = document.getElementById("usable")?.dataset.columns ?? "";
  return listed.split(",").filter(Boolean).map((pair) => {
    const [name, kind] = pair.split(" ");
    return { name, about: kind };
  });
}

// The faults beside a field have the line and the marks below it.
function faultsOf(field) {
  return [...document.querySelectorAll(`#faults-${field.id} pre.pointed`)].map((place) => {
    const marks = place.querySelector(".marks").textContent;
    const line = place.textContent.split("\n")[0];
    const start = field.value.indexOf(line);
    return start < 0 ? null : { start: start + marks.search(/\S/), stop: start + marks.length };
  }).filter(Boolean);
}

function colour(field, pane, kinds) {
  const names = new Set(columns().map((column) => column.name));
  const faults = faultsOf(field);
  const parts = [];
  for (const match of field.value.matchAll(TOKEN)) {
    const [text, quoted, number, word] = match;
    const kind = quoted ? "text" : number ? "number" : kinds.get(word?.toLowerCase()) ?? (names.has(word) ? "column" : "");
    const part = document.createElement(faults.some((f) => match.index < f.stop && match.index + text.length > f.start) ? "mark" : "span");
    part.className = kind;
    part.textContent = text;
    parts.push(part);
  }
  // A last line without text has no height of its own.
  pane.replaceChildren(...parts, "​");
  pane.scrollTop = field.scrollTop;
  pane.scrollLeft = field.scrollLeft;
}

function startColours(field, kinds) {
  const wrap = document.createElement("div");
  wrap.className = "code-field";
  field.replaceWith(wrap);
  const pane = document.createElement("pre");
  pane.className = "colours";
  pane.setAttribute("aria-hidden", "true");
  wrap.append(field, pane);
  const draw = () => colour(field, pane, kinds);
  field.addEventListener("input", draw);
  field.addEventListener("scroll", () => { pane.scrollTop = field.scrollTop; pane.scrollLeft = field.scrollLeft; });
  document.body.addEventListener("htmx:afterSettle", draw);
  wrap.dataset.coloured = "";
  draw();
}

function wordsFor(field, known) {
  if (field.dataset.completes === "stream") return streams;
  const all = [...known.function, ...known.aggregate, ...known.keyword];
  return async () => [...columns(), ...all];
}

async function streams(prefix) {
  const url = document.getElementById("query-form").dataset.suggest;
  const response = await fetch(`${url}?find=${encodeURIComponent(prefix)}`, { headers: { "HX-Request": "true" } });
  const page = new DOMParser().parseFromString(response.ok ? await response.text() : "", "text/html");
  return [...page.querySelectorAll("[data-stream]")].map((button) => ({
    name: button.dataset.stream, about: button.querySelector(".muted")?.textContent ?? "",
  }));
}

const { known, kinds } = words();
for (const field of document.querySelectorAll("[data-code]")) startColours(field, kinds);
for (const field of document.querySelectorAll("[data-code], [data-completes]")) {
  startCompletion(field, wordsFor(field, known), field.dataset.completes ? /[^\s,;]*$/ : /[A-Za-z_][\w.]*$/);
}
