// Load against capacity: bars and numbers follow the newest sample, once per second.

import { format } from "./format.js";

const TOP = 1.2; // as dashboard/clusters/node_rows.py

/** Write the loads of a sample into the bars; `limit`, `near`: of the policy. */
export function showLoads(card, { loads }, { limit, near }) {
  for (const bar of card.querySelectorAll("[data-load-bar]")) {
    const load = loads?.[bar.dataset.loadBar];
    if (load === undefined || load === null) continue;
    const share = load / bar.dataset.capacity;
    const text = format.percent(share);
    const number = bar.querySelector("b");
    if (number.textContent === text) continue;
    number.textContent = text;
    bar.querySelector(".fill").setAttribute("width", `${Math.min(100, (100 * share) / TOP).toFixed(1)}%`);
    bar.dataset.grade = share > limit ? "bad" : share >= near ? "warn" : "good";
  }
}
