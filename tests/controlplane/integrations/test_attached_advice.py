"""An attached job sees what to change in its partitions, its state and its watermark."""

import random
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

import pytest
from django.urls import reverse
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from controlplane.access.roles import Actor
from controlplane.integrations import attached_jobs
from controlplane.integrations.attached_advice import BATCHES, SKEWED_BATCHES, skewed
from controlplane.integrations.attached_reports import ReportIn
from controlplane.models import AttachedQuery
from tests.controlplane.api.callers import get, scripted
from tests.dashboard.conftest import browser_of
from tests.support.attached import event, message, progress_event, spark_progress

NONE: Final[dict[str, Any]] = {"eventTime": {}}
Change = Callable[[int], dict[str, Any]]


def operator(**changed: Any) -> dict[str, Any]:
    """Return a report with one operator, which drops nothing, with these values of Spark's."""
    first = spark_progress(0, timezone.now())["stateOperators"][0]
    return {"stateOperators": [first | {"numRowsDroppedByWatermark": 0} | changed]}


def source(**rates: float) -> dict[str, Any]:
    return {"sources": [spark_progress(0, timezone.now())["sources"][1] | rates]}


def shuffle(loads: list[int]) -> dict[str, int]:
    """Return the summary of a shuffle, as Spark's quantiles have it."""
    ordered = sorted(loads)
    median = ordered[len(ordered) // 2]
    return {
        "partitions": len(loads),
        "records": ordered[-1],
        "median_records": median,
        "ms": 10 + ordered[-1] // 10,
        "median_ms": 10 + median // 10,
    }


def spread(weights: list[int], partitions: int, seed: int) -> list[int]:
    """Return the records of each partition, with the keys of these weights at random in them."""
    draw = random.Random(seed)
    loads = Counter[int]()
    for weight in weights:
        loads[draw.randrange(partitions)] += weight
    return [loads[i] for i in range(partitions)]


CASES: Final[dict[str, Change]] = {
    "": lambda _: operator(),
    "many_partitions": lambda _: operator(numShufflePartitions=200, numRowsUpdated=35),
    "large_partitions": lambda _: operator(memoryUsedBytes=2 * 2**30, numShufflePartitions=2),
    "unbounded_state": lambda batch: operator(numRowsTotal=1000 + 100 * batch) | NONE,
    "skewed_partitions": lambda _: operator() | {"tasks": shuffle([90_000, 900, 800, 700])},
    "late_rows": lambda _: operator(numRowsDroppedByWatermark=2),
    "behind": lambda _: operator() | source(inputRowsPerSecond=90, processedRowsPerSecond=80),
}


def report(by: Actor, change: Change, batches: int = BATCHES) -> AttachedQuery:
    start: datetime = timezone.now() - timedelta(seconds=batches)
    events = [
        progress_event(batch, start + timedelta(seconds=batch), **change(batch))
        for batch in range(batches)
    ]
    attached_jobs.report(by, ReportIn.model_validate(message(*events)))
    return AttachedQuery.objects.get()


@pytest.mark.parametrize("code", CASES)
def test_each_cause_has_its_advice_and_no_other(viewer: Actor, code: str) -> None:
    query = report(viewer, CASES[code])
    rows = get(scripted(viewer), f"/attached/queries/{query.pk}").json()["advice"]
    assert [row["code"] for row in rows] == [code] * bool(code)
    page = browser_of(viewer).get(reverse("attached-query", args=[query.pk])).content.decode()
    assert (f'data-code="{code}"' in page) is bool(code)
    assert ('id="advice"' in page) is bool(code)


def test_some_batches_that_are_skewed_are_no_cause(viewer: Actor) -> None:
    """Every newest batch is, or none is meant."""
    query = report(
        viewer,
        lambda batch: operator() | {"tasks": shuffle([90_000 if batch % 4 else 900, 800, 800])},
    )
    assert get(scripted(viewer), f"/attached/queries/{query.pk}").json()["advice"] == []
    stored = get(scripted(viewer), f"/attached/queries/{query.pk}/progress").json()
    assert stored[1]["tasks"]["records"] == 90_000


seeds = st.integers(0, 2**32)


@given(st.integers(2, 200), st.integers(10, 40), st.integers(1, 10**6), seeds)
def test_keys_of_equal_weight_have_no_advice(
    partitions: int, keys: int, records: int, seed: int
) -> None:
    """Ten keys or more for each partition, wherever their hashes are."""
    loads = spread([records] * (partitions * keys), partitions, seed)
    assert list(skewed([shuffle(loads)] * SKEWED_BATCHES)) == []


@given(st.integers(1, 400), st.integers(1, 10**6), seeds)
def test_heavy_keys_in_less_than_half_of_the_partitions_have_no_advice(
    keys: int, records: int, seed: int
) -> None:
    """Spark has 200 partitions where nobody sets another number."""
    loads = spread([records] * min(keys, 99), 200, seed)
    assert list(skewed([shuffle(loads)] * SKEWED_BATCHES)) == []


@pytest.mark.parametrize(
    ("ms", "median_ms", "is_advised"),
    [(199, 99, True), (199, 100, False), (400, 200, True), (399, 200, False), (9, 1, False)],
)
def test_records_that_cost_no_time_have_no_advice(
    ms: int, median_ms: int, *, is_advised: bool
) -> None:
    tasks = shuffle([90_000, 900, 800]) | {"ms": ms, "median_ms": median_ms}
    assert bool(list(skewed([tasks] * SKEWED_BATCHES))) is is_advised


def test_the_cause_has_the_largest_partition_and_the_longest_task() -> None:
    """They may be two."""
    tasks = shuffle([90_000, 900, 800]) | {"ms": 700, "median_ms": 50}
    (advice,) = skewed([tasks] * SKEWED_BATCHES)
    assert advice.cause == (
        "The largest of 3 partitions reads 90.0 k records, the median 900; the longest task takes"
        " 700 ms, the median 50 ms"
    )


@given(st.integers(4, 200), st.integers(20, 200), st.integers(20, 1000), seeds)
def test_a_key_with_most_of_the_records_has_advice(
    partitions: int, keys: int, records: int, seed: int
) -> None:
    weights = [records] * (partitions * keys)
    loads = spread([*weights, 4 * sum(weights)], partitions, seed)
    (advice,) = skewed([shuffle(loads)] * SKEWED_BATCHES)
    assert advice.code == "skewed_partitions"
    assert list(skewed([shuffle(loads)] * (SKEWED_BATCHES - 1))) == []


def test_few_batches_and_batches_without_figures_have_no_advice(viewer: Actor) -> None:
    query = report(viewer, CASES["many_partitions"], BATCHES - 1)
    path = f"/attached/queries/{query.pk}"
    assert get(scripted(viewer), path).json()["advice"] == []
    report(viewer, lambda _: {"stateOperators": [], "sources": []}, 2 * BATCHES)
    assert get(scripted(viewer), path).json()["advice"] == []


def test_an_ended_run_has_no_advice(viewer: Actor) -> None:
    query = report(viewer, CASES["many_partitions"])
    ended = message(event("terminated", timezone.now(), error=""))
    attached_jobs.report(viewer, ReportIn.model_validate(ended))
    assert get(scripted(viewer), f"/attached/queries/{query.pk}").json()["advice"] == []


def test_rows_of_an_earlier_release_have_no_partitions(viewer: Actor) -> None:
    query = report(viewer, CASES["many_partitions"])
    for row in query.progress.all():
        row.values = {
            k: v for k, v in row.values.items() if k not in ("state_partitions", "state_updated")
        }
        row.save()
    assert get(scripted(viewer), f"/attached/queries/{query.pk}").json()["advice"] == []
