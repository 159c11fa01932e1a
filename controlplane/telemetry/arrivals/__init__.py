"""Arrivals of streams: the only measure of rates, and what shows an outage instead of a load."""

from controlplane.telemetry.arrivals.lags import LagPoint, lag_of, lags, newest_lags
from controlplane.telemetry.arrivals.periods import (
    PERIOD_S,
    ArrivalInterval,
    count,
    counted_until,
    intervals,
    period_of,
)
from controlplane.telemetry.arrivals.rates import (
    RateHistory,
    fitting_period,
    history,
    rates_between,
)
