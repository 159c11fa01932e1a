// The one socket of a page, its badge, and the events that it dispatches.

import { serverNow } from "./clock.js";
import { duration } from "./format.js";
import { fleetUrl, LiveSocket, socketUrl } from "./live.js";
import { showAlert } from "./toasts.js";

// The badge shows missing data from the age at which the alert about it fires
// (`telemetry.arrivals.catching_up.oldest_s`): so long, or ten triggers.
const QUIET_MS = 30000;
const ANNOUNCE_MS = 5000;

/** Connect the page to its cluster, or to all clusters on the fleet page; null on other pages. */
export function connect() {
  const { cluster, fleet } = document.body.dataset;
  if (!cluster && fleet === undefined) return null;
  const badge = new Badge();
  const socket = new LiveSocket(cluster ? socketUrl(cluster) : fleetUrl(), () => badge.newest);
  socket.addEventListener("samples", ({ detail }) => {
    if (detail.length) badge.hear(Math.max(...detail.map(({ t }) => t)));
    dispatch("weir:sample", detail);
  });
  socket.addEventListener("event", ({ detail }) => {
    announce(detail.text);
    dispatch("weir:event", detail);
    // Incidents are events of this kind, too, but have no page of an alert.
    if (detail.kind === "alert" && detail.url) showAlert(detail);
    if (detail.kind === "alert" || detail.kind === "state") dispatch("weir:status", detail);
    if (detail.kind === "proposal" || detail.kind === "execution") dispatch(`weir:proposal-${detail.id}`, detail);
  });
  socket.addEventListener("state", ({ detail }) => badge.show(detail));
  socket.addEventListener("ended", () => location.reload());
  addEventListener("online", () => socket.hurry());
  document.addEventListener("visibilitychange", () => document.hidden || socket.hurry());
  addEventListener("pagehide", () => socket.close());
  addEventListener("pageshow", (event) => event.persisted && location.reload());
  addEventListener("weir:paused", ({ detail }) => badge.pause(detail));
  addEventListener("weir:known", ({ detail }) => badge.hear(detail));
  setInterval(() => badge.render(), 1000);
  return socket;
}

const announcer = { last: -ANNOUNCE_MS, texts: [], timer: null };

/** Announce a text to screen readers, at most once in 5 s; several texts wait together.
 *  Of texts with one `kind`, such as the points that keys step through, only the last is kept. */
export function announce(text, kind = "") {
  if (kind) announcer.texts = announcer.texts.filter((waiting) => waiting.kind !== kind);
  if (!announcer.texts.some((waiting) => waiting.text === text)) announcer.texts.push({ text, kind });
  announcer.timer ??= setTimeout(announceNow, Math.max(0, announcer.last + ANNOUNCE_MS - performance.now()));
}

function announceNow() {
  const texts = announcer.texts.map(({ text }) => text);
  Object.assign(announcer, { last: performance.now(), texts: [], timer: null });
  const place = document.getElementById("announcer");
  if (place) place.textContent = texts.length > 3 ? `${texts.length} events, the last: ${texts.at(-1)}` : texts.join(". ");
}

// A hidden page receives samples, which are not drawn, and starts no requests.
function dispatch(type, detail) {
  const target = document.body;
  dispatchEvent(new CustomEvent(`${type}!`, { detail }));
  if (!document.hidden && target) target.dispatchEvent(new CustomEvent(type, { detail }));
}

class Badge {
  constructor() {
    Object.assign(this, { connection: null, paused: false, newest: null, grade: null, timer: null });
    this.started = performance.now();
    this.quietMs = Math.max(QUIET_MS, 10 * Number(document.body.dataset.triggerMs ?? 0));
  }

  show(state) { this.connection = state; this.render(); }

  /** Note the time of the newest sample, which the page shows elsewhere, too. */
  hear(t) {
    const wasQuiet = this.grade === "warn";
    this.newest = Math.max(this.newest ?? 0, t);
    if (wasQuiet) this.render();
    this.#watch(this.quietMs);
  }

  // Silence shows when it is long enough, not with the next second.
  #watch(rest) {
    this.timer ??= setTimeout(() => {
      this.timer = null;
      const left = this.quietMs - (serverNow() - this.newest);
      if (left < 0) this.render();
      else this.#watch(left);
    }, rest + 10);
  }

  pause(paused) { this.paused = paused; this.render(); }

  render() {
    const element = document.getElementById("connection");
    if (!element) return;
    const [text, grade] = this.#badgeText();
    if (element.textContent !== text) element.textContent = text;
    element.dataset.grade = grade;
    if (this.grade !== null && this.grade !== grade && !document.body.dataset.fixed) announce(text);
    this.grade = grade;
    document.body.toggleAttribute("data-stale", grade === "bad" || (grade === "warn" && !this.paused));
  }

  #badgeText() {
    const { connection, newest } = this;
    if (document.body.dataset.fixed || connection === null) return ["stored data", "unknown"];
    if (connection.state !== "live") {
      const seconds = Math.max(0, Math.ceil((connection.retryAt - Date.now()) / 1000));
      return [seconds ? `reconnecting in ${seconds} s` : "reconnecting", "bad"];
    }
    if (this.paused) return ["paused", "warn"];
    const silence = newest === null ? performance.now() - this.started : serverNow() - newest;
    // A cluster without new records has no new samples: nothing is missing.
    if (silence > this.quietMs && document.querySelector(`#nav-dot-${document.body.dataset.cluster} [data-idle]`)) return ["idle", "good"];
    if (silence > this.quietMs) return [newest === null ? "no data" : `no data for ${duration(silence)}`, "warn"];
    // A sample per second: a number that changes with each of them would paint the page twice.
    return [newest === null ? "live" : `live · ${duration(Math.max(1000, silence))} old`, "good"];
  }
}
