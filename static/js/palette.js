// The palette: everything with a name, by Ctrl+K. The server searches; keys select and open.

import { chooseTheme } from "./theme.js";

const DELAY_MS = 120;
const MOST_RECENT = 6;

let timer = null;
let request = null;
let wasStarted = false;

function palette() { return document.getElementById("palette"); }
function field() { return palette().querySelector("input"); }
function list() { return palette().querySelector('[role="listbox"]'); }
function options() { return [...list().querySelectorAll('[role="option"]')]; }
function selected() { return list().querySelector('[aria-selected="true"]'); }

/** Open the palette, or close it if it is open. */
export function openPalette() {
  palette()?.togglePopover();
}

// What was opened last stands first while nothing is typed; it stays in this browser.
function recentKey() { return `weir-recent-${palette().dataset.user}`; }

/** Return what was opened last from the palette. */
function recent() {
  try { return JSON.parse(localStorage.getItem(recentKey())) ?? []; } catch { return []; }
}

function remember(option) {
  if (!option.href) return;
  const item = { url: option.getAttribute("href"), text: option.dataset.name, of: option.dataset.of ?? "" };
  const others = recent().filter((row) => row.url !== item.url);
  try { localStorage.setItem(recentKey(), JSON.stringify([item, ...others].slice(0, MOST_RECENT))); } catch { /* not kept */ }
}

function recentGroup() {
  const rows = recent();
  if (!rows.length) return null;
  const group = palette().querySelector("template").content.firstElementChild.cloneNode(true);
  const row = group.querySelector('[role="option"]');
  for (const { url, text, of } of rows) {
    const copy = row.cloneNode(true);
    copy.href = url;
    Object.assign(copy.dataset, { name: text, of });
    copy.querySelector("[data-text]").textContent = text;
    copy.querySelector(".end").textContent = of;
    row.before(copy);
  }
  row.remove();
  return group;
}

async function search() {
  request?.abort();
  request = new AbortController();
  const { searchUrl } = palette().dataset;
  const values = new URLSearchParams({ text: field().value });
  if (document.body.dataset.cluster) values.set("cluster", document.body.dataset.cluster);
  try {
    const response = await fetch(`${searchUrl}?${values}`, { signal: request.signal, headers: { "HX-Request": "true" } });
    if (!response.ok) throw new Error(`status ${response.status}`);
    show(await response.text());
  } catch (error) {
    if (error.name !== "AbortError") show(`<p class="empty" role="presentation">The search failed. Type again to repeat it.</p>`);
  }
}

function show(html) {
  list().innerHTML = html;
  const group = field().value.trim() ? null : recentGroup();
  if (group) list().prepend(group);
  options().forEach((option, index) => { option.id = `palette-${index}`; option.tabIndex = -1; });
  select(options()[0]);
}

function select(option) {
  selected()?.setAttribute("aria-selected", "false");
  if (!option) { field().removeAttribute("aria-activedescendant"); return; }
  option.setAttribute("aria-selected", "true");
  field().setAttribute("aria-activedescendant", option.id);
  option.scrollIntoView({ block: "nearest" });
}

function move(step) {
  const rows = options();
  if (!rows.length) return;
  select(rows[(rows.indexOf(selected()) + step + rows.length) % rows.length]);
}

const COMMANDS = {
  "theme-light": () => chooseTheme("light"),
  "theme-dark": () => chooseTheme("dark"),
  "theme-system": () => chooseTheme(""),
  keys: () => document.getElementById("keys").showPopover(),
};

function open(option, inNewTab) {
  if (!option) return;
  remember(option);
  palette().hidePopover();
  const { run } = option.dataset;
  if (run) COMMANDS[run]();
  else if (inNewTab) window.open(option.href, "_blank", "noopener");
  else location.assign(option.href);
}

const KEYS = {
  ArrowDown: () => move(1),
  ArrowUp: () => move(-1),
  Home: () => select(options()[0]),
  End: () => select(options().at(-1)),
  Enter: (event) => open(selected(), event.ctrlKey || event.metaKey),
};

/** Start the palette of the page. */
export function startPalette() {
  const box = palette();
  if (!box || wasStarted) return;
  wasStarted = true;
  box.addEventListener("toggle", ({ newState }) => {
    if (newState !== "open") return;
    field().value = "";
    field().focus();
    search();
  });
  field().addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, DELAY_MS);
  });
  box.addEventListener("keydown", (event) => {
    const action = KEYS[event.key];
    if (action) { event.preventDefault(); action(event); }
  });
  box.addEventListener("click", (event) => {
    const option = event.target.closest('[role="option"]');
    if (!option) return;
    event.preventDefault();
    open(option, event.ctrlKey || event.metaKey);
  });
}
