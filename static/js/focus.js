// Keeps the focus where parts of a page are replaced, and where a form loads its page again.

const HEADING = /^H[1-6]$/;
const ALIKE = ["href", "action", "formaction", "popovertarget", "name", "value", "aria-label", "data-explain", "data-filter"];
const CONTROLS = "a[href], button, input, select, textarea, summary, [tabindex]";
// A form that was sent by the keyboard, until its page is there.
const SENT = "weir-sent";
const SENT_MS = 10_000;

let lost = null;
let byKeyboard = false;

// What an element and the one that replaces it have in common.
function signature(element) {
  if (HEADING.test(element.tagName)) return element.tagName;
  const form = element.closest("form")?.getAttribute("action") ?? "";
  const named = ALIKE.map((name) => element.getAttribute(name)).join("\n");
  const text = element.matches("input, select, textarea") ? "" : element.textContent.trim();
  return [element.tagName, form, named, text].join("\n");
}

function alike(root, wanted) {
  const tag = wanted.split("\n", 1)[0];
  return [...root.querySelectorAll(tag)].filter((element) => signature(element) === wanted);
}

function ids(element) {
  const found = [];
  for (let place = element; place && place !== document.body; place = place.parentElement) {
    if (place.id) found.push(place.id);
  }
  return found;
}

/** Remember what has the focus, before a part of the page is replaced. */
export function rememberFocus() {
  const element = document.activeElement;
  if (!element || element === document.body) {
    if (lost?.element.isConnected) lost = null;
    return;
  }
  const wanted = signature(element);
  const parents = ids(element);
  const root = document.getElementById(parents.find((id) => id !== element.id)) ?? document.body;
  lost = { element, wanted, parents, isHeadline: Boolean(element.closest(".headline")), place: alike(root, wanted).indexOf(element) };
}

// The element that replaces the lost one: that of its id, the alike one at its place, a faulty field,
// or else the part that it was in. Never another control: the next Enter would press it.
function replacement({ element, wanted, parents, isHeadline, place }) {
  for (const id of parents) {
    const root = document.getElementById(id);
    if (!root?.checkVisibility()) continue;
    if (id === element.id) return root;
    const found = alike(root, wanted);
    const chosen = found[place] ?? found[0] ?? root.querySelector("[aria-invalid=true]");
    if (chosen?.checkVisibility() && !chosen.disabled) return chosen;
    return (isHeadline && root.querySelector(".headline")) || root;
  }
  return null;
}

function focusOn(element) {
  if (!element.matches(CONTROLS)) {
    element.tabIndex = -1;
    element.dataset.focused = "yes";
  }
  element.focus({ preventScroll: true });
}

/** Give the focus to what replaced the remembered element, if the focus was lost with it. */
export function restoreFocus() {
  if (!lost || lost.element.isConnected) return;
  if (document.activeElement && document.activeElement !== document.body) { lost = null; return; }
  const element = replacement(lost);
  if (!element) return;
  focusOn(element);
  lost = null;
}

// A page that a form loads again, sent by the keyboard, starts at what it states about the change.
function rememberForm(event) {
  if (!byKeyboard || event.target.method !== "post" || event.target.hasAttribute("hx-post")) return;
  sessionStorage.setItem(SENT, JSON.stringify({ path: location.pathname, at: Date.now() }));
}

function startAtChange() {
  const sent = JSON.parse(sessionStorage.getItem(SENT) ?? "null");
  sessionStorage.removeItem(SENT);
  const isSame = sent?.path === location.pathname && Date.now() - sent.at < SENT_MS;
  const chosen = [...document.querySelectorAll("[autofocus]")].some((field) => field.checkVisibility());
  if (!isSame || chosen || document.activeElement !== document.body) return;
  const element = document.querySelector("main .message, main .headline, main h1");
  if (element) focusOn(element);
}

export function startFocus() {
  addEventListener("keydown", () => { byKeyboard = true; }, true);
  addEventListener("pointerdown", () => { byKeyboard = false; }, true);
  addEventListener("submit", rememberForm);
  for (const name of ["htmx:beforeSwap", "htmx:oobBeforeSwap"]) document.body.addEventListener(name, rememberFocus);
  for (const name of ["htmx:afterSwap", "htmx:oobAfterSwap", "htmx:afterSettle"]) document.body.addEventListener(name, restoreFocus);
  startAtChange();
}
