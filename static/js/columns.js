// Columns of tables without a value in any row are hidden: nobody reads a column of dashes. It runs
// in the head, and whenever the parser has added to the page, so before that is painted.

(() => {
  const EMPTY = /^[–—→\s]*(of –)?\s*$/;
  const NEVER = "input, select, button, a, svg, canvas";

  // Rows of a group have one cell, and are left out.
  function hideIn(table) {
    const heads = [...(table.tHead?.rows[0]?.cells ?? [])];
    const rows = [...table.tBodies].flatMap((body) => [...body.rows]).filter(({ cells }) => cells.length === heads.length);
    for (const head of rows.length ? heads : []) {
      const cells = rows.map((row) => row.cells[head.cellIndex]);
      // On a narrow page, where a row is a card, an empty cell takes no place (frame.css).
      for (const cell of cells) cell.classList.toggle("none", EMPTY.test(cell.textContent) && !cell.querySelector(NEVER));
      const isEmpty = cells.every((cell) => cell.classList.contains("none"));
      for (const cell of [head, ...cells]) if (cell.hidden !== isEmpty) cell.hidden = isEmpty;
    }
  }

  const hideAll = () => document.querySelectorAll("table.cards").forEach(hideIn);
  const parsing = new MutationObserver(hideAll);
  parsing.observe(document, { childList: true, subtree: true });
  document.addEventListener("DOMContentLoaded", () => {
    hideAll();
    parsing.disconnect();
  });
  document.addEventListener("htmx:afterSettle", hideAll);
})();
