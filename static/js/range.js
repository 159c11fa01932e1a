// The time range of a page: picker, steps, pause, keys. Its URL has the range; a page that follows it
// in place registers itself with `follow`, others are loaded again with the new range.

import { serverNow } from "./clock.js";
import { announce } from "./connection.js";

const UNITS = { s: 1e3, m: 60e3, h: 3600e3, d: 86400e3 };
const UNIT_NAMES = { s: "s", m: "min", h: "h", d: "days" };
const DEFAULT = "30m"; // as dashboard/time_range.py
const NARROWEST_MS = 10e3;
// A step that ends so shortly before now, in parts of the range, leads to the present.
const NEAR_PART = 0.1;
const followers = [];

/** Return the length in ms of a relative range such as 30m. */
export function lengthOf(name) {
  return Number(name.slice(0, -1)) * UNITS[name.at(-1)];
}

/** A range: of a length until now if it has a name, else from start to end (ms). */
export class TimeRange {
  constructor(start, end, name = "") { Object.assign(this, { start, end, name }); }

  static last(name, now = serverNow()) { return new TimeRange(now - lengthOf(name), now, name); }

  get live() { return this.name !== ""; }

  get length() { return this.end - this.start; }

  get query() { return this.live ? { range: this.name } : { from: String(Math.round(this.start)), to: String(Math.round(this.end)) }; }

  get label() {
    if (this.live) return `Last ${this.name.slice(0, -1)} ${this.name === "1d" ? "day" : UNIT_NAMES[this.name.at(-1)]}`;
    return rangeText(this.start, this.end);
  }

  /** Return the range a number of its lengths later; the present if it would end after now. */
  shifted(lengths, now = serverNow()) {
    const by = lengths * this.length;
    if (lengths > 0 && this.end + by >= now - NEAR_PART * this.length) return TimeRange.last(nameOf(this.length), now);
    return new TimeRange(this.start + by, this.end + by);
  }
}

/** Return the name of a length in ms: in the largest unit that divides it, else in seconds. */
export function nameOf(length) {
  const seconds = Math.max(1, Math.round(length / 1000));
  const unit = ["d", "h", "m"].find((name) => (seconds * 1000) % UNITS[name] === 0 && (name !== "d" || seconds > 86400)) ?? "s";
  return `${(seconds * 1000) / UNITS[unit]}${unit}`;
}

/** Return both ends in UTC, with their days unless both are today. */
export function rangeText(start, end, now = serverNow()) {
  const day = (t) => new Date(t).toUTCString().slice(5, 11);
  const seconds = end - start < 300e3;
  const clock = (t) => new Date(t).toISOString().slice(11, seconds ? 19 : 16);
  const first = day(start) === day(end) && day(end) === day(now) ? clock(start) : `${day(start)} ${clock(start)}`;
  return `${first} to ${day(start) === day(end) ? "" : `${day(end)} `}${clock(end)} UTC`;
}

// Moments of the URL are in ms, or as a form sends them: in UTC without a zone.
function momentOf(text) {
  if (!text || /^\d+$/.test(text)) return Number(text);
  return Date.parse(/(Z|[+-]\d\d:\d\d)$/.test(text) ? text : `${text}Z`);
}

const place = document.getElementById("range");
const read = () => new TimeRange(Number(place.dataset.start), Number(place.dataset.end), place.dataset.name);
let range = place ? read() : null;

/** Return the range of the page; a live one ends now. */
export function currentRange() {
  return range?.live ? TimeRange.last(range.name) : range;
}

/** Let a page follow changes of the range in place: `follower(range)`. */
export function follow(follower) { followers.push(follower); }

/** Change the range of the page: in place if the page follows it, else by loading it again. */
export function chooseRange(chosen, { push = true } = {}) {
  const url = new URL(location.href);
  for (const name of ["range", "from", "to"]) url.searchParams.delete(name);
  for (const [name, value] of Object.entries(chosen.query)) url.searchParams.set(name, value);
  if (!followers.length) { location.assign(url); return; }
  range = chosen;
  if (push) history.pushState(null, "", url);
  show();
  announce(`Time range: ${range.label}`);
  for (const follower of followers) follower(range);
  document.body.dispatchEvent(new CustomEvent("weir:range", { detail: range }));
}

