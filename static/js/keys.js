// The keys of the pages. dashboard/frame/keys.py declares them; the list that ? opens carries them.

import { openPalette } from "./palette.js";
import { toggleTheme } from "./theme.js";

const CHORD_MS = 1200;

let chordUntil = 0;

/** Return the path that `g` and a letter go to; a cluster's page needs a cluster. */
export function pathOf(letter, cluster) {
  const url = document.querySelector(`#keys [data-chord="${CSS.escape(letter)}"]`)?.dataset.url;
  if (!url || (url.includes("SLUG") && !cluster)) return null;
  return url.replace("SLUG", cluster);
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
  const current = rows.findIndex((row) => row.contains(document.activeElement));
  const next = rows[Math.min(rows.length - 1, Math.max(0, current < 0 ? 0 : current + step))];
  next.querySelector("[data-open]").focus();
  next.scrollIntoView({ block: "nearest" });
}

/** What each declared action does. */
export const ACTIONS = {
  "list-keys": () => document.getElementById("keys").showPopover(),
  "search-list": () => document.querySelector('main input[type="search"]')?.focus(),
  "next-row": () => moveRow(1),
  "previous-row": () => moveRow(-1),
  new: () => document.querySelector('[data-key="n"]')?.click(),
  "toggle-theme": () => toggleTheme(),
  pause: () => document.getElementById("pause")?.click(),
};

function actionOf(key) {
  const entry = [...document.querySelectorAll("#keys [data-press]")].find((row) => row.dataset.press === key);
  return entry ? ACTIONS[entry.dataset.action] : undefined;
}

function isDialogOpen() {
  return document.querySelector(".dialog:popover-open, .palette:popover-open") !== null;
}

export function startKeys() {
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
      event.preventDefault();
      openPalette();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || isDialogOpen()) return;
    if (performance.now() < chordUntil) {
      chordUntil = 0;
      const path = pathOf(event.key, currentCluster());
      if (path) { event.preventDefault(); location.assign(path); }
      return;
    }
    if (event.key === "g") { chordUntil = performance.now() + CHORD_MS; return; }
    // Space presses the focused button or link and scrolls elsewhere: only a live page takes it.
    if (event.key === " " && (event.target.closest("button, a, summary, input") || !document.getElementById("pause"))) return;
    const action = actionOf(event.key);
    if (action) { event.preventDefault(); action(); }
  });
}
