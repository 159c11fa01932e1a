// Runs before the first paint, so that a page never flashes in the other theme. Without a stored
// choice the style sheet follows the system.
(function () {
  let stored = null;
  try { stored = localStorage.getItem("weir-theme"); } catch { /* storage may be switched off */ }
  function show() {
    if (stored) document.documentElement.dataset.theme = stored;
    else delete document.documentElement.dataset.theme;
  }
  show();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    if (!stored) dispatchEvent(new Event("weir:theme"));
  });
  addEventListener("weir:theme-chosen", (event) => { stored = event.detail || null; show(); });
})();
