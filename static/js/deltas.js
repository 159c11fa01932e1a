// New points at the ends of lines that Plotly has drawn: the path grows by what is new, and nothing
// is laid out again. Plotly draws the whole chart when the axis must move.

/** Remember the paths of the lines as they were drawn; `last`: the moment of their last sample. */
export function rememberLines(element, last) {
  const lines = new Map();
  for (const group of element.querySelectorAll(".scatterlayer .trace")) {
    const { meta } = group.__data__?.[0]?.trace ?? {};
    const path = [...group.querySelectorAll("path.js-line")].at(-1);
    if (!meta?.field || !path) continue;
    const drawn = path.getAttribute("d") ?? "";
    // Without its last point, which may still change: a bucket fills.
    const cut = drawn.lastIndexOf("L");
    lines.set(meta.field, { path, kept: cut > 0 ? drawn.slice(0, cut) : drawn, scale: meta.scale ?? 1 });
  }
  element.weirLines = { lines, last };
}

/** Return whether the newest samples could be added to the lines as they are drawn. */
export function extendLines(element, samples, fields) {
  const { lines, last } = element.weirLines ?? {};
  const { xaxis, yaxis } = element._fullLayout ?? {};
  if (!lines || !xaxis || !yaxis || last === undefined) return false;
  // By moment, not by number: as samples come, the oldest ones leave the window.
  let start = samples.length;
  while (start > 0 && samples[start - 1].t >= last) start -= 1;
  const tail = samples.slice(start);
  if (tail[0]?.t !== last) return false;
  const drawn = [];
  for (const field of fields) {
    const line = lines.get(field);
    if (!line || !line.path.isConnected) return false;
    let text = line.kept;
    for (const sample of tail) {
      const value = sample[field];
      if (!Number.isFinite(value)) return false;
      const [x, y] = [xaxis.d2p(sample.t), yaxis.d2p(value * line.scale)];
      if (x > xaxis._length || y < 0 || y > yaxis._length) return false;
      text += `${text ? "L" : "M"}${x.toFixed(1)},${y.toFixed(1)}`;
    }
    drawn.push([line.path, text]);
  }
  for (const [path, text] of drawn) path.setAttribute("d", text);
  return true;
}
