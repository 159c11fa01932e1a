"""The laws of numbers on stored series that are not those of the demonstration."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from django.test import Client

from controlplane.models import Cluster, SeriesPeriod
from controlplane.telemetry import series
from controlplane.telemetry.samples import PreviousBatch, moment_of, sample_of
from controlplane.telemetry.time_series import record
from tests.support.number_laws import NumberLaws, assert_parts_add_up

NODES, SPLITS = 4, 2
BY_NIGHT = pytest.mark.nightly("pages")


def rows_of(rates: Any, seed: int, end: datetime) -> list[tuple[dict[str, Any], float]]:
    """Return telemetry rows of micro-batches of 0.5 to 3 s up to `end`, with their seconds."""
    draw = np.random.default_rng(seed)
    lengths = draw.uniform(0.5, 3, len(rates))
    rows, at = [], end.timestamp() - float(lengths.sum()) - 0.05
    for rate, seconds in zip(rates.tolist(), lengths.tolist(), strict=True):
        at += seconds
        streams = draw.poisson(1 + rate * draw.dirichlet(np.ones(3)) * seconds)
        loads = draw.poisson(streams[:2].sum() * draw.uniform(0.2, 0.6, NODES))
        row = {
            "emitted_ms": round(1000 * at), "in": int(streams.sum()),
            "read": int(streams[:2].sum()),
            "streams": {str(i): int(n) for i, n in enumerate(streams)},
            "delivered": int(loads.sum()), "version": 1,
            "nodes": [{"node": i, "loads": int(n)} for i, n in enumerate(loads)],
            "splits": [{"split": i, "split_loads": int(streams[i::SPLITS].sum())}
                       for i in range(SPLITS)],
            "dropped": {"0": int(streams[0] // 3)}, "ladder_dropped": {"1>9": int(streams[1])},
            "latency": {"p50": 10.0, "p95": float(draw.uniform(100, 9_000)), "p99": 9e3},
        }  # fmt: skip
        rows.append((row, seconds))
    return rows


# A burst of a hundred times the usual rate, a slow wave, and hardly any record.
RATES = {
    "burst": np.where(np.arange(300) % 50 < 5, 50_000.0, 500.0),
    "wave": 1_000 * (1.2 + np.sin(np.arange(300) / 20)),
    "sparse": np.full(300, 2.0),
}


@pytest.mark.parametrize(
    "name",
    ["burst", pytest.param("wave", marks=BY_NIGHT), pytest.param("sparse", marks=BY_NIGHT)],
)
def test_laws_hold_for_any_rates(operating: Client, sf: Cluster, name: str) -> None:
    """Of batches of which older ones are rolled up; records arrive later than they are read."""
    end = datetime.fromtimestamp(datetime.now(UTC).timestamp() // 10 * 10, UTC)
    samples, emitted_ms = [], None
    for row, seconds in rows_of(RATES[name], len(name), end):
        before = PreviousBatch(emitted_ms, 1_000, 1.0, 0.9 * row["in"] / seconds)
        samples.append(sample_of(row, before, [500.0] * NODES))
        emitted_ms = row["emitted_ms"]
    SeriesPeriod.objects.filter(cluster=sf).delete()
    record(sf, samples)
    series.roll_up(end)
    newest = moment_of(samples[-1]["t"])
    Cluster.objects.filter(pk=sf.pk).update(last_sample_at=newest)

    def text(path: str) -> str:
        answer = operating.get(path)
        assert answer.status_code == 200, (path, answer.content)
        return answer.content.decode()

    laws = NumberLaws(text)
    assert_parts_add_up(laws.samples(end - timedelta(minutes=9), end))
    for minutes in (0, 1, 5):
        stop = end - timedelta(minutes=minutes)
        laws.assert_window_has_one_value(stop - timedelta(seconds=60), stop)
    assert laws.assert_newest_sample_is_the_same()
    assert any(laws.differences() == set() for _ in range(5)), "a window of now may move"
