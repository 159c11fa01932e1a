// The time of the server: pages and samples carry it, and the clock of the browser may differ.

const written = Number(document.body?.dataset.now);
let ahead = written ? Date.now() - written : 0;

/** Note the server's present time in ms. */
export function setClock(server) { ahead = Date.now() - server; }

/** Return the server's present time in ms; the browser's until it is known. */
export function serverNow() { return Date.now() - ahead; }
