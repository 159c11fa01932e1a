// The words at limits: each stands where its line has the fewest points of data around it, above or
// below, at the start, the middle or the end; where no place is free, on a background.

const [LETTER_PX, LINE_PX] = [6.2, 17];
// A label that covers another one is worse than one that covers any number of points.
const OTHER = 1e6;
const LEAST_PX = 40;
// Of a label of time with its gap; and of an axis.
const [TICK_PX, MOST_TICKS] = [64, 8];
const PLACES = [
  ["left", "bottom"], ["right", "bottom"], ["center", "bottom"],
  ["left", "top"], ["right", "top"], ["center", "top"],
];
const STARTS = { left: () => 0, center: (width) => (1 - width) / 2, right: (width) => 1 - width };
const ANCHORS = { left: 0, center: 0.5, right: 1 };

/** Return annotations of labels ({ text, y, font }) where they cover the fewest points of traces.
 *
 * frame: { x: [first, last], y: [low, top], width, height }, of the plot in px.
 */
export function placeLabels(labels, traces, frame) {
  if (!labels.length) return [];
  const points = traces.flatMap((trace) => pointsOf(trace, frame));
  const taken = [];
  return labels.map((label) => {
    const boxes = PLACES.map((place) => boxOf(label, place, frame));
    const crowds = boxes.map((box) => crowd(box, points) + OTHER * taken.filter((other) => overlap(box, other)).length);
    const best = crowds.indexOf(Math.min(...crowds));
    taken.push(boxes[best]);
    const [xanchor, yanchor] = PLACES[best];
    const note = { xref: "paper", x: ANCHORS[xanchor], xanchor, y: label.y, yanchor, text: label.text, showarrow: false, font: label.font, name: "limit" };
    return crowds[best] ? { ...note, bgcolor: "--surface", opacity: 0.85 } : note;
  });
}

/** Return the layout of a figure with its limits' annotations (name: "limit") moved. */
export function withPlacedLimits({ data, layout }, element) {
  const notes = layout.annotations ?? [];
  const limits = notes.filter(({ name }) => name === "limit");
  if (!limits.length) return layout;
  const drawn = data.filter(({ yaxis, y, x }) => (yaxis ?? "y") === "y" && x && y);
  const frame = frameOf(layout, element, drawn);
  if (!frame) return layout;
  return { ...layout, annotations: [...notes.filter(({ name }) => name !== "limit"), ...placeLabels(limits, drawn, frame)] };
}

function frameOf({ margin, xaxis, yaxis }, element, traces) {
  const [xs, ys] = ["x", "y"].map((name) => traces.flatMap((trace) => [...trace[name]]).filter(Number.isFinite));
  const x = xaxis?.range ?? ends(xs);
  const y = yaxis?.range ?? [Math.min(0, ends(ys)[0]), 1.1 * ends(ys)[1]];
  return [...x, ...y].every(Number.isFinite) ? { x, y, ...plotSize(margin, element) } : null;
}

/** Return the width and the height of the plot of an element, in px. */
export function plotSize({ l = 0, r = 0, t = 0, b = 0 } = {}, { clientWidth, clientHeight }) {
  return { width: Math.max(LEAST_PX, clientWidth - l - r), height: Math.max(LEAST_PX, clientHeight - t - b) };
}

/** Return a layout whose axis of time has no more ticks than there is room for their labels. */
export function withTicks(layout, element) {
  if (!layout.xaxis?.nticks) return layout;
  const room = Math.floor(plotSize(layout.margin, element).width / TICK_PX);
  return { ...layout, xaxis: { ...layout.xaxis, nticks: Math.max(2, Math.min(MOST_TICKS, room)) } };
}

function ends(values) {
  return [values.reduce((a, b) => Math.min(a, b), Infinity), values.reduce((a, b) => Math.max(a, b), -Infinity)];
}

// As parts of the width and the height, with the points of long segments between.
function pointsOf({ x, y }, frame) {
  const part = (value, [first, last]) => (value - first) / (last - first);
  const points = [];
  let before = null;
  for (let i = 0; i < x.length; i += 1) {
    const known = Number.isFinite(x[i]) && Number.isFinite(y[i]);
    const point = known ? [part(x[i], frame.x), part(y[i], frame.y)] : null;
    if (point && before) points.push(...between(before, point, frame));
    if (point) points.push(point);
    before = point;
  }
  return points;
}

function between([x0, y0], [x1, y1], { width, height }) {
  const count = Math.min(50, Math.floor(Math.max(Math.abs(x1 - x0) * width, Math.abs(y1 - y0) * height) / (LINE_PX / 2)));
  return Array.from({ length: count }, (_, i) => [x0 + ((x1 - x0) * (i + 1)) / (count + 1), y0 + ((y1 - y0) * (i + 1)) / (count + 1)]);
}

function boxOf({ text, y }, [xanchor, yanchor], frame) {
  const width = Math.min(1, (LETTER_PX * text.length) / frame.width);
  const height = LINE_PX / frame.height;
  const line = (y - frame.y[0]) / (frame.y[1] - frame.y[0]);
  const [left, low] = [STARTS[xanchor](width), yanchor === "bottom" ? line : line - height];
  return { left, right: left + width, low, high: low + height };
}

// A box that leaves the plot is not a place.
function crowd({ left, right, low, high }, points) {
  if (low < 0 || high > 1.02) return OTHER;
  return points.filter(([x, y]) => x >= left && x <= right && y >= low && y <= high).length;
}

function overlap(a, b) {
  return a.left < b.right && b.left < a.right && a.low < b.high && b.low < a.high;
}
