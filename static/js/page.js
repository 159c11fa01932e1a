// What every page does: keys, dialogs, ages, selection, theme, the socket.

import { serverNow } from "./clock.js";
import { connect } from "./connection.js";
import { startFocus } from "./focus.js";
import { startKeys } from "./keys.js";
import { age, grade } from "./format.js";
import { startPalette } from "./palette.js";
import { startTerms } from "./terms.js";
import { chooseTheme, markTheme } from "./theme.js";

const TICK_MS = 1000;
// Present values stand for ten seconds, and change together (`telemetry.measures.present_end`).
const PRESENT_MS = 10000;
// So long after even ten seconds, the server has the new ones; open pages request them one by one.
const PRESENT_AFTER_MS = 3000 + 4000 * Math.random();
// Parts that were rendered with the page are not refreshed at once.
const FIRST_REFRESH_MS = 5000;
// More than htmx takes to settle a part.
const SETTLED_MS = 60;

const presentOf = (now) => Math.floor((now - PRESENT_AFTER_MS) / PRESENT_MS);

function startAges() {
  let present = presentOf(serverNow());
  setInterval(() => {
    if (document.hidden) return;
    const now = serverNow();
    for (const element of document.querySelectorAll("time[data-age]")) {
      const text = age(Date.parse(element.dateTime), now);
      if (element.textContent !== text) element.textContent = text;
      const limits = element.closest("[data-warn]");
      if (limits?.id === "newest") {
        limits.dataset.grade = grade((now - Date.parse(element.dateTime)) / 1000, +limits.dataset.warn, +limits.dataset.bad);
      }
    }
    if (performance.now() <= FIRST_REFRESH_MS) return;
    document.body.dispatchEvent(new CustomEvent("weir:tick"));
    if (present !== presentOf(now)) {
      present = presentOf(now);
      document.body.dispatchEvent(new CustomEvent("weir:present"));
    }
  }, TICK_MS);
}

// Buttons that copy the text of another element.
function startCopying() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const { textContent } = document.querySelector(button.dataset.copy);
    navigator.clipboard?.writeText(textContent).then(() => { button.textContent = "Copied"; });
  });
}

// An open dialog inside a part that is refreshed would vanish under the reader: wait with it.
function startRefreshGuard() {
  const open = (target) => target.querySelector(":popover-open, :checked:not(option), details[open]");
  document.body.addEventListener("htmx:oobBeforeSwap", (event) => {
    if (open(event.detail.target)) event.detail.shouldSwap = false;
  });
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    const target = event.detail.target;
    const busy = open(target) || (target.id === "body" && target.contains(document.activeElement) && /INPUT|TEXTAREA/.test(document.activeElement.tagName));
    const asked = event.detail.requestConfig.triggeringEvent?.type ?? "";
    if (busy && asked.startsWith("weir:")) event.detail.shouldSwap = false;
    // Faults of a form come with status 422 and are shown as well.
    if (event.detail.xhr.status === 422) event.detail.shouldSwap = true;
  });
}

// The states of all clusters come together: the page may lack the dot of a new cluster.
function startDots() {
  document.body.addEventListener("htmx:oobAfterSwap", () => {
    for (const given of document.querySelectorAll("#nav-statuses > [data-dot]")) {
      document.getElementById(given.dataset.dot)?.replaceChildren(...given.cloneNode(true).childNodes);
    }
  });
}

// A part out of view is refreshed, or first loaded, when it comes into view: it waits for weir:seen.
function startSeen() {
  const inView = new WeakSet();
  const behind = new WeakSet();
  const observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) inView.add(target);
      else inView.delete(target);
      if (isIntersecting && behind.delete(target)) target.dispatchEvent(new CustomEvent("weir:seen"));
    }
  }, { rootMargin: "120px" });
  for (const part of document.querySelectorAll("[data-when-seen]")) {
    if (part.dataset.whenSeen === "first") behind.add(part);
    observer.observe(part);
  }
  document.body.addEventListener("htmx:beforeRequest", (event) => {
    const { elt, requestConfig } = event.detail;
    const asked = requestConfig.triggeringEvent?.type ?? "";
    if (!("whenSeen" in elt.dataset) || inView.has(elt) || !asked.startsWith("weir:")) return;
    behind.add(elt);
    event.preventDefault();
  });
}

