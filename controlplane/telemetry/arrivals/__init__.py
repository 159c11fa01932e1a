"""Arrivals of streams: the only measure of rates, and what shows an outage instead of a load."""

from controlplane.telemetry.arrivals.lags import LagPoint, lag_of, lags
from controlplane.telemetry.arrivals.periods import (
    KEPT,
    LONGEST,
    PERIOD_S,
    ArrivalInterval,
    RateHistory,
    count,
    fitting_period,
    forget_future,
    history,
    intervals,
    prune,
    rates_between,
    roll_up,
    start_of,
)

__all__ = [
    "KEPT",
    "LONGEST",
    "PERIOD_S",
    "ArrivalInterval",
    "LagPoint",
    "RateHistory",
    "count",
    "fitting_period",
    "forget_future",
    "history",
    "intervals",
    "lag_of",
    "lags",
    "prune",
    "rates_between",
    "roll_up",
    "start_of",
]
