"""Expected rates: forecasts, corrected by meta-data (sections 2.4 and 2.5)."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final, Self

import numpy as np

from algorithms.admission.metadata import StreamMetadata, Transition
from algorithms.vocabulary import Flags, Floats


@dataclass(frozen=True, eq=False)
class MetadataColumns:
    """The meta-data of s streams by column, float64[s], NaN: unknown; `jumps`, `trends` bool[s]."""

    rate: Floats
    average: Floats
    minimum: Floats
    maximum: Floats
    peak: Floats
    period_s: Floats
    high_s: Floats
    burst_s: Floats
    pause_s: Floats
    jumps: Flags
    trends: Flags

    @classmethod
    def of(cls, streams: Sequence[StreamMetadata]) -> Self:
        """Return the columns of these streams."""
        count = len(streams)
        columns: dict[str, Floats] = {
            field.name: np.full(count, np.nan)
            for field in fields(cls)
            if field.name not in ("jumps", "trends")
        }
        kinds = np.zeros((2, count), np.bool_)
        for place, metadata in enumerate(streams):
            for name, value in metadata.numbers().items():
                columns[name][place] = value
            kinds[0, place] = metadata.transition is Transition.JUMP
            kinds[1, place] = metadata.transition is Transition.TREND
        return cls(**columns, jumps=kinds[0], trends=kinds[1])

    @property
    def repeats(self) -> Flags:
        """Return whether period, minimum and highest rate of each stream are known, bool[s]."""
        return ~np.isnan(self.period_s) & ~np.isnan(self.minimum) & ~np.isnan(self.largest)

    @property
    def largest(self) -> Floats:
        """Return the highest known rate of each stream: its peak, else its maximum."""
        return np.where(np.isnan(self.peak), self.maximum, self.peak)


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a strategy knows of the rates of s streams, in records/s.

    `average` float64[s]: over the last period; `forecast` float64[s, k]: in the next k periods;
    `expected` float64[s, k]: the same with meta-data; `has_metadata` bool[s]: streams whose
    expectation comes from meta-data. `cycle` float64[s, q]: the mean rates in q equal parts of the
    longest declared period from now on, None: no declared period, or not computed.
    """

    average: Floats
    forecast: Floats
    expected: Floats
    has_metadata: Flags
    cycle: Floats | None = None


def expectations(
    history: Floats, forecast: Floats, metadata: MetadataColumns, period_s: float
) -> tuple[Floats, Flags]:
    """Return the expected rates float64[s, k], and bool[s]: those that come from meta-data.

    `history` float64[s, t]: rates of the past periods of `period_s` seconds, oldest first;
    `forecast` float64[s, k]. The first of these that applies to a stream:

    1. it repeats (period, minimum and maximum are known) and the history has its last jump or its
       slope: the rates of the following part of its period;
    2. a jump or a burst, at a time that is not known: the maximum, or the peak, at the end;
    3. its highest rate is known: that rate at the end, the forecast up to it before (section 2.5);
    4. the forecast, between the known minimum and maximum.
    """
    expected = np.clip(
        forecast,
        np.nan_to_num(metadata.minimum, nan=0.0)[:, None],
        np.nan_to_num(metadata.largest, nan=np.inf)[:, None],
    )
    largest = metadata.largest
    known = ~np.isnan(largest)
    expected[known, -1] = largest[known]
    if history.shape[1] < LEAST_HISTORY:
        return expected, known
    starts = np.arange(forecast.shape[1], dtype=np.float64)
    _fill_cycles(expected, history, metadata, _Parts(starts, 1.0, period_s))
    return expected, known


def expected_cycle(
    history: Floats, forecast: Floats, metadata: MetadataColumns, period_s: float
) -> Floats | None:
    """Return the mean rates float64[s, q] in q equal parts of the longest declared period.

    A stream whose declared period and phase are known has the rates of its cycle; another one has
    its declared average, or the last column of `forecast` float64[s, k]. None: no stream declares
    a period, or the history is too short.
    """
    repeats = metadata.repeats
    if not repeats.any() or history.shape[1] < LEAST_HISTORY:
        return None
    length = float(metadata.period_s[repeats].max()) / period_s / CYCLE_PARTS
    average = np.where(np.isnan(metadata.average), forecast[:, -1], metadata.average)
    rates = np.repeat(average[:, None], CYCLE_PARTS, axis=1)
    starts = length * np.arange(CYCLE_PARTS, dtype=np.float64)
    _fill_cycles(rates, history, metadata, _Parts(starts, length, period_s))
    return rates


@dataclass(frozen=True, eq=False)
class _Parts:
    """Parts of the future: float64[q] `starts` from now on and `length`, in periods."""

    starts: Floats
    length: float
    period_s: float


def _fill_cycles(rates: Floats, history: Floats, metadata: MetadataColumns, parts: _Parts) -> None:
    """Write the rates of the parts for the streams whose cycle and phase are known."""
    for rows, rates_of in (
        (metadata.repeats & metadata.jumps, _after_jumps),
        (metadata.repeats & metadata.trends, _along_trends),
    ):
        if rows.any():
            cycle = rates_of(history, metadata, rows, parts)
            places = np.flatnonzero(rows)
            seen = ~np.isnan(cycle[:, 0])
            rates[places[seen]] = cycle[seen]


