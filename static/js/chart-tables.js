// The table beside a chart: the values of its visible lines at each x, the newest first.

const MOST_ROWS = 400;

function cell(tag, text, numeric) {
  const element = document.createElement(tag);
  element.textContent = text;
  if (tag === "th") element.scope = "col";
  if (numeric) element.className = "num";
  return element;
}

function row(tag, texts) {
  const element = document.createElement("tr");
  element.append(...texts.map((text, place) => cell(tag, text, place > 0)));
  return element;
}

function written(value) {
  return typeof value === "number" ? value.toLocaleString("en", { maximumSignificantDigits: 4 }) : String(value ?? "–");
}

/** Return the header and the rows of the table of a Plotly figure, times in UTC. */
export function rowsOf(figure) {
  const lines = figure.data.filter((trace) => trace.name && trace.visible !== "legendonly");
  const dated = figure.layout.xaxis?.type === "date";
  const places = [...new Set(lines.flatMap((trace) => [...trace.x]))].sort((one, other) => (dated ? other - one : one - other));
  const known = lines.map((trace) => new Map(trace.x.map((x, place) => [x, trace.y[place]])));
  const unit = figure.layout.yaxis?.title?.text;
  const header = [dated ? "Time UTC" : "x", ...lines.map((trace) => (unit ? `${trace.name}, ${unit}` : trace.name))];
  const rows = places.slice(0, MOST_ROWS).map((x) => [
    dated ? new Date(x).toISOString().slice(0, 19).replace("T", " ") : written(x),
    ...known.map((values) => written(values.get(x))),
  ]);
  return { header, rows };
}

function tableOf(figure) {
  const { header, rows } = rowsOf(figure);
  const table = document.createElement("table");
  const head = document.createElement("thead");
  const body = document.createElement("tbody");
  head.append(row("th", header));
  body.append(...rows.map((texts) => row("td", texts)));
  table.append(head, body);
  return table;
}

/** Fill the open tables of the charts of a host with its figures. */
export function fillTables(host) {
  for (const place of host.querySelectorAll("[data-table-of]:not([hidden])")) {
    const figure = host.weirFigures?.[place.dataset.tableOf];
    if (figure) place.replaceChildren(tableOf(figure));
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-chart-table]");
  if (!button) return;
  const place = document.getElementById(button.getAttribute("aria-controls"));
  place.hidden = !place.hidden;
  button.setAttribute("aria-expanded", String(!place.hidden));
  fillTables(place.closest("[data-figures]"));
});
