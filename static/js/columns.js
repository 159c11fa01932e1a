// Columns of tables without a value in any row are hidden: nobody reads a column of dashes.

const EMPTY = /^[–—→\s]*(of –)?\s*$/;
const NEVER = "input, select, button, a, svg, canvas";

/** Hide the empty columns of the tables in a part of the page, and show the others. */
export function hideEmptyColumns(part) {
  for (const table of part.querySelectorAll("table.cards")) {
    const rows = [...table.tBodies].flatMap(({ rows }) => [...rows]).filter(({ cells }) => cells.length === table.tHead?.rows[0]?.cells.length);
    for (const head of rows.length ? table.tHead.rows[0].cells : []) {
      const cells = rows.map(({ cells }) => cells[head.cellIndex]);
      // On a narrow page, where a row is a card, an empty cell takes no place (frame.css).
      for (const cell of cells) cell.classList.toggle("none", EMPTY.test(cell.textContent) && !cell.querySelector(NEVER));
      const isEmpty = cells.every((cell) => cell.classList.contains("none"));
      for (const cell of [head, ...cells]) if (cell.hidden !== isEmpty) cell.hidden = isEmpty;
    }
  }
}
