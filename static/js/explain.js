// Explain: a panel beside any page of a cluster. The URL has its subject; Esc closes it, arrows step.

const PARAMETER = "explain";
let opener = null;

const panel = () => document.getElementById("panel");
const opened = () => new URL(location.href).searchParams.get(PARAMETER);

function address(subject) {
  return `/clusters/${document.body.dataset.cluster}/explain/?subject=${encodeURIComponent(subject)}`;
}

async function load(subject, focus) {
  await window.htmx.ajax("GET", address(subject), { target: "#panel", swap: "innerHTML" });
  const heading = panel().querySelector("h2");
  if (heading && focus) {
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
  }
  for (const cell of document.querySelectorAll("[data-explained]")) cell.removeAttribute("data-explained");
  for (const cell of document.querySelectorAll(`[data-explain="${CSS.escape(subject)}"]`)) {
    if (!panel().contains(cell)) cell.setAttribute("data-explained", "yes");
  }
}

/** Open the panel for a subject such as node:5@1700000000000. */
export function openExplain(subject, { push = true, focus = true } = {}) {
  if (push) {
    const url = new URL(location.href);
    url.searchParams.set(PARAMETER, subject);
    history.pushState(null, "", url);
  }
  return load(subject, focus);
}

/** Close the panel, and return the focus to what opened it. */
export function closeExplain({ push = true } = {}) {
  panel().replaceChildren();
  for (const cell of document.querySelectorAll("[data-explained]")) cell.removeAttribute("data-explained");
  if (push) {
    const url = new URL(location.href);
    url.searchParams.delete(PARAMETER);
    history.pushState(null, "", url);
  }
  // A refresh of the page may have replaced what opened the panel.
  const same = () => document.querySelector(`main [data-explain="${CSS.escape(opener.dataset.explain)}"]`);
  if (opener) (opener.isConnected ? opener : same())?.focus();
  opener = null;
}

function start() {
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-close-panel]")) { closeExplain(); return; }
    const link = event.target.closest("[data-explain]");
    const elsewhere = event.ctrlKey || event.metaKey || event.shiftKey || event.button > 0;
    // The page of its own steps by its links.
    if (!link || elsewhere || link.closest(".explain-page")) return;
    event.preventDefault();
    if (!panel().contains(link)) opener = link;
    openExplain(link.dataset.explain);
  });
  // Before the keys of the time range: an open panel takes Esc everywhere, arrows inside of it.
  document.addEventListener("keydown", (event) => {
    // A focused drawing steps through its points.
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, textarea, select, [data-drawn]")) return;
    const place = panel().firstElementChild ? panel() : document.querySelector(".explain-page");
    if (!place) return;
    if (event.key === "Escape" && place === panel() && !document.querySelector("[popover]:popover-open")) {
      event.preventDefault();
      closeExplain();
    } else if (event.key.startsWith("Arrow") && (place.contains(event.target) || event.target.closest?.("[data-explained]"))) {
      const step = place.querySelector(`[data-key="${event.key}"]`);
      if (!step) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      step.click();
    }
  }, true);
  addEventListener("popstate", () => {
    const subject = opened();
    if (subject) load(subject, false);
    else if (panel().firstElementChild) closeExplain({ push: false });
  });
  const subject = opened();
  if (subject) load(subject, false);
}

if (document.body.dataset.cluster && panel()) {
  if (window.htmx) start();
  else addEventListener("load", start);
}
