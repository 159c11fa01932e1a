// The newest alert that fires is shown above the page for a while. The bell and the page of alerts
// keep what is no longer shown, so nothing below is covered for long.

const SHOWN_MS = 12_000;

const firing = new Map();
let hiding = 0;

function place() {
  let list = document.getElementById("alert-toasts");
  if (list) return list;
  list = Object.assign(document.createElement("div"), { id: "alert-toasts", className: "toasts no-print" });
  list.setAttribute("role", "region");
  list.setAttribute("aria-label", "Alerts");
  document.body.append(list);
  return list;
}

function hideLater() {
  clearTimeout(hiding);
  hiding = setTimeout(hide, SHOWN_MS);
}

function hide() {
  // Who reads it, or is about to use it, has the time for it.
  if (place().matches(":hover, :focus-within")) hideLater();
  else dismiss();
}

function dismiss() {
  firing.clear();
  place().replaceChildren();
}

function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function draw() {
  const list = place();
  const [newest, ...others] = [...firing.values()].reverse();
  if (!newest) return list.replaceChildren();
  const link = element("a", { href: newest.url, textContent: "Show alert", className: "button small" });
  const close = element("button", { type: "button", textContent: "Dismiss", className: "button small quiet" });
  close.addEventListener("click", dismiss);
  const rest = element("span", { className: "muted tiny", textContent: others.length ? `and ${others.length} more` : "" });
  const buttons = element("div", { className: "buttons" }, link, close, rest);
  const toast = element("div", { className: "toast alert-toast" }, element("b", { textContent: newest.text }), buttons);
  toast.dataset.alert = newest.id;
  list.replaceChildren(toast);
}

/** Show an alert that fires; remove it when its state is another one. */
export function showAlert({ id, state, text, url }) {
  firing.delete(id);
  if (state === "firing") {
    firing.set(id, { id, text, url });
    hideLater();
  }
  draw();
}
