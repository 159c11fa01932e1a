// The theme of the API reference: Swagger UI follows a class of the document.

import { chooseTheme, markTheme } from "./theme.js";

const system = matchMedia("(prefers-color-scheme: dark)");

function follow() {
  const theme = document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light");
  document.documentElement.classList.toggle("dark-mode", theme === "dark");
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-set-theme]");
  if (button) chooseTheme(button.dataset.setTheme);
});
addEventListener("weir:theme", follow);
markTheme();
follow();