/** Write the range into the controls, and into the fields that requests of parts include. */
function show() {
  const by = (id) => document.getElementById(id);
  by("range-label").textContent = range.label;
  for (const link of place.querySelectorAll("[data-range]")) {
    if (link.dataset.range === range.name) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  by("range-live").hidden = range.live;
  by("pause").hidden = !range.live;
  if (!range.live) pause(false);
  place.querySelector('[data-step="0.5"]').toggleAttribute("aria-disabled", range.live);
  const values = by("range-values").elements;
  for (const name of ["range", "from", "to"]) values[name].value = range.query[name] ?? "";
  by("range-from").value = new Date(range.start).toISOString().slice(0, 19);
  by("range-to").value = new Date(range.end).toISOString().slice(0, 19);
  markFixed();
}

// A past range shows stored figures: the badge of the connection and live requests know it.
function markFixed() {
  if (range.live) delete document.body.dataset.fixed;
  else document.body.dataset.fixed = "yes";
}

export function isPaused() { return document.body.dataset.paused === "yes"; }

/** Pause or resume all live updates of the page. */
export function pause(paused) {
  if (isPaused() === paused) return;
  if (paused) document.body.dataset.paused = "yes";
  else delete document.body.dataset.paused;
  const button = document.getElementById("pause");
  button.setAttribute("aria-pressed", String(paused));
  button.setAttribute("aria-label", paused ? "Resume updates" : "Pause updates");
  dispatchEvent(new CustomEvent("weir:paused", { detail: paused }));
  announce(paused ? "Updates are paused" : "Updates are resumed");
}

// Parts of the page do not change while it is paused; those of a past range are not live at all.
function guardRequests() {
  document.body.addEventListener("htmx:beforeRequest", (event) => {
    const cause = event.detail.requestConfig?.triggeringEvent?.type ?? "";
    if (!cause.startsWith("weir:") || cause === "weir:range") return;
    const follows = event.target.closest?.('[hx-include="#range-values"]');
    if (isPaused() || (follows && !range.live)) event.preventDefault();
  });
}

function fromForm(form) {
  const moment = (name) => Date.parse(`${form.elements[name].value || new Date().toISOString().slice(0, 19)}Z`);
  const [start, end] = [moment("from"), moment("to")];
  const field = form.elements.to;
  field.setCustomValidity(start < end ? "" : "Must be after the start.");
  if (!form.reportValidity()) return null;
  return new TimeRange(start, Math.max(end, start + NARROWEST_MS));
}

function startControls() {
  place.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link) return;
    if (link.getAttribute("aria-disabled")) { event.preventDefault(); return; }
    if (!followers.length || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    document.getElementById("range-picker").hidePopover();
    const { step, range: name } = link.dataset;
    if (step) chooseRange(currentRange().shifted(Number(step)));
    else chooseRange(TimeRange.last(name === "live" ? DEFAULT : name));
  });
  document.getElementById("range-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const chosen = fromForm(event.target);
    if (!chosen) return;
    document.getElementById("range-picker").hidePopover();
    chooseRange(chosen);
  });
  document.getElementById("range-to").addEventListener("input", (event) => event.target.setCustomValidity(""));
  document.getElementById("pause").addEventListener("click", () => pause(!isPaused()));
  // The arrow keys belong to what has the focus; without one they step through time.
  document.addEventListener("keydown", (event) => {
    if (!["ArrowLeft", "ArrowRight"].includes(event.key) || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    if (event.defaultPrevented || ![document.body, document.getElementById("content")].includes(document.activeElement)) return;
    if (document.querySelector(":popover-open, #panel > *")) return;
    event.preventDefault();
    place.querySelector(`[data-step="${event.key === "ArrowLeft" ? "-0.5" : "0.5"}"]`).click();
  });
  addEventListener("popstate", () => {
    const values = new URL(location.href).searchParams;
    const name = values.get("range") ?? (values.has("from") ? "" : DEFAULT);
    const chosen = name ? TimeRange.last(name) : new TimeRange(momentOf(values.get("from")), momentOf(values.get("to")) || serverNow());
    const [now, then] = [range.query, chosen.query];
    if (JSON.stringify(now) !== JSON.stringify(then)) chooseRange(chosen, { push: false });
  });
}

if (place) {
  markFixed();
  startControls();
  guardRequests();
}
