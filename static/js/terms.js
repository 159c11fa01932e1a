// Definitions of measures: one tooltip for all, by mouse, keyboard and touch.

const DELAY_MS = 250;
const LINGER_MS = 150;
const GAP_PX = 6;

let timer = null;
let anchor = null;

function tooltip() { return document.getElementById("term"); }

/** Return the label with a definition that an element is, or contains as a focused link. */
export function termOf(element) {
  const label = element.closest?.("[data-term]");
  if (label) return label;
  return element.matches?.("a, button, summary") ? element.querySelector("[data-term]") : null;
}

function show(label) {
  clearTimeout(timer);
  const box = tooltip();
  if (!box || anchor === label) return;
  hide();
  anchor = label;
  box.textContent = label.dataset.term;
  box.showPopover();
  describedOf(label).setAttribute("aria-describedby", box.id);
  place(box, label.getBoundingClientRect());
}

// What has the focus is described: the label itself, or the link around it.
function describedOf(label) { return label.closest("a, button") ?? label; }

function place(box, target) {
  const { width, height } = box.getBoundingClientRect();
  const left = Math.max(GAP_PX, Math.min(target.left, innerWidth - width - GAP_PX));
  const below = target.bottom + GAP_PX;
  const top = below + height > innerHeight ? target.top - height - GAP_PX : below;
  box.style.left = `${left}px`;
  box.style.top = `${Math.max(GAP_PX, top)}px`;
}

function hide() {
  clearTimeout(timer);
  if (!anchor) return;
  describedOf(anchor).removeAttribute("aria-describedby");
  anchor = null;
  tooltip()?.hidePopover();
}

function later(action, ms) {
  clearTimeout(timer);
  timer = setTimeout(action, ms);
}

/** Start the tooltips of the page. */
export function startTerms() {
  document.addEventListener("pointerover", ({ target, pointerType }) => {
    if (pointerType === "touch") return;
    const label = target.closest?.("[data-term]");
    if (label) later(() => show(label), DELAY_MS);
    else if (target.closest?.("#term")) clearTimeout(timer);
    else if (anchor) later(hide, LINGER_MS);
    else clearTimeout(timer);
  });
  document.addEventListener("focusin", ({ target }) => {
    const label = target.matches(":focus-visible") ? termOf(target) : null;
    if (label) show(label); else hide();
  });
  document.addEventListener("focusout", hide);
  // The first touch of a label explains it; a second one, or one beside it, follows its link.
  document.addEventListener("click", (event) => {
    const label = event.target.closest("[data-term]");
    if (!label || (event.pointerType !== "touch" && label.localName !== "button")) return;
    if (label.localName === "button" || anchor !== label) event.preventDefault();
    if (anchor === label && event.pointerType === "touch") hide(); else show(label);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !anchor) return;
    event.stopImmediatePropagation();
    event.preventDefault();
    hide();
  }, true);
  addEventListener("scroll", hide, { passive: true, capture: true });
  document.body.addEventListener("htmx:afterSwap", () => { if (anchor && !anchor.isConnected) hide(); });
}