def _after_jumps(history: Floats, metadata: MetadataColumns, rows: Flags, parts: _Parts) -> Floats:
    """Return the rates of streams that jump to the maximum and back once in each period.

    The rates of the period of the last jump, and of the one before it, give the time of the jump.
    """
    past = history[rows]
    low, high = metadata.minimum[rows], metadata.largest[rows]
    is_high = past >= ((low + high) / 2)[:, None]
    changed = (is_high[:, 1:] != is_high[:, :-1]) & ~np.isnan(past[:, :-1])
    seen = changed.any(axis=1)
    # Complete periods after that of the last jump.
    since = np.argmax(changed[:, ::-1], axis=1)
    row = np.arange(len(past))
    span = np.maximum(high - low, 1e-12)
    rising = is_high[:, -1]
    for place in (past.shape[1] - 1 - since, past.shape[1] - 2 - since):
        share = np.clip((past[row, place] - low) / span, 0.0, 1.0)
        since = since + np.where(rising, share, 1 - share)
    cycle = np.maximum(1.0, metadata.period_s[rows] / parts.period_s)
    high_periods = np.nan_to_num(metadata.high_s[rows] / parts.period_s, nan=0.0)
    high_periods = np.where(high_periods > 0, high_periods, cycle / 2)
    # Times since the start of a cycle, which begins with the high rate.
    first = np.where(rising, 0.0, high_periods) + since
    starts = first[:, None] + parts.starts
    shares = _high_until(starts + parts.length, cycle, high_periods)
    shares = (shares - _high_until(starts, cycle, high_periods)) / parts.length
    rates: Floats = low[:, None] + span[:, None] * shares
    rates[~seen] = np.nan
    return rates


def _high_until(times: Floats, cycle: Floats, high_periods: Floats) -> Floats:
    """Return for how many periods the rate is high from the start of a cycle to each time."""
    cycles, rest = np.divmod(times, cycle[:, None])
    high: Floats = cycles * high_periods[:, None] + np.minimum(rest, high_periods[:, None])
    return high


def _along_trends(history: Floats, metadata: MetadataColumns, rows: Flags, parts: _Parts) -> Floats:
    """Return the rates of streams that rise and fall evenly between minimum and maximum."""
    past = history[rows]
    low, high = metadata.minimum[rows], metadata.largest[rows]
    cycle = np.maximum(2.0, metadata.period_s[rows] / parts.period_s)
    span = np.maximum(high - low, 1e-12)
    fitted = _fitted_places(past, (low + high) / 2, span, cycle)
    place = np.where(np.isnan(fitted), _last_places(past, low, span), fitted)
    # From the middle of the last period to the middle of each part.
    steps = parts.starts + (parts.length + 1) / 2
    places = (place[:, None] + steps / cycle[:, None]) % 1.0
    rates: Floats = low[:, None] + span[:, None] * (1 - np.abs(1 - 2 * places))
    rates[np.isnan(past[:, -1])] = np.nan
    return rates


def _last_places(past: Floats, low: Floats, span: Floats) -> Floats:
    """Return the place in the cycle, from 0 to 1, by the last rate and the last slope."""
    recent = past[:, -min(TREND_PERIODS, past.shape[1]) :]
    steps = np.arange(recent.shape[1]) - (recent.shape[1] - 1) / 2
    spread = float((steps**2).sum())
    slope = recent @ steps / spread if spread else np.zeros(len(recent))
    share = np.clip((past[:, -1] - low) / span, 0.0, 1.0)
    # Half a cycle up, half a cycle down.
    places: Floats = np.where(slope >= 0, share, 2 - share) / 2
    return places


def _fitted_places(past: Floats, middle: Floats, span: Floats, cycle: Floats) -> Floats:
    """Return the place in the cycle by the phase of its first harmonic, NaN: not clear.

    The harmonic of the last whole cycle, or of the last half one: a triangle wave is antisymmetric.
    NaN if the history is shorter, has gaps, or its amplitude is less than half of the declared one.
    """
    cycles, kind = np.unique(cycle, return_inverse=True)
    whole, half = np.round(cycles), np.round(cycles / 2)
    window = np.where(whole <= past.shape[1], whole, np.where(half <= past.shape[1], half, 0))
    longest = int(window.max())
    if longest < 2 * TREND_PERIODS:
        return np.full(len(past), np.nan)
    ages = np.arange(longest - 1, -1, -1)
    turns = np.exp(2j * np.pi * ages / cycles[:, None]) * (ages < window[:, None])
    recent = past[:, -longest:] - middle[:, None]
    sums = np.einsum("st,st->s", np.where(ages < window[kind][:, None], recent, 0.0), turns[kind])
    amplitude = 2 * np.abs(sums) / np.maximum(window[kind], 1)
    clear = amplitude >= span * _FIRST_HARMONIC / 2
    return np.where(clear, np.angle(-sums) / (2 * np.pi), np.nan)


# The amplitude of the first harmonic of a triangle wave from 0 to 1.
_FIRST_HARMONIC: Final = 4 / np.pi**2
# The last rates whose slope gives the direction of a trend.
TREND_PERIODS: Final = 3
# Fewer rates show neither a jump nor a slope.
LEAST_HISTORY: Final = 2
# Parts of the longest declared period.
CYCLE_PARTS: Final = 16
