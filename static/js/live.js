// The socket of a cluster: reconnects automatically and requests missed samples.

import { serverNow, setClock } from "./clock.js";

const FIRST_MS = 500;
const LONGEST_MS = 30000;
// The server closes with it when the session or the role has ended (dashboard/consumers.py).
const ACCESS_ENDED = 4401;

/** Return the ms to wait before try number `attempt` (0, 1, ...): doubling, with full jitter
 *  over its upper half, so that many browsers do not come back at one moment. */
export function delayBefore(attempt, random = Math.random) {
  const most = Math.min(LONGEST_MS, FIRST_MS * 2 ** attempt);
  return most / 2 + (most / 2) * random();
}

/** Emits: "samples" (array), "event" (one), "state" ({state, retryAt}), "ended" (log in again). */
export class LiveSocket extends EventTarget {
  /** lastSample returns the t (ms) of the newest sample that is known, or null. */
  constructor(url, lastSample = () => null, make = (address) => new WebSocket(address)) {
    super();
    Object.assign(this, { url, lastSample, make, attempt: 0, socket: null, timer: null, closed: false });
  }

  open() {
    if (this.closed || this.socket) return;
    clearTimeout(this.timer);
    this.socket = this.make(this.url);
    this.socket.onopen = () => this.#opened();
    this.socket.onmessage = (message) => this.#received(message.data);
    this.socket.onclose = ({ code }) => this.#lost(code);
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    this.socket?.close();
  }

  /** Try at once: somebody looks, or the network is back. */
  hurry() {
    if (!this.socket) this.open();
  }

  #opened() {
    this.attempt = 0;
    this.socket.send(JSON.stringify({ since: this.lastSample() ?? serverNow() - 60000 }));
    this.#dispatch("state", { state: "live", retryAt: null });
  }

  #received(text) {
    let message;
    try { message = JSON.parse(text); } catch { return; }
    if (message.now) setClock(message.now);
    if (message.type === "samples") this.#dispatch("samples", message.samples);
    else if (message.type === "sample") this.#dispatch("samples", [message.sample]);
    else if (message.type === "event") this.#dispatch("event", message.event);
  }

  #lost(code) {
    this.socket = null;
    if (this.closed) return;
    if (code === ACCESS_ENDED) {
      this.close();
      this.#dispatch("ended", null);
      return;
    }
    const wait = delayBefore(this.attempt++);
    this.timer = setTimeout(() => this.open(), wait);
    this.#dispatch("state", { state: "reconnecting", retryAt: Date.now() + wait });
  }

  #dispatch(type, detail) { this.dispatchEvent(new CustomEvent(type, { detail })); }
}

/** Return the address of a cluster's socket on this host. */
export function socketUrl(cluster, place = location) {
  return `${origin(place)}/ws/clusters/${cluster}/`;
}

/** Return the address of the socket of all visible clusters on this host. */
export function fleetUrl(place = location) {
  return `${origin(place)}/ws/fleet/`;
}

function origin(place) {
  return `${place.protocol === "https:" ? "wss:" : "ws:"}//${place.host}`;
}
