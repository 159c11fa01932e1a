"""The outlook of a stream: past rates, forecast with interval, and expectation with meta-data."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import numpy as np

from algorithms.vocabulary import Floats
from controlplane.arrivals import PERIOD_S, history
from controlplane.models import Stream
from controlplane.planning.admission.forecaster import ForecasterChoice, forecasts
from controlplane.planning.admission.observation import read_input
from controlplane.planning.admission.problem import Outlook, predictions

# Past rates that are shown: an hour. Future ones: two minutes.
SHOWN: Final = 360
HORIZON: Final = 12
# The interval of 90 % of normally distributed errors, in standard deviations.
_Z: Final = 1.645


@dataclass(frozen=True)
class StreamOutlook:
    """Rates of a stream in records/s.

    `starts`, `rates`: past periods of `seconds`, None: not known; `next_starts`, `forecast`, `low`,
    `high`: the next periods and the interval of 90 %; `expected`: with meta-data. `choice`: the
    forecaster.
    """

    seconds: int
    starts: Sequence[datetime]
    rates: Sequence[float | None]
    next_starts: Sequence[datetime]
    forecast: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    expected: Sequence[float]
    choice: ForecasterChoice


def outlook_of(stream: Stream, horizon: int = HORIZON) -> StreamOutlook | None:
    """Return the outlook of a stream, None before its first record."""
    known = history(stream.cluster, SHOWN, PERIOD_S, [stream.pk])
    rates = known.of(stream.pk) if known.rates.size else np.zeros(0)
    if np.isnan(rates).all():
        return None
    choice = ForecasterChoice.from_json(stream.forecaster)
    result = forecasts(rates[None, :], [choice], horizon)
    forecast, spread = result.rates[0], _Z * result.deviations[0]
    last = known.starts[-1]
    return StreamOutlook(
        seconds=known.seconds,
        starts=known.starts,
        rates=[None if np.isnan(rate) else round(rate, 3) for rate in rates.tolist()],
        next_starts=[last + timedelta(seconds=known.seconds * k) for k in range(1, horizon + 1)],
        forecast=_rounded(forecast),
        low=_rounded(np.maximum(forecast - spread, 0.0)),
        high=_rounded(forecast + spread),
        expected=_rounded(_expected(stream, horizon)),
        choice=choice,
    )


def _expected(stream: Stream, horizon: int) -> Floats:
    given = read_input(stream.cluster, only=stream.pk)
    rates: Floats = predictions(given, Outlook(horizon)).expected[0]
    return rates


def _rounded(values: Floats) -> list[float]:
    result: list[float] = np.round(values, 3).tolist()
    return result
