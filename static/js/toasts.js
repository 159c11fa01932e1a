// Alerts that fire are shown above the page until they are cleared, handled or dismissed.

const MOST = 3;

function place() {
  let list = document.getElementById("alert-toasts");
  if (list) return list;
  list = Object.assign(document.createElement("div"), { id: "alert-toasts", className: "toasts no-print" });
  list.setAttribute("role", "region");
  list.setAttribute("aria-label", "Alerts");
  document.body.append(list);
  return list;
}

/** Show an alert that fires; remove it when its state is another one. */
export function showAlert({ id, state, text, url }) {
  const list = place();
  for (const shown of list.children) if (shown.dataset.alert === String(id)) shown.remove();
  if (state !== "firing") return;
  const toast = Object.assign(document.createElement("div"), { className: "toast alert-toast" });
  toast.dataset.alert = id;
  const link = Object.assign(document.createElement("a"), { href: url, textContent: "Show alert", className: "button small" });
  const close = Object.assign(document.createElement("button"), { type: "button", textContent: "Dismiss", className: "button small quiet" });
  close.addEventListener("click", () => toast.remove());
  const buttons = Object.assign(document.createElement("div"), { className: "buttons" });
  buttons.append(link, close);
  toast.append(Object.assign(document.createElement("b"), { textContent: text }), buttons);
  list.append(toast);
  while (list.children.length > MOST) list.firstElementChild.remove();
}
