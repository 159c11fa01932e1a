"""Rises of most streams together, beside changes of single ones."""

from datetime import UTC, datetime, timedelta

import numpy as np

from controlplane.explain.causes.stream_rises import StreamRises
from controlplane.telemetry.arrivals import PERIOD_S, RateHistory

PERIODS, STREAMS = 180, 40
START = datetime(2026, 5, 4, 8, 0, tzinfo=UTC)


def test_a_rise_of_all_streams_is_found_after_that_of_one_alone() -> None:
    """A key was hot for three minutes; then all streams have three times as many records."""
    rates = np.random.default_rng(3).poisson(20, (STREAMS, PERIODS)) / PERIOD_S
    rates[7, 140:158] += 150
    rates[:, 170:] *= 3
    starts = [START + timedelta(seconds=PERIOD_S * place) for place in range(PERIODS)]
    measured_s = np.full(PERIODS, float(PERIOD_S))
    known = RateHistory(PERIOD_S, np.arange(STREAMS), rates, starts, measured_s)
    rises = StreamRises.of(known, {})
    assert rises.common is not None
    assert rises.common.time == starts[170]
    assert 2.5 < rises.common.factor < 3.5
    assert rises.common.risen.sum() >= STREAMS - 1
