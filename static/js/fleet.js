// Pages of all clusters and of alerts: their parts are read again after events and changes.

const AFTER_EVENT_MS = 1000;

let timer = null;
let due = Infinity;
let refreshedAt = -Infinity;

// A part that a person uses is not replaced under their hands.
const isUsed = (part) => part.querySelector(":popover-open, details[open]") || (part.contains(document.activeElement) && document.activeElement.matches("input:not([type=hidden]), textarea, select"));

/** Read the parts again, at most once per `period` ms; the last request of a burst counts. */
function refresh(period) {
  const time = Math.max(performance.now(), refreshedAt + period);
  if (time >= due) return;
  due = time;
  clearTimeout(timer);
  timer = setTimeout(refreshNow, time - performance.now());
}

function refreshNow() {
  due = Infinity;
  if (document.hidden) return;
  refreshedAt = performance.now();
  for (const part of document.querySelectorAll("[data-refreshed]")) {
    if (isUsed(part)) continue;
    window.htmx?.trigger(part, "weir:refresh");
  }
}

function showAges(samples) {
  for (const { cluster, t } of samples) {
    const time = cluster && document.querySelector(`[data-newest="${CSS.escape(cluster)}"] time`);
    if (time && t > Date.parse(time.dateTime)) time.dateTime = new Date(t).toISOString();
  }
}

// The rows and the badge have the same newest sample, also after the rows were read again.
function publishNewest() {
  const times = [...document.querySelectorAll("[data-newest] time")].map((time) => Date.parse(time.dateTime));
  if (times.length) dispatchEvent(new CustomEvent("weir:known", { detail: Math.max(...times) }));
}

addEventListener("weir:sample!", ({ detail }) => showAges(detail));
document.addEventListener("DOMContentLoaded", publishNewest);
document.body.addEventListener("htmx:afterSwap", publishNewest);
document.body.addEventListener("weir:present", () => refresh(0));
addEventListener("weir:event!", () => refresh(AFTER_EVENT_MS));
document.addEventListener("visibilitychange", () => document.hidden || refresh(AFTER_EVENT_MS));

// Headlines are announced when they change, not each time they are read.
let headline = document.getElementById("fleet-title")?.textContent;
document.body.addEventListener("htmx:afterSwap", () => {
  const text = document.getElementById("fleet-title")?.textContent;
  if (text && text !== headline) import("./connection.js").then(({ announce }) => announce(text));
  headline = text;
});

// An action of a person has changed an alert.
document.body.addEventListener("weir:changed", () => {
  for (const dialog of document.querySelectorAll(".dialog:popover-open")) dialog.hidePopover();
  refresh(0);
});

// The first field of an opened dialog has the focus.
document.body.addEventListener("htmx:afterSwap", ({ target }) => {
  if (target.matches(".dialog:popover-open")) target.querySelector("input:not([type=hidden]), textarea")?.focus();
});

// A chosen file is shown in its field, where it can be changed before the check.
document.addEventListener("change", async ({ target }) => {
  if (!target.matches("[data-fills]") || !target.files.length) return;
  const field = document.getElementById(target.dataset.fills);
  field.value = await target.files[0].text();
  target.value = "";
});

// The example replaces an empty description only: what is written there stays.
document.addEventListener("click", ({ target }) => {
  if (!target.matches("[data-inserts]")) return;
  const field = document.getElementById(target.dataset.into);
  if (!field.value.trim()) field.value = document.getElementById(target.dataset.inserts).textContent;
  field.focus();
});
