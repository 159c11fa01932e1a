// Points that stand for a page: a click opens it.

document.body.addEventListener("weir:drawn", (event) => {
  const chart = event.target;
  if (chart.weirOpens) return;
  chart.weirOpens = true;
  const opens = (point) => (point?.data.meta?.opens ? point.customdata?.[0] : undefined);
  chart.on("plotly_click", ({ points }) => {
    const url = opens(points[0]);
    if (url) location.assign(url);
  });
  // The pointer shows that a click opens a page.
  const layer = () => chart.querySelector(".nsewdrag");
  chart.on("plotly_hover", ({ points }) => { if (opens(points[0])) layer()?.style.setProperty("cursor", "pointer"); });
  chart.on("plotly_unhover", () => layer()?.style.removeProperty("cursor"));
});
