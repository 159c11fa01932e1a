// Runs before the first paint, so that a page never flashes in the other theme.
(function () {
  let stored = null;
  try { stored = localStorage.getItem("weir-theme"); } catch { /* storage may be switched off */ }
  const dark = matchMedia("(prefers-color-scheme: dark)");
  function show() {
    document.documentElement.dataset.theme = stored || (dark.matches ? "dark" : "light");
  }
  show();
  dark.addEventListener("change", () => {
    if (stored) return;
    show();
    dispatchEvent(new Event("weir:theme"));
  });
  addEventListener("weir:theme-chosen", (event) => { stored = event.detail; show(); });
})();
