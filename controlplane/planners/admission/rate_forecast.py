"""Past rates of a stream and the forecast of the next ones, as near and long outlooks have them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime


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
