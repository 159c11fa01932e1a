// The filter bar of a list: completes fields, operators and values as they are declared by the server,
// and points to the place of a fault.

import { completions, applied } from "./filter-completion.js";

const input = document.getElementById("filter");
const list = document.getElementById("filter-options");
const fields = input ? JSON.parse(input.dataset.fields) : [];
let offered = [];
let chosen = -1;

function close() {
  list.hidden = true;
  chosen = -1;
  input.setAttribute("aria-expanded", "false");
  input.removeAttribute("aria-activedescendant");
}

function option(item, index) {
  const row = document.createElement("li");
  row.id = `filter-option-${index}`;
  row.setAttribute("role", "option");
  row.setAttribute("aria-selected", "false");
  const text = document.createElement("code");
  text.textContent = item.text;
  const about = document.createElement("span");
  about.className = "muted";
  about.textContent = item.about;
  row.append(text, about);
  // Before the field loses the focus.
  row.addEventListener("mousedown", (event) => { event.preventDefault(); accept(index); });
  return row;
}

function open() {
  offered = completions(fields, input.value, input.selectionStart ?? input.value.length);
  list.replaceChildren(...offered.map(option));
  if (!offered.length) { close(); return; }
  list.hidden = false;
  chosen = -1;
  input.setAttribute("aria-expanded", "true");
}

function choose(index) {
  chosen = (index + offered.length) % offered.length;
  for (const [place, row] of [...list.children].entries()) row.setAttribute("aria-selected", String(place === chosen));
  list.children[chosen].scrollIntoView({ block: "nearest" });
  input.setAttribute("aria-activedescendant", `filter-option-${chosen}`);
}

function accept(index) {
  const { text, caret } = applied(input.value, offered[index]);
  input.value = text;
  input.setSelectionRange(caret, caret);
  input.dispatchEvent(new Event("input", { bubbles: true }));
}

function onKey(event) {
  if (list.hidden) {
    if (event.key === "ArrowDown") { event.preventDefault(); open(); }
    return;
  }
  if (event.key === "ArrowDown") choose(chosen + 1);
  else if (event.key === "ArrowUp") choose(chosen - 1);
  else if (event.key === "Escape") close();
  else if ((event.key === "Enter" || event.key === "Tab") && chosen >= 0) accept(chosen);
  else { if (event.key === "Enter") close(); return; }
  event.preventDefault();
  event.stopPropagation();
}

// A list that a person uses is not replaced under their hands by an event of the cluster.
function guardList(event) {
  const { target, requestConfig } = event.detail;
  if (target.id !== "list") return;
  const byEvent = requestConfig.triggeringEvent?.type?.startsWith("weir:");
  if (byEvent && target.querySelector(":popover-open, :checked:not(option)")) event.detail.shouldSwap = false;
}

if (input) {
  for (const [name, value] of [["role", "combobox"], ["aria-autocomplete", "list"], ["aria-expanded", "false"], ["aria-controls", list.id]]) input.setAttribute(name, value);
  input.addEventListener("input", open);
  input.addEventListener("focus", open);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", onKey);
  document.body.addEventListener("htmx:beforeSwap", guardList);
  document.body.addEventListener("htmx:afterSettle", () => {
    input.setAttribute("aria-invalid", String(Boolean(document.querySelector("#filter-fault mark"))));
  });
}
