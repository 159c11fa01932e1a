"""The outlook of a stream: past rates, forecast with interval, and expectation with meta-data."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import numpy as np

from algorithms.admission.measured import MeasuredCharacteristics, measured
from algorithms.admission.metadata import StreamMetadata
from algorithms.vocabulary import Floats
from controlplane.catalog.split_reading import reading_of
from controlplane.models import Stream
from controlplane.planners.admission.cluster_forecast import ClusterForecast, cluster_forecast
from controlplane.planners.admission.forecaster import ForecasterChoice, Forecasts, forecasts
from controlplane.planners.admission.observation import input_of_stream, known_periods
from controlplane.planners.admission.problem import Outlook, predictions
from controlplane.telemetry.arrivals import PERIOD_S, history
from controlplane.wire.routing.split_assignment import SplitShares

# Future periods that are shown: two minutes.
HORIZON: Final = 12
# Periods below it are visible in rates of ten seconds only.
SHORT: Final = timedelta(minutes=30)
# The interval of 90 % of normally distributed errors, in standard deviations.
_Z: Final = 1.645


@dataclass(frozen=True)
class RateForecast:
    """Rates of a stream in periods of `seconds`, records/s.

    `starts`, `rates`: past periods, None where the rate is not known; `next_starts`, `forecast`:
    the next ones; `low`, `high`: the interval of 90 %.
    """

    seconds: int
    starts: Sequence[datetime]
    rates: Sequence[float | None]
    next_starts: Sequence[datetime]
    forecast: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


@dataclass(frozen=True)
class StreamOutlook(RateForecast):
    """The next periods of a stream, records/s.

    `expected`: with the characteristics. `choice`: the forecaster. `left`: the rate for which the
    other streams of its split nodes are expected to leave room in the next periods, None: their
    capacity is not known; `others_at`: when the forecast of the other streams was computed.
    """

    expected: Sequence[float]
    choice: ForecasterChoice
    left: Sequence[float] | None
    others_at: datetime

    @property
    def overload_at(self) -> datetime | None:
        """Return the start of the first period in which it is expected to exceed what is left."""
        if self.left is None:
            return None
        rows = zip(self.next_starts, self.expected, self.left, strict=True)
        return next((start for start, rate, left in rows if rate > left), None)


def outlook_of(
    stream: Stream, horizon: int = HORIZON, forecast: ClusterForecast | None = None,
    shares: SplitShares | None = None,
) -> StreamOutlook | None:  # fmt: skip
    """Return the outlook of a stream, None before its first record.

    `forecast`: that of all streams of its cluster, `shares`: which split nodes read them; if they
    were read before.
    """
    shares = reading_of(stream.cluster).shares() if shares is None else shares
    known = history(stream.cluster, known_periods(len(shares)), PERIOD_S, [stream.pk])
    rates = known.of(stream.pk)
    # A cluster that runs measures 0 for a stream before its first record.
    is_silent = stream.rate is None and not (rates > 0).any()
    if is_silent or np.isnan(rates).all():
        return None
    choice = ForecasterChoice.from_json(stream.forecaster)
    result = forecasts(rates[None, :], [choice], horizon)
    low, high = interval_of(result)
    last = known.starts[-1]
    next_starts = [last + timedelta(seconds=known.seconds * k) for k in range(1, horizon + 1)]
    others = forecast or cluster_forecast(stream.cluster)
    left = others.left_for(stream.pk, shares, next_starts)
    expected = predictions(input_of_stream(stream, rates), Outlook(horizon)).expected[0]
    return StreamOutlook(
        seconds=known.seconds,
        starts=known.starts,
        rates=[None if np.isnan(rate) else round(rate, 3) for rate in rates.tolist()],
        next_starts=next_starts,
        forecast=_rounded(result.rates[0]),
        low=low,
        high=high,
        expected=_rounded(expected),
        choice=choice,
        left=None if left is None else _rounded(left),
        others_at=others.computed_at,
    )


def interval_of(result: Forecasts) -> tuple[list[float], list[float]]:
    """Return the lower and upper ends of the interval of 90 % of the first stream, records/s."""
    forecast, spread = result.rates[0], _Z * result.deviations[0]
    return _rounded(np.maximum(forecast - spread, 0.0)), _rounded(forecast + spread)


def measured_characteristics(
    stream: Stream, outlook: StreamOutlook | None = None
) -> MeasuredCharacteristics:
    """Return the characteristics that its past rates of at most an hour show.

    `outlook`: that of the stream, if it was computed before: it has the rates.
    """
    if outlook is not None:
        return measured(np.array(outlook.rates, np.float64), outlook.seconds)
    periods = known_periods(stream.cluster.streams.count())
    known = history(stream.cluster, periods, PERIOD_S, [stream.pk])
    return measured(known.of(stream.pk), known.seconds)


def short_period_s(stream: Stream, outlook: StreamOutlook | None) -> float | None:
    """Return the period of a stream below half an hour, declared or else measured, in seconds.

    None without such a period.
    """
    period_s = StreamMetadata.from_json(stream.characteristics).period_s
    if period_s is None and outlook is not None:
        period_s = measured_characteristics(stream, outlook).metadata.period_s
    return period_s if period_s is not None and period_s < SHORT.total_seconds() else None


def _rounded(values: Floats) -> list[float]:
    result: list[float] = np.round(values, 3).tolist()
    return result
