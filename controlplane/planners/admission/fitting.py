"""Fitting: the forecaster of each stream, chosen by back-testing on its past rates."""

import time
from datetime import datetime, timedelta
from typing import Final

import numpy as np
from django.db.models import F, Q

from algorithms.admission.forecasting.fit import fitted_factors
from algorithms.admission.forecasting.holt import HoltState, smoothed
from algorithms.admission.forecasting.selection import Start, choose, naive, seasonal
from algorithms.admission.metadata import StreamMetadata
from algorithms.vocabulary import Floats
from controlplane.models import Cluster, Stream
from controlplane.planners.admission.forecaster import HOLT, NAIVE, SEASONAL, ForecasterChoice
from controlplane.planners.admission.problem import Outlook
from controlplane.telemetry.arrivals import PERIOD_S, history

# Rates that a fit takes into account, the least it needs, and those that are forecast again.
PERIODS: Final = 180
LEAST: Final = 30
TESTED: Final = 12
# A choice is made again after this.
KEPT: Final = timedelta(minutes=10)
# One run fits so many streams of a cluster, and ends after so many seconds; the next continues.
STREAMS: Final = 100
LONGEST_S: Final = 20.0


def fit_forecasters(now: datetime) -> int:
    """Choose the forecasters whose choice is oldest; return how many."""
    started = time.monotonic()
    fitted = 0
    for cluster in Cluster.objects.filter(desired=Cluster.Desired.RUNNING):
        due = Stream.objects.filter(cluster=cluster).filter(
            Q(fitted_at=None) | Q(fitted_at__lt=now - KEPT)
        )
        streams = list(due.order_by(F("fitted_at").asc(nulls_first=True), "id")[:STREAMS])
        if streams:
            fitted += _fit(cluster, streams, now, started + LONGEST_S)
        if time.monotonic() > started + LONGEST_S:
            break
    return fitted


def _fit(cluster: Cluster, streams: list[Stream], now: datetime, end: float) -> int:
    """Fit the streams until a moment of the monotonic clock; return how many were fitted."""
    known = history(cluster, PERIODS, PERIOD_S, [stream.pk for stream in streams])
    choices = 0
    for tried, stream in enumerate(streams):
        if time.monotonic() > end:
            streams = streams[:tried]
            break
        rates = known.of(stream.pk)
        rates = rates[~np.isnan(rates)]
        stream.fitted_at = now
        if len(rates) >= LEAST:
            metadata = StreamMetadata.from_json(stream.characteristics)
            stream.forecaster = chosen(rates, metadata.period_s).to_json()
            choices += 1
    Stream.objects.bulk_update(streams, ["forecaster", "fitted_at"], batch_size=100)
    return choices


def chosen(rates: Floats, period_s: float | None) -> ForecasterChoice:
    """Return the best method for past rates float64[t] of periods of ten seconds.

    The factors are fitted to the rates before those that are forecast again, so that the comparison
    is fair. `period_s`: the known period of the stream, for the seasonal method.
    """
    row = rates[None, :]
    alpha, gamma = fitted_factors(row[:, :-TESTED])

    def holt(rates: Floats) -> HoltState:
        return smoothed(rates, alpha, gamma)

    methods: dict[str, Start] = {HOLT: holt, NAIVE: naive}
    season = _season(period_s, len(rates))
    if season:
        methods[SEASONAL] = seasonal(season)
    best, errors = choose(row, methods, Outlook().horizon, TESTED)
    place = int(best[0])
    return ForecasterChoice(
        list(methods)[place], round(float(alpha[0]), 6), round(float(gamma[0]), 6), season,
        round(float(errors[place, 0]), 6),
    )  # fmt: skip


def _season(period_s: float | None, rates: int) -> int:
    """Return the periods of a season, 0 if it is not known or there are not two in the history."""
    if period_s is None:
        return 0
    season = round(period_s / PERIOD_S)
    return season if season > 1 and 2 * season + TESTED <= rates else 0
