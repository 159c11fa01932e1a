// Figures that are asked for whole: those of a proposal and its steps, those of a query's results.
// Those of a statement are in the page: data-figures names their element.

import { makeAccessible } from "./chart-access.js";
import { withPlacedLimits, withTicks } from "./limit-labels.js";
import { themed } from "./theme.js";

const AGAIN_MS = 2000;

function panel(host, name) {
  const section = document.createElement("section");
  section.className = "drawn";
  section.innerHTML = '<header><h2></h2></header><div class="chart"></div>';
  section.querySelector("h2").textContent = name;
  section.querySelector(".chart").dataset.figure = name;
  host.append(section);
  return section.querySelector(".chart");
}

function draw(host, figures) {
  host.weirFigures = figures;
  for (const element of host.querySelectorAll("[data-figure]")) {
    if (element.dataset.figure in figures) continue;
    // What was asked for and is not there is not loading.
    const { missing, waiting } = element.dataset;
    const words = missing ?? (waiting === "Loading" ? "No data yet" : waiting);
    if (words) element.dataset.waiting = words;
    makeAccessible(element, element.dataset.waiting);
  }
  for (const [name, figure] of Object.entries(figures)) {
    const found = [...host.querySelectorAll("[data-figure]")].find((element) => element.dataset.figure === name);
    const element = found ?? (host.dataset.each ? panel(host, name) : null);
    if (!element) continue;
    delete element.dataset.waiting;
    const { data, layout, config } = themed({ ...figure, layout: withTicks(withPlacedLimits(figure, element), element) });
    window.Plotly.react(element, data, layout, config).then(() => {
      makeAccessible(element, figure.layout.meta?.finding);
      element.dispatchEvent(new CustomEvent("weir:drawn", { bubbles: true }));
    });
  }
}

async function load(host) {
  if (host.weirBusy) { host.weirAgain = true; return; }
  host.weirBusy = true;
  try {
    if (host.dataset.figures.startsWith("#")) {
      draw(host, JSON.parse(document.querySelector(host.dataset.figures).textContent).figures);
      return;
    }
    const answer = await fetch(host.dataset.figures, { headers: { Accept: "application/json" } });
    if (answer.ok) draw(host, (await answer.json()).figures);
  } catch { /* the next event asks again */ } finally {
    setTimeout(() => {
      host.weirBusy = false;
      // Asked meanwhile: the last event must be seen.
      if (host.weirAgain && host.isConnected) { host.weirAgain = false; load(host); }
    }, +(host.dataset.pauseMs ?? AGAIN_MS));
  }
}

function start(root) {
  for (const host of root.querySelectorAll("[data-figures]")) {
    if (host.weirStarted) continue;
    host.weirStarted = true;
    load(host);
    if (host.dataset.every) document.body.addEventListener(host.dataset.every, () => host.isConnected && load(host));
  }
}

start(document);
document.body.addEventListener("htmx:afterSwap", (event) => start(event.detail.target));
addEventListener("weir:theme", () => {
  for (const host of document.querySelectorAll("[data-figures]")) if (host.weirFigures) draw(host, host.weirFigures);
});
