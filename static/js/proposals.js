// The page of a proposal: dialogs that survive live updates, the filter of the actions, copy, print.

const PARTS = ["dialogs", "toasts"];

// A part that a person uses is not replaced under their hands.
function isUsed(element) {
  if (element.querySelector(":popover-open")) return true;
  const active = document.activeElement;
  return element.contains(active) && active.matches("input, textarea, select");
}

document.body.addEventListener("htmx:oobBeforeSwap", (event) => {
  const { target } = event.detail;
  if (PARTS.includes(target.id) && (isUsed(target) || target.dataset.dismissed)) event.detail.shouldSwap = false;
  if (target.querySelector("details[open]")) event.detail.fragment?.querySelector?.("details")?.setAttribute("open", "");
});

document.body.addEventListener("htmx:beforeSwap", (event) => {
  const { target, xhr, requestConfig } = event.detail;
  if (xhr.status === 422) event.detail.shouldSwap = true;
  const byEvent = requestConfig.triggeringEvent?.type?.startsWith("weir:");
  const text = target.id === "comments" ? target.querySelector("textarea") : null;
  if (byEvent && text && (text.value || text === document.activeElement)) event.detail.shouldSwap = false;
});

// A closed dialog shows the present effect when it is opened again.
document.addEventListener("toggle", (event) => {
  if (event.target.matches?.(".dialog") && event.newState === "closed") {
    document.body.dispatchEvent(new CustomEvent("weir:refresh"));
  }
  if (event.target.matches?.(".dialog") && event.newState === "open") event.target.querySelector("input:not([type=hidden])")?.focus();
}, true);

function showActions(url) {
  const section = document.getElementById("actions");
  history.replaceState(null, "", url);
  const fragment = section.querySelector("form").getAttribute("hx-get") + url.search;
  window.htmx.ajax("GET", fragment, { target: "#actions" })
    .then(() => section.scrollIntoView({ block: "nearest" }));
}

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-print]")) window.print();
  const dismissed = event.target.closest("[data-dismiss]")?.closest("#toasts");
  if (dismissed) { dismissed.dataset.dismissed = "yes"; dismissed.replaceChildren(); }
  const copy = event.target.closest("[data-copy-link]");
  if (copy) navigator.clipboard?.writeText(location.href).then(() => { copy.lastChild.textContent = "Copied"; });
  if (event.metaKey || event.ctrlKey) return;
  const filter = event.target.closest("[data-filter]");
  const page = event.target.closest("[data-actions-page]");
  if (!filter && !page) return;
  event.preventDefault();
  const url = new URL(location.href);
  if (filter) {
    url.searchParams.delete("page");
    if (filter.dataset.filter) url.searchParams.set("filter", filter.dataset.filter);
    else url.searchParams.delete("filter");
  } else {
    url.searchParams.set("page", new URL(page.href).searchParams.get("page"));
  }
  showActions(url);
});

document.addEventListener("submit", (event) => {
  if (!event.target.matches("[data-keeps-url]")) return;
  event.preventDefault();
  event.stopPropagation();
  const url = new URL(location.href);
  url.searchParams.delete("page");
  const text = event.target.elements.filter.value.trim();
  if (text) url.searchParams.set("filter", text);
  else url.searchParams.delete("filter");
  showActions(url);
}, true);
