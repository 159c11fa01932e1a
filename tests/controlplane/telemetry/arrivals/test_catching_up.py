"""Catching up after an outage is taken for no load."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controlplane.background import ingestion
from controlplane.models import Cluster, SeriesPeriod
from controlplane.policies.settings import PolicySettings
from controlplane.telemetry.arrivals.catching_up import SERIES, catching_up, input_share, waited
from controlplane.telemetry.grid import Grid
from controlplane.telemetry.samples import PreviousBatch, sample_of
from controlplane.watch.cycle import watch_cluster
from controlplane.watch.decision import Situation, decide
from controlplane.watch.reading import LoopReading
from tests.support.cluster import telemetry
from tests.support.series import all_samples, grid_of_samples
from tests.support.watching import measured, newest

TRIGGER_MS = 1000
MEASURED_LOOPS = ("overload", "latency", "imbalance", "replication", "admission")


def sample(arrived: float | None, read: float, span_s: float = 1.0) -> dict[str, Any]:
    known = {"arrived": arrived, "in": read, "span_s": span_s, "loads": [read, 2 * read]}
    return known | {"waiting": 0, "delivered": 3 * read}


def queue(*waiting: float) -> list[dict[str, Any]]:
    """Return samples with so many records that wait at nodes."""
    return [sample(100.0, 100.0) | {"waiting": records} for records in waiting]


def batches(samples: Sequence[dict[str, Any]]) -> Grid:
    return grid_of_samples((*SERIES, "loads"), samples)


STEADY = [sample(100.0, 100.0)] * 20
BACKLOG = [*[sample(100.0, 100.0)] * 10, *[sample(100.0, 400.0)] * 10]


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([], None),
        (STEADY, None),
        # An outage of a minute.
        ([*STEADY, sample(100.0, 5.0, 60.0)], (60.0, True)),
        (BACKLOG, (30.0, False)),
        # It reads less than arrives: an overload, which the loops have to see.
        ([sample(400.0, 100.0)] * 20, None),
        # What two slow batches leave behind.
        ([*STEADY, sample(100.0, 300.0, 2.0)], None),
        # Nodes work off what waits at them for ten seconds; also after it had grown.
        (queue(*range(6000, 2990, -100)), (10.0, False)),
        (queue(*range(0, 9000, 300), *range(9000, 5900, -100)), (20.0, False)),
        # Less than a long batch leaves; more and more; and not within ten minutes.
        (queue(*range(1200, 600, -20)), None),
        (queue(*range(3000, 6000, 100)), None),
        (queue(*range(6000, 5970, -1)), None),
        # How many records arrived is not known.
        ([sample(None, 400.0)] * 20, None),
    ],
)
def test_outages_and_backlogs_are_recognized(
    samples: Sequence[dict[str, Any]], expected: tuple[float, bool] | None
) -> None:
    known = catching_up(batches(samples), TRIGGER_MS)
    assert (None if known is None else (known.seconds, known.outage)) == expected


def test_loads_are_those_of_arriving_records() -> None:
    assert batches([STEADY[0], BACKLOG[-1]]).loads[:, 1].tolist() == [200.0, 200.0]
    assert batches([sample(None, 50.0)]).loads[0, 0] == 50.0
    assert input_share(batches(BACKLOG)) == pytest.approx(2000 / 5000)
    # Over the whole outage, rates of reading and of arrival are equal.
    outage = batches([sample(100.0, 0.0, 30.0), sample(100.0, 400.0, 10.0)])
    assert input_share(outage) == 1.0


def test_no_plan_is_requested_while_a_backlog_is_worked_off() -> None:
    reading = LoopReading(0.9, 0.2, "Imbalance 90 %", trouble=True)
    now = datetime(2026, 3, 1, tzinfo=UTC)
    situation = Situation(
        runs=True,
        age_s=1.0,
        trigger_ms=TRIGGER_MS,
        catching_up=catching_up(batches(BACKLOG), TRIGGER_MS),
    )
    policy = PolicySettings(watch="act")
    assert decide(reading, situation, policy, "balanced", now).code == "catching_up"
    steady = Situation(
        runs=True,
        age_s=1.0,
        trigger_ms=TRIGGER_MS,
        catching_up=catching_up(batches(STEADY), TRIGGER_MS),
    )
    assert decide(reading, steady, policy, "balanced", now).code == "asked"


@pytest.mark.django_db
def test_the_loops_of_a_cluster_wait_until_it_has_caught_up(sf: Cluster) -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    Cluster.objects.update(desired="running")
    sf.refresh_from_db()
    measured(sf, now, arrived=100.0, p95=60_000.0, span_s=1.0, **{"in": 400.0})
    watch_cluster(sf, now)
    assert {newest(sf, loop).code for loop in MEASURED_LOOPS} == {"catching_up"}
    # Tasks on an inactive node do not depend on rates.
    assert newest(sf, "node lost").code != "catching_up"
    SeriesPeriod.objects.all().delete()
    later = now + timedelta(minutes=2)
    measured(sf, later, arrived=100.0, p95=60_000.0, span_s=1.0, **{"in": 100.0})
    watch_cluster(sf, later)
    assert newest(sf, "latency").code not in ("catching_up", "within")


def test_a_clock_that_is_set_back_makes_no_rate() -> None:
    """Not all records of the batch in a twentieth of a second."""
    row = telemetry(2, 5_000)
    ahead = sample_of(row, PreviousBatch(3_600_000, 2_000), [500.0, 500.0])
    assert (ahead["span_s"], ahead["in"]) == (2.0, 50.0)


def test_the_records_of_the_first_batch_came_while_the_oldest_ones_waited() -> None:
    """Not all of them in one trigger, which made an imbalance of several hundred percent."""
    row = telemetry(2, 5_000) | {"latency": {"n": 9, "p50": 9e3, "p95": 19e3, "p99": 20e3}}
    first = sample_of(row, PreviousBatch(None, 2_000), [500.0, 500.0])
    assert (first["span_s"], first["in"]) == (20.0, 5.0)
    row["latency"]["p99"] = 86_400e3
    old = sample_of(row, PreviousBatch(None, 2_000), [500.0, 500.0])
    assert (old["span_s"], old["in"]) == (60.0, pytest.approx(100 / 60))


def test_records_that_waited_show_no_load() -> None:
    """Those of the first batch, whose arrival is not known, and those of a minute's outage."""
    grid = batches([sample(None, 400.0), sample(100.0, 100.0), sample(100.0, 5.0, 60.0)])
    assert waited(grid, TRIGGER_MS).tolist() == [True, False, True]
    assert waited(grid, TRIGGER_MS, seconds=60).tolist() == [True, False, False]


@pytest.mark.django_db
def test_samples_of_a_clock_that_ran_ahead_are_deleted(sf: Cluster) -> None:
    now_ms = round(datetime.now(UTC).timestamp() * 1000)
    ingestion.record(sf, [telemetry(1, now_ms + 3_600_000)])
    (sample_,) = ingestion.record(sf, [telemetry(2, now_ms)])
    assert sample_["span_s"] == sf.trigger_ms / 1000
    assert len(all_samples(sf)) == 1
