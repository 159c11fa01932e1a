// The time of the server: samples carry it, and the clock of the browser may differ.

let ahead = 0;

/** Note the server's present time in ms. */
export function setClock(server) { ahead = Date.now() - server; }

/** Return the server's present time in ms; the browser's until it is known. */
export function serverNow() { return Date.now() - ahead; }
