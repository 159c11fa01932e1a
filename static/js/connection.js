// The one socket of a page, its badge, and the events that it dispatches.

import { age } from "./format.js";
import { LiveSocket, socketUrl } from "./live.js";

// The badge shows a missing sample after this time: the socket is up, the pipeline is not.
const QUIET_MS = 15000;

/** Connect the page to its cluster and return the socket; null on pages without one. */
export function connect() {
  const cluster = document.body.dataset.cluster;
  if (!cluster) return null;
  const known = { t: null, heard: null };
  const socket = new LiveSocket(socketUrl(cluster), () => known.t);
  const badge = new Badge();
  socket.addEventListener("samples", ({ detail }) => {
    for (const sample of detail) known.t = Math.max(known.t ?? 0, sample.t);
    if (detail.length) badge.heard = Date.now();
    dispatch("weir:sample", detail);
  });
  socket.addEventListener("event", ({ detail }) => {
    announce(detail.text);
    dispatch("weir:event", detail);
    if (detail.kind === "proposal" || detail.kind === "execution") dispatch(`weir:proposal-${detail.id}`, detail);
  });
  socket.addEventListener("state", ({ detail }) => badge.show(detail));
  socket.addEventListener("ended", () => location.reload());
  addEventListener("online", () => socket.hurry());
  document.addEventListener("visibilitychange", () => document.hidden || socket.hurry());
  addEventListener("pagehide", () => socket.close());
  addEventListener("pageshow", (event) => event.persisted && location.reload());
  addEventListener("weir:paused", ({ detail }) => badge.pause(detail));
  addEventListener("weir:known", ({ detail }) => { known.t = Math.max(known.t ?? 0, detail); });
  setInterval(() => badge.render(), 1000);
  return socket;
}

/** Announce a text to screen readers. */
export function announce(text) {
  const place = document.getElementById("announcer");
  if (place && place.textContent !== text) place.textContent = text;
}

// A hidden page receives samples, which are not drawn, and starts no requests.
function dispatch(type, detail) {
  const target = document.body;
  dispatchEvent(new CustomEvent(`${type}!`, { detail }));
  if (!document.hidden && target) target.dispatchEvent(new CustomEvent(type, { detail }));
}

class Badge {
  constructor() {
    Object.assign(this, { now: null, paused: false, heard: Date.now() });
  }

  show(state) { this.now = state; this.render(); }

  pause(paused) { this.paused = paused; this.render(); }

  render() {
    const element = document.getElementById("connection");
    if (!element) return;
    const [text, grade] = this.#badgeText(Date.now());
    if (element.textContent !== text) element.textContent = text;
    element.dataset.grade = grade;
  }

  #badgeText(now) {
    if (document.body.dataset.fixed) return ["showing stored data", "unknown"];
    if (this.now === null) return ["showing stored data", "unknown"];
    if (this.now.state !== "live") {
      const seconds = Math.max(0, Math.ceil((this.now.retryAt - now) / 1000));
      return [seconds ? `reconnecting in ${seconds} s` : "reconnecting", "bad"];
    }
    if (this.paused) return ["paused", "warn"];
    if (now - this.heard > QUIET_MS) return [`live, last data ${age(this.heard, now)}`, "warn"];
    return ["live", "good"];
  }
}
