// Numbers as an operator reads them; controlplane/numbers.py writes them the same way.

const MISSING = "–";
const PREFIXES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
// Formats are kept: toLocaleString makes one for each number, which took half of the scripts' time.
const writers = (option) => {
  const known = new Map();
  return (value, digits = 0) => {
    if (!known.has(digits)) known.set(digits, new Intl.NumberFormat("en-US", option(digits)));
    return known.get(digits).format(value);
  };
};
const grouped = writers((digits) => ({ minimumFractionDigits: digits, maximumFractionDigits: digits }));
/** Return a number with at most so many significant digits: 1,230. */
export const significant = writers((digits) => ({ maximumSignificantDigits: digits }));
const missing = (value) => value === null || value === undefined || Number.isNaN(value);

export const format = {
  compact(value) {
    if (missing(value)) return MISSING;
    const size = Math.abs(value);
    if (size >= 10000) {
      const [scale, prefix] = PREFIXES.find(([least]) => size >= least);
      const scaled = value / scale;
      return `${scaled.toFixed(Math.abs(scaled) >= 100 ? 0 : 1)} ${prefix}`;
    }
    if (size >= 100 || Number.isInteger(value)) return grouped(value);
    return value.toFixed(size >= 10 ? 1 : 2);
  },
  ratio: (value) => (missing(value) ? MISSING : value.toFixed(2)),
  percent(value) {
    if (missing(value)) return MISSING;
    const scaled = Math.round(1e11 * value) / 1e9;
    if (scaled > 0 && scaled < 0.05) return "< 0.1 %";
    return `${grouped(scaled, Math.abs(scaled) >= 9.95 || Number.isInteger(scaled) ? 0 : 1)} %`;
  },
  milliseconds(value) {
    if (missing(value)) return MISSING;
    if (value >= 600e3) return duration(value);
    return value < 1000 ? `${grouped(value)} ms` : `${grouped(value / 1000, 1)} s`;
  },
  whole: (value) => (missing(value) ? MISSING : String(value)),
};

/** Return a time in ms with its largest unit: "6 s", "3 min". */
export function duration(ms) {
  const seconds = ms / 1000;
  const [size, unit] = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]].find(([least]) => seconds >= least) || [1, "s"];
  return `${Math.round(seconds / size)} ${unit}`;
}

/** Return the time of day of a moment in ms: 05:41, or 05:41:30. */
export function clock(t, hasSeconds = false) {
  return new Date(t).toISOString().slice(11, hasSeconds ? 19 : 16);
}

/** Return how long ago (or ahead) a moment in ms is. */
export function age(then, now) {
  const text = duration(Math.abs(now - then));
  return now >= then ? `${text} ago` : `in ${text}`;
}

/** Return good, warn, bad or unknown for a measure of which less is better. */
export function grade(value, warn, bad) {
  if (missing(value)) return "unknown";
  if (value >= bad) return "bad";
  return value >= warn ? "warn" : "good";
}
