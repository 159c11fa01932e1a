// A window of samples: in order of time, each once, never longer than its span.

// As stored roll-ups do it (controlplane/telemetry/grid.py).
const WORST = new Set(["split_latency", "ladder_position", "input_factor"]);
const NEWEST = new Set(["t", "version", "rf_limit", "capacity", "tasks", "node_waiting", "node_state",
  "split_waiting", "waiting", "state_bytes", "event_ms",
  "emitted_ms"]);
// The denominators of ratios, and of what the imbalance of merged samples is computed.
const OVER = { rf: "read", kept: "in" };
const PARTS = { imbalance: ["loads", "capacity", "arrived", "in"] };
const GAP_STEPS = 6;
// A figure with this prefix is its mean over a minute, as tiles show it.
export const MINUTE = "minute_";
const MINUTE_MS = 60e3;
// Starts and outages that are remembered.
const MOST_WAITED = 10;

/** The means of the last minute of live samples; `recent`: the stored ones of the last minute. */
export class LastMinute {
  constructor(recent, names) {
    this.names = names.filter((name) => name.startsWith(MINUTE)).map((name) => name.slice(MINUTE.length));
    this.parts = mergedNames(this.names);
    this.recent = recent.map((sample) => only(sample, this.parts));
  }

  /** Return a sample with the means of the minute that ends with it. */
  add(sample) {
    if (!this.names.length) return sample;
    const newest = Math.max(sample.t, this.recent.at(-1)?.t ?? 0);
    this.recent = [...this.recent.filter(({ t }) => t !== sample.t), only(sample, this.parts)].filter(({ t }) => t > newest - MINUTE_MS).sort((a, b) => a.t - b.t);
    const parts = this.recent.filter(({ t }) => t <= sample.t);
    const mean = parts.length ? parts.reduce(merged) : sample;
    return { ...sample, ...Object.fromEntries(this.names.map((name) => [MINUTE + name, mean[name]])) };
  }
}

const LEAST_MS = 950;

/** The pace of something that happens at most once per second on average: a sample that came late
 *  does not delay the next one, which comes in time. */
export class Pace {
  constructor() { this.at = -Infinity; }

  /** Return the ms until it may happen again. */
  rest() { return LEAST_MS - (performance.now() - this.at); }

  happened() {
    const now = performance.now();
    this.at = Math.min(now, Math.max(this.at + LEAST_MS, now - LEAST_MS / 2));
  }
}

export class SampleWindow {
  /** span in ms; resolution is the seconds that one drawn sample stands for, 1: as measured.
   *  names: of the figures to keep, by default all; the newest sample has all of them.
   *  outage: the ms without a sample after which the records of the next one have waited. */
  constructor(span, resolution = 1, names = null, outage = Infinity) {
    this.span = span;
    this.outage = outage;
    this.waited = []; // the times of samples whose records waited for a start, as the charts show them
    this.names = names && (resolution > 1 ? mergedNames(names) : ["t", "span_s", ...names]);
    this.step = resolution > 1 ? resolution * 1000 : 0;
    this.buckets = new Map(); // key -> {sample, parts: Set of t of merged samples, else null}
    this.ordered = [];
    this.dirty = false;
    this.last = null; // the newest t seen, in ms
    this.newest = null; // the newest sample as it was measured
  }

