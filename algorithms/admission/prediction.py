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
    def largest(self) -> Floats:
        """Return the highest known rate of each stream: its peak, else its maximum."""
        return np.where(np.isnan(self.peak), self.maximum, self.peak)


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a strategy knows of the rates of s streams, in records/s.

    `average` float64[s]: over the last period; `forecast` float64[s, k]: in the next k periods;
    `expected` float64[s, k]: the same with meta-data; `has_metadata` bool[s]: streams whose
    expectation comes from meta-data.
    """

    average: Floats
    forecast: Floats
    expected: Floats
    has_metadata: Flags


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
    repeats = ~np.isnan(metadata.period_s) & ~np.isnan(metadata.minimum) & ~np.isnan(largest)
    for rows, rates_of in (
        (repeats & metadata.jumps, _after_jumps),
        (repeats & metadata.trends, _along_trends),
    ):
        if rows.any():
            _fill(expected, rows, rates_of(history, metadata, rows, forecast.shape[1], period_s))
    return expected, known


def _fill(expected: Floats, rows: Flags, rates: Floats) -> None:
    """Write the rates of these rows; NaN where the history does not have the phase."""
    places = np.flatnonzero(rows)
    seen = ~np.isnan(rates[:, 0])
    expected[places[seen]] = rates[seen]


def _after_jumps(
    history: Floats, metadata: MetadataColumns, rows: Flags, horizon: int, period_s: float
) -> Floats:
    """Return the rates of streams that jump to the maximum and back once in each period."""
    past = history[rows]
    low, high = metadata.minimum[rows], metadata.largest[rows]
    is_high = past >= ((low + high) / 2)[:, None]
    changed = (is_high[:, 1:] != is_high[:, :-1]) & ~np.isnan(past[:, :-1])
    seen = changed.any(axis=1)
    # Periods since the last jump, the present one included.
    since = np.argmax(changed[:, ::-1], axis=1) + 1
    cycle = np.maximum(1.0, metadata.period_s[rows] / period_s)
    high_periods = np.nan_to_num(metadata.high_s[rows] / period_s, nan=0.0)
    high_periods = np.where(high_periods > 0, high_periods, cycle / 2)
    # Places in the cycle, which begins with the high rate.
    first = np.where(is_high[:, -1], 0.0, high_periods) + since
    places = (first[:, None] + np.arange(horizon)) % cycle[:, None]
    rates = np.where(places < high_periods[:, None], high[:, None], low[:, None])
    rates[~seen] = np.nan
    return rates


def _along_trends(
    history: Floats, metadata: MetadataColumns, rows: Flags, horizon: int, period_s: float
) -> Floats:
    """Return the rates of streams that rise and fall evenly between minimum and maximum."""
    past = history[rows]
    low, high = metadata.minimum[rows], metadata.largest[rows]
    cycle = np.maximum(2.0, metadata.period_s[rows] / period_s)
    span = np.maximum(high - low, 1e-12)
    recent = past[:, -min(TREND_PERIODS, past.shape[1]) :]
    steps = np.arange(recent.shape[1]) - (recent.shape[1] - 1) / 2
    spread = float((steps**2).sum())
    slope = recent @ steps / spread if spread else np.zeros(len(recent))
    # Half a cycle up, half a cycle down: the place where the last rate is, by its direction.
    share = np.clip((past[:, -1] - low) / span, 0.0, 1.0)
    rising = slope >= 0
    place = np.where(rising, share, 2 - share) * cycle / 2
    places = (place[:, None] + np.arange(1, horizon + 1)) % cycle[:, None]
    shares = 1 - np.abs(1 - places / (cycle[:, None] / 2))
    rates: Floats = low[:, None] + span[:, None] * shares
    rates[np.isnan(past[:, -1])] = np.nan
    return rates


# The last rates whose slope gives the direction of a trend.
TREND_PERIODS: Final = 3
# Fewer rates show neither a jump nor a slope.
LEAST_HISTORY: Final = 2
