// The keys of the pages; the list that ? opens is in templates/dashboard/_keys_list.html.

import { toggleTheme } from "./theme.js";

const CHORD_MS = 1200;
const PAGES = { f: "", c: "cluster", s: "streams/", q: "queries/", p: "proposals/", a: "audit/", l: "lab/" };

let chordUntil = 0;

/** Return the path that `g` and a letter go to; a cluster's page needs a cluster. */
export function pathOf(letter, cluster) {
  if (letter === "f") return "/";
  if (letter === "a" || letter === "l") return `/${PAGES[letter]}`;
  if (!(letter in PAGES) || !cluster) return null;
  return `/clusters/${cluster}/${letter === "c" ? "" : PAGES[letter]}`;
}

function currentCluster() {
  const link = document.querySelector('.nav a[href^="/clusters/"]');
  return document.body.dataset.cluster ?? link?.getAttribute("href").split("/")[2];
}

function typing(target) {
  return target.closest?.("input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]");
}

function moveRow(step) {
  const rows = [...document.querySelectorAll("main tbody tr")].filter((row) => row.querySelector("[data-open]"));
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const next = rows[Math.min(rows.length - 1, Math.max(0, at < 0 ? 0 : at + step))];
  next.querySelector("[data-open]").focus();
  next.scrollIntoView({ block: "nearest" });
}

const ACTIONS = {
  "?": () => document.getElementById("keys").showModal(),
  "/": () => document.querySelector('main input[type="search"]')?.focus(),
  j: () => moveRow(1),
  k: () => moveRow(-1),
  n: () => document.querySelector('[data-key="n"]')?.click(),
  t: () => toggleTheme(),
  " ": () => document.getElementById("pause")?.click(),
};

export function startKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (document.querySelector("dialog[open]")) return;
    if (performance.now() < chordUntil) {
      chordUntil = 0;
      const path = pathOf(event.key, currentCluster());
      if (path) { event.preventDefault(); location.assign(path); }
      return;
    }
    if (event.key === "g") { chordUntil = performance.now() + CHORD_MS; return; }
    // Space presses the focused button or link and scrolls elsewhere: only a live page takes it.
    if (event.key === " " && (event.target.closest("button, a, summary, input") || !document.getElementById("pause"))) return;
    const action = ACTIONS[event.key];
    if (action) { event.preventDefault(); action(); }
  });
}
