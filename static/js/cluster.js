// The page of a cluster: first paint from stored samples, then live.

import { announce } from "./connection.js";
import { ChartBoard } from "./charts.js";
import { format, grade } from "./format.js";

const place = document.getElementById("charts");
let board = null;
let early = [];

/** Write the newest sample into the headline numbers. */
function showNumbers(sample) {
  for (const element of document.querySelectorAll("[data-live]")) {
    const value = sample[element.dataset.live];
    const text = format[element.dataset.format](value);
    if (element.textContent !== text) element.textContent = text;
    if (element.dataset.warn) element.dataset.grade = grade(value, +element.dataset.warn, +element.dataset.bad);
  }
  document.getElementById("routing-version").textContent = `routing v${sample.version}`;
  const time = document.querySelector("#newest time");
  if (time) time.dateTime = new Date(sample.t).toISOString();
}

function take(samples) {
  if (!board) { early.push(...samples); return; }
  board.add(samples);
  if (!board.paused && !document.hidden && board.window.newest) showNumbers(board.window.newest);
}

async function start() {
  const answer = await (await fetch(place.dataset.src, { headers: { Accept: "application/json" } })).json();
  if (!answer.live) document.body.dataset.fixed = "yes";
  const elements = new Map([...place.querySelectorAll("[data-figure]")].map((element) => [element.dataset.figure, element]));
  board = new ChartBoard(elements, answer);
  if (board.window.last !== null) dispatchEvent(new CustomEvent("weir:known", { detail: board.window.last }));
  take(early);
  early = [];
}

addEventListener("weir:sample!", ({ detail }) => take(detail));
addEventListener("weir:event!", ({ detail }) => {
  if (detail.version !== null) board?.describe(detail.version, detail.text, detail.proposal);
});

document.getElementById("pause").addEventListener("click", (event) => {
  const paused = event.currentTarget.getAttribute("aria-pressed") !== "true";
  event.currentTarget.setAttribute("aria-pressed", String(paused));
  event.currentTarget.textContent = paused ? "Resume" : "Pause";
  board?.pause(paused);
  dispatchEvent(new CustomEvent("weir:paused", { detail: paused }));
  announce(paused ? "Live charts paused" : "Live charts resumed");
});

start().catch(() => {
  for (const element of place.querySelectorAll("[data-figure]")) element.dataset.waiting = "The charts could not be loaded. Reload the page to try again.";
});