function startDialogs() {
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-close]")) event.target.closest("[popover]").hidePopover();
    const theme = event.target.closest("[data-set-theme]");
    if (theme) chooseTheme(theme.dataset.setTheme);
  });
}

function startSelection() {
  const show = () => {
    const bar = document.getElementById("selection");
    if (!bar) return;
    const count = document.querySelectorAll('#rows input[name="names"]:checked').length;
    bar.hidden = count === 0;
    document.querySelectorAll("[data-count]").forEach((place) => { place.textContent = count; });
  };
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-all]")) {
      document.querySelectorAll('#rows input[name="names"]').forEach((box) => { box.checked = event.target.checked; });
    }
    if (event.target.matches("[data-submits]")) event.target.form.requestSubmit();
    show();
  });
  document.body.addEventListener("htmx:afterSwap", show);
}

// A click on a stream's name goes to the field that was in use last, or else to the first.
function startFilling() {
  const first = () => document.querySelector("[data-takes-streams]");
  let taker = null;
  const take = (area) => {
    taker = area;
    const place = document.getElementById("fills");
    if (place && area) place.textContent = area.dataset.takesStreams;
  };
  document.addEventListener("focusin", (event) => {
    if (event.target.matches("[data-takes-streams]")) take(event.target);
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-stream]");
    if (!button) return;
    if (!taker?.isConnected || !taker.checkVisibility()) take(first());
    const area = taker;
    if (!area) return;
    const names = area.value.split(/[\s,;]+/).filter(Boolean);
    if (!names.includes(button.dataset.stream)) area.value = [...names, button.dataset.stream].join("\n");
    area.dispatchEvent(new Event("weir:filled"));
  });
}

// A click on a column writes aggregates of it into the form of a query.
function startSummaries() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-summary]");
    if (!button) return;
    const fill = (id, value) => { document.getElementById(id).value = value; };
    fill("key", button.dataset.key);
    fill("aggregates", button.dataset.summary);
    document.getElementById("aggregates").dispatchEvent(new Event("input", { bubbles: true }));
  });
}

// Of the fields that belong to the choices of a select, only those of the chosen one are shown, and
// only those are sent.
function startChoices() {
  const show = () => {
    document.querySelectorAll("[data-choice-of]").forEach((fields) => {
      const chosen = document.getElementById(fields.dataset.choiceOf)?.value === fields.dataset.choice;
      fields.hidden = fields.disabled = !chosen;
    });
  };
  document.addEventListener("change", (event) => { if (event.target.matches("select")) show(); });
  document.body.addEventListener("htmx:afterSwap", show);
  // After a reload, a browser restores the choices that the reader had made.
  window.addEventListener("pageshow", show);
  show();
}

// Drawings come with a page or with a part of it; most pages have none.
function startDrawings() {
  const equip = async (root) => {
    if (root.querySelector("[data-drawn]")) (await import("./drawings.js")).equipDrawings(root);
  };
  equip(document);
  // Until it settles, htmx gives an element the attributes of the one that it replaces.
  document.body.addEventListener("htmx:afterSwap", (event) => {
    const root = event.detail.target.parentElement ?? document;
    setTimeout(() => equip(root), SETTLED_MS);
  });
}

// A link to a folded part, or to something in it, opens it.
function startFolds() {
  const unfold = () => {
    const target = document.getElementById(location.hash.slice(1));
    const fold = target?.closest("details.card");
    if (!fold || fold.open) return;
    fold.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  // Charts that were drawn without a width.
  document.addEventListener("toggle", ({ target }) => target.open && dispatchEvent(new Event("resize")), true);
  unfold();
}

markTheme();
startAges();
startCopying();
startRefreshGuard();
startDots();
startFocus();
startSeen();
startDialogs();
startSelection();
startFilling();
startSummaries();
startChoices();
startDrawings();
startFolds();
startTerms();
startPalette();
startKeys();
window.weirSocket = connect();
window.weirSocket?.open();
document.body.dataset.ready = "yes"; // keys and buttons answer from here on
