// Light and dark: the choice, and design tokens put into figures.

/** Return the figure with every "--token" replaced by its value in the present theme. */
export function themed(figure, token = tokenReader()) {
  if (typeof figure === "string") return figure.startsWith("--") ? token(figure) : figure;
  if (Array.isArray(figure)) {
    // Long rows of numbers hold no colour: walking them would cost a copy per redraw.
    return figure.length && typeof figure[0] === "number" && typeof figure.at(-1) === "number" ? figure : figure.map((part) => themed(part, token));
  }
  if (figure === null || typeof figure !== "object") return figure;
  return Object.fromEntries(Object.entries(figure).map(([name, part]) => [name, themed(part, token)]));
}

/** Return a reader of design tokens that asks the style sheet once. */
export function tokenReader() {
  // The colour of an element is computed: a token's own text may be a light-dark() pair.
  const probe = document.createElement("i");
  probe.hidden = true;
  const known = new Map();
  return (name) => {
    if (!known.has(name)) {
      document.body.append(probe);
      probe.style.color = `var(${name}, #888)`;
      known.set(name, getComputedStyle(probe).color);
      probe.remove();
    }
    return known.get(name);
  };
}

/** Choose a theme, "" for the system's, and remember it. */
export function chooseTheme(theme) {
  try {
    if (theme) localStorage.setItem("weir-theme", theme);
    else localStorage.removeItem("weir-theme");
  } catch { /* kept for this page only */ }
  dispatchEvent(new CustomEvent("weir:theme-chosen", { detail: theme }));
  markTheme();
  dispatchEvent(new Event("weir:theme"));
}

/** Switch between light and dark. */
export function toggleTheme() {
  const dark = document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  chooseTheme(dark === "dark" ? "light" : "dark");
}

/** Mark the button of the chosen theme. */
export function markTheme() {
  const chosen = document.documentElement.dataset.theme ?? "";
  for (const button of document.querySelectorAll("[data-set-theme]")) button.setAttribute("aria-pressed", String(button.dataset.setTheme === chosen));
}
