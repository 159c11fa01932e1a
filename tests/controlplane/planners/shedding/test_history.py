"""Intervals in which a ladder dropped records, from telemetry rows."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from controlplane.background import ingestion
from controlplane.models import Cluster, SheddingInterval
from controlplane.planners.shedding import history
from controlplane.planners.shedding.history import intervals, prune_intervals, totals
from tests.support.cluster import telemetry

pytestmark = pytest.mark.django_db(transaction=True)


def ingest(cluster: Cluster, start: datetime, *rows: dict[str, Any]) -> None:
    """Store a row per second from `start` on."""
    first_ms = round(start.timestamp() * 1000)
    for number, changed in enumerate(rows):
        row = telemetry(number, first_ms + 1000 * number, **changed)
        ingestion.record(cluster, [row])


def at(position: float, **dropped: int) -> dict[str, Any]:
    edges = {name.removeprefix("e").replace("_", ">"): n for name, n in dropped.items()}
    return {"ladder_position": position, "ladder_dropped": edges, "streams": {"1": 50}}


def test_an_interval_lasts_as_long_as_its_rung(
    sf: Cluster, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "SHORTEST", timedelta(0))
    start = now - timedelta(seconds=30)
    ingest(
        sf, start, at(0.0), at(0.5, e1=10), at(1.0, e1=20, e1_7=5), at(1.5, e1_7=9), at(0.0),
        {"ladder_position": None},
    )  # fmt: skip
    second, first = intervals(sf, start, now)
    assert (first.rung, first.position, first.dropped, first.read) == (1, 1.0, 30, 160)
    assert first.by_edge == [[1, 0, 30], [1, 7, 5]]
    assert first.by_stream == [[1, 100]]
    assert (first.ended_at - first.started_at).total_seconds() == 2
    assert (second.rung, second.dropped) == (2, 9)
    assert second.started_at == first.ended_at
    assert totals([first, second]) == {"seconds": 3.0, "read": 240, "dropped": 39, "rung": 2}


def test_neighbouring_rungs_of_ten_seconds_are_one_interval(sf: Cluster, now: datetime) -> None:
    rows = [at(0.9 + 0.2 * (number % 2), e1=1) for number in range(8)]
    ingest(sf, now - timedelta(seconds=20), *rows)
    (row,) = intervals(sf, now - timedelta(hours=1), now)
    assert (row.rung, row.position, row.dropped) == (2, 1.1, 8)


def test_a_pause_ends_an_interval(sf: Cluster, now: datetime) -> None:
    ingest(sf, now - timedelta(minutes=9), at(1.0, e1=1), at(1.0, e1=2))
    ingest(sf, now - timedelta(minutes=2), at(1.0, e1=4))
    rows = intervals(sf, now - timedelta(hours=1), now)
    assert [row.dropped for row in rows] == [4, 3]
    assert intervals(sf, now - timedelta(minutes=3), now) == rows[:1]


def test_windows_may_drop_after_the_position_fell(sf: Cluster, now: datetime) -> None:
    ingest(sf, now - timedelta(seconds=9), at(0.4, e1=1), at(0.0, e1=3))
    (row,) = SheddingInterval.objects.all()
    assert (row.rung, row.dropped) == (1, 4)


def test_the_records_of_each_stream_are_added(sf: Cluster, now: datetime) -> None:
    rows = [at(0.5, e1=10) | {"streams": {"1": 50, "2": 30, "3": 0}} for _ in range(2)]
    ingest(sf, now - timedelta(seconds=9), *rows, at(0.0) | {"streams": {"1": 80}})
    (row,) = SheddingInterval.objects.all()
    assert row.by_stream == [[1, 100], [2, 60]]


def test_old_intervals_are_deleted(sf: Cluster, now: datetime) -> None:
    ingest(sf, now - timedelta(seconds=9), at(1.0, e1=1))
    assert prune_intervals(now) == 0
    assert prune_intervals(now + timedelta(days=91)) == 1
