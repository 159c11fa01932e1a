"""The long outlook of a stream: past hours, and the forecast of its next three periods."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from math import erfc, sqrt
from typing import Final

import numpy as np

from algorithms.admission.measured import LEAST, period_of
from algorithms.admission.metadata import StreamMetadata
from algorithms.vocabulary import Floats
from controlplane.models import Stream
from controlplane.planners.admission.forecaster import (
    SEASONAL,
    ForecasterChoice,
    Forecasts,
    forecasts,
)
from controlplane.planners.admission.outlook import (
    RateForecast,
    StreamOutlook,
    interval_of,
    short_period_s,
)
from controlplane.telemetry.arrivals import RateHistory, history
from controlplane.telemetry.series import stored

_FIVE_MINUTES: Final = 300
_HOUR: Final = 3600
# The periods of a stream that are forecast, and the time ahead without a known period.
PERIODS_AHEAD: Final = 3
AHEAD: Final = 12
# Past means of five minutes that are drawn: six hours, or two periods of the stream.
DRAWN: Final = 72
# Means that a forecast takes into account: two days of five minutes, thirty days of hours.
_KNOWN: Final = {_FIVE_MINUTES: 576, _HOUR: 720}
# A period, and the history of any forecast, has at least so many means of five minutes.
_LEAST_MEANS: Final = 6
NEEDED: Final = timedelta(seconds=_LEAST_MEANS * _FIVE_MINUTES)
# From this length on, the means of a period are hours.
_LONG: Final = timedelta(hours=4)
# The part of a history that may be missing.
_MISSING: Final = 0.1


@dataclass(frozen=True)
class PeakChance:
    """The largest forecast of one period, and the chance that the rate exceeds what is left."""

    time: datetime
    rate: float
    chance: float | None


@dataclass(frozen=True)
class LongOutlook(RateForecast):
    """Means of a stream's rate over `seconds` each, and the forecast of the next ones.

    `left`: what the other streams of its split node are expected to leave of its capacity, None if
    the capacity is not known. `period_s`: the declared or measured period of the stream, None
    without one; `ahead`: the periods that are forecast, 0 if the history is too short for seasons:
    then the forecast is that of an hour. `error`: the median relative error of the forecast that
    would have been made as long ago, None if it is not known.
    """

    left: float | None
    period_s: float | None = None
    ahead: int = 0
    error: float | None = None
    peaks: Sequence[PeakChance] = ()

    @property
    def overload_at(self) -> datetime | None:
        """Return the start of the first mean of the next period whose forecast exceeds `left`."""
        if self.left is None:
            return None
        soon = len(self.forecast) // (self.ahead or 1)
        rows = zip(self.next_starts[:soon], self.forecast[:soon], strict=True)
        return next((start for start, rate in rows if rate > (self.left or 0.0)), None)


@dataclass(frozen=True)
class _Means:
    """The known means of a stream, and the means in one of its periods, 0 without seasons."""

    known: RateHistory
    rates: Floats
    season: int = 0

    @property
    def horizon(self) -> int:
        """Return the number of means that are forecast."""
        return PERIODS_AHEAD * self.season or AHEAD

    def forecasts(self, back: int = 0) -> Forecasts:
        """Return the forecast after all means but the newest `back` ones."""
        known = self.rates[: len(self.rates) - back]
        choice = ForecasterChoice(SEASONAL, season=self.season) if self.season else None
        return forecasts(known[None, :], [choice or ForecasterChoice()], self.horizon)


def long_outlook_of(stream: Stream, outlook: StreamOutlook | None) -> LongOutlook | None:
    """Return the outlook of the next periods, None until means of `NEEDED` are known.

    `outlook`: of the next two minutes; it has what the other streams leave.
    """
    rows = stored([stream.cluster_id], ["stream"], _FIVE_MINUTES)
    newest = rows.order_by("-t").values_list("t", flat=True).first()
    # Means of five minutes show a wrong period where the real one is shorter.
    known_s = StreamMetadata.from_json(stream.characteristics).period_s
    known_s = known_s or short_period_s(stream, outlook)
    computed = newest and _computed(stream, stream.created_at, newest, known_s)
    if not computed:
        return None
    means, result = computed.means, computed.result
    low, high = interval_of(result)
    step = timedelta(seconds=means.known.seconds)
    next_starts = [means.known.starts[-1] + step * k for k in range(1, means.horizon + 1)]
    left = None if outlook is None or outlook.left is None else min(outlook.left)
    drawn = max(DRAWN * _FIVE_MINUTES // means.known.seconds, 2 * means.season)
    shown = means.known.of(stream.pk)[-drawn:]
    return LongOutlook(
        seconds=means.known.seconds,
        starts=means.known.starts[-drawn:],
        rates=[None if np.isnan(rate) else round(rate, 3) for rate in shown.tolist()],
        next_starts=next_starts,
        forecast=np.round(result.rates[0], 3).tolist(),
        low=low,
        high=high,
        left=left,
        period_s=computed.period_s,
        ahead=PERIODS_AHEAD if means.season else 0,
        error=computed.error,
        peaks=_peaks(result, next_starts, means.season, left),
    )


@dataclass(frozen=True)
class _Computed:
    """What changes only with another mean of five minutes."""

    means: _Means
    result: Forecasts
    period_s: float | None
    error: float | None


@lru_cache(maxsize=64)
def _computed(
    stream: Stream, created_at: datetime, newest: datetime, known_s: float | None
) -> _Computed | None:
    """Return the forecast, None with too few means; the arguments are the key of the cache.

    `newest`: the start of the newest mean of five minutes; `known_s`: the declared period, or a
    short measured one.
    """
    known, rates = _history(stream, _FIVE_MINUTES)
    if np.count_nonzero(~np.isnan(rates)) < _LEAST_MEANS:
        return None
    period_s = known_s or _measured_period_s(rates)
    means = _means(stream, known, rates, period_s)
    return _Computed(means, means.forecasts(), period_s, _error(means))


def _history(stream: Stream, seconds: int) -> tuple[RateHistory, Floats]:
    """Return the newest means of a stream, and its rates with short gaps filled."""
    known = history(stream.cluster, _KNOWN[seconds], seconds, [stream.pk])
    return known, known.of(stream.pk)


def _filled(rates: Floats) -> Floats:
    """Return the rates from the first known one on, gaps interpolated; empty with many gaps."""
    places = np.flatnonzero(~np.isnan(rates))
    if not len(places):
        return rates[:0]
    rates = rates[int(places[0]) :]
    known = ~np.isnan(rates)
    if float(known.mean()) < 1 - _MISSING:
        return rates[:0]
    filled: Floats = np.interp(np.arange(len(rates)), np.flatnonzero(known), rates[known])
    return filled


def _measured_period_s(rates: Floats) -> float | None:
    """Return the period in seconds that means of five minutes show, None without one."""
    filled = _filled(rates)
    if len(filled) < LEAST:
        return None
    return period_of(filled)[0] * float(_FIVE_MINUTES) or None


def _means(stream: Stream, known: RateHistory, rates: Floats, period_s: float | None) -> _Means:
    """Return the means that show the period of a stream; without seasons those of five minutes."""
    present = _Means(known, rates)
    if not period_s or period_s < _LEAST_MEANS * _FIVE_MINUTES:
        return present
    kinds = [(known, rates)]
    if period_s >= _LONG.total_seconds():
        kinds.insert(0, _history(stream, _HOUR))
    for row, values in kinds:
        season, filled = round(period_s / row.seconds), _filled(values)
        if len(filled) >= 2 * season:
            return _Means(row, filled, season)
    return present


def _error(means: _Means) -> float | None:
    """Return the median relative error of the forecast that ends with the newest mean."""
    back = means.horizon
    if len(means.rates) - back < max(2 * means.season, LEAST):
        return None
    actual = means.rates[len(means.rates) - back :]
    known = actual > 0
    if not known.any():
        return None
    errors = np.abs(means.forecasts(back).rates[0] - actual)[known] / actual[known]
    return round(float(np.median(errors)), 4)


def _peaks(
    result: Forecasts, starts: Sequence[datetime], season: int, left: float | None
) -> list[PeakChance]:
    """Return the largest forecast of each period; none without seasons."""
    peaks = []
    for first in range(0, PERIODS_AHEAD * season, season or 1):
        place = first + int(result.rates[0, first : first + season].argmax())
        rate, deviation = float(result.rates[0, place]), float(result.deviations[0, place])
        chance = None if left is None else _chance(rate, deviation, left)
        peaks.append(PeakChance(starts[place], round(rate, 3), chance))
    return peaks


def _chance(rate: float, deviation: float, limit: float) -> float:
    """Return the chance that a normally distributed rate exceeds a limit."""
    if deviation <= 0:
        return float(rate > limit)
    return round(0.5 * erfc((limit - rate) / (deviation * sqrt(2))), 4)