  /** Take stored samples as they are; live ones never change them. waited: the times of some. */
  load(samples, waited = []) {
    waited.forEach((t) => this.#noteWaited(t));
    for (const sample of samples) {
      this.buckets.set(this.#key(sample.t), { sample, parts: null });
      this.#note(sample);
    }
    this.#changed();
  }

  /** Add live samples in any order, doubled or not; return how many were new. */
  add(samples) {
    const added = samples.filter((sample) => this.#addOne(sample)).length;
    if (added) this.#changed();
    return added;
  }

  /** Return the samples, oldest first. */
  get samples() {
    if (this.dirty) {
      this.ordered = [...this.buckets.entries()].sort((a, b) => a[0] - b[0]).map(([, bucket]) => this.#shown(bucket.sample));
      this.dirty = false;
    }
    return this.ordered;
  }

  // A minute with records that waited has no mean of the load: its line begins after that minute.
  #shown(sample) {
    const isLoad = !this.waited.some((since) => sample.t >= since && sample.t < since + MINUTE_MS);
    return isLoad ? sample : only(sample, Object.keys(sample).filter((name) => !name.startsWith(MINUTE)));
  }

  #key(t) { return this.step ? Math.floor(t / this.step) * this.step : t; }

  #addOne(sample) {
    if (!sample || !Number.isFinite(sample.t)) return false;
    if (this.last !== null && sample.t < this.last - this.span) return false;
    const key = this.#key(sample.t);
    const bucket = this.buckets.get(key);
    this.#note(sample);
    // When they arrived is not known, or longer ago than a batch takes.
    if (sample.arrived === null || seconds(sample) * 1000 > this.outage) this.#noteWaited(sample.t);
    if (bucket && (!bucket.parts || bucket.parts.has(sample.t))) return false;
    const kept = this.#kept(sample);
    if (bucket) {
      bucket.sample = { ...merged(bucket.sample, kept), t: key };
      bucket.parts.add(sample.t);
    } else {
      const isMerged = this.step > 0;
      this.buckets.set(key, { sample: isMerged ? { ...kept, t: key } : kept, parts: isMerged ? new Set([sample.t]) : null });
    }
    return true;
  }

  // Lists of nodes are most of a sample, and no line draws them.
  #kept(sample) {
    return this.names ? only(sample, this.names) : sample;
  }

  #noteWaited(t) { this.waited = [...new Set([...this.waited, this.#key(t)])].slice(-MOST_WAITED); }

  #note(sample) {
    if (this.last === null || sample.t > this.last) {
      this.last = sample.t;
      this.newest = sample;
    }
  }

  #changed() {
    const oldest = this.last - this.span;
    for (const key of this.buckets.keys()) if (key < oldest) this.buckets.delete(key);
    this.dirty = true;
  }
}

// The figures that merged samples need to have some of them.
const mergedNames = (names) => [...new Set(["t", "span_s", ...names.flatMap((name) => [name, OVER[name] ?? name, ...(PARTS[name] ?? [])])])];
const only = (sample, names) => Object.fromEntries(names.filter((name) => name in sample).map((name) => [name, sample[name]]));

/** Return one sample for merged ones and a further one: newest, worst or mean of each value. */
export function merged(so_far, sample) {
  const newer = sample.t >= so_far.t;
  const result = { ...so_far };
  for (const name of Object.keys(sample)) {
    const [a, b] = [so_far[name], sample[name]];
    if (NEWEST.has(name) || name.startsWith(MINUTE)) result[name] = newer ? b : a;
    else if (a === null || a === undefined) result[name] = b;
    else if (b === null || b === undefined) result[name] = a;
    else {
      const [x, y] = [weight(so_far, name), weight(sample, name)];
      const one = WORST.has(name) ? Math.max : (old, value) => (x + y ? (old * x + value * y) / (x + y) : value);
      result[name] = Array.isArray(b) ? b.map((value, i) => (value === null ? a[i] ?? null : one(a[i] ?? value, value))) : one(a, b);
    }
  }
  result.span_s = seconds(so_far) + seconds(sample);
  const ofLoads = imbalanceOf(result);
  return ofLoads === null ? result : { ...result, imbalance: ofLoads };
}

const seconds = (sample) => sample.span_s ?? 1;

function weight(sample, name) { return seconds(sample) * (sample[OVER[name]] ?? 1); }

/** Return the imbalance of loads over capacities; null where they are not known. */
function imbalanceOf({ loads, capacity, arrived, in: read }) {
  const known = (loads ?? []).map((load, i) => load / (capacity?.[i] ?? NaN)).filter(Number.isFinite);
  const most = Math.max(...known, 0);
  if (!most) return null;
  const mean = known.reduce((sum, share) => sum + share, 0) / known.length;
  return (most - mean) * (Number.isFinite(arrived) && read > 0 ? arrived / read : 1);
}

/** Return the samples with an empty one at both ends of every gap, so that lines break there. */
export function withGaps(samples) {
  const steps = samples.slice(1).map((sample, i) => sample.t - samples[i].t).sort((a, b) => a - b);
  if (!steps.length) return samples;
  const limit = GAP_STEPS * Math.max(steps[steps.length >> 1], 1000);
  const shown = [];
  for (const sample of samples) {
    const before = shown[shown.length - 1];
    if (before && sample.t - before.t > limit) shown.push({ t: before.t + 1 }, { t: sample.t - 1 });
    shown.push(sample);
  }
  return shown;
}
