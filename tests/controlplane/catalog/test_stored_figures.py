"""Figures that are stored for lists: readers of streams, rates of the streams of queries."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from controlplane.access.roles import Actor
from controlplane.catalog.queries import QueryFilters, queries_listing
from controlplane.catalog.reader_counts import recount
from controlplane.catalog.source_rates import record_source_rates
from controlplane.catalog.streams import StreamFilters, streams_listing
from controlplane.errors import Invalid
from controlplane.health.failed_queries import end_failed
from controlplane.models import Cluster, Query, QueryStream, Stream
from controlplane.models.query import LIVE_STATES
from controlplane.topology import bulk_actions, placement, queries
from tests.support import cluster as made

STEPS = 60
pytestmark = pytest.mark.both_databases


@pytest.fixture
def sf(operator: Actor) -> Cluster:
    return made.small_cluster(operator)


def stored(cluster: Cluster) -> dict[int, int]:
    counts = Stream.objects.filter(cluster=cluster).values_list("pk", "reader_count")
    return {stream: count for stream, count in counts if count}


def counted(cluster: Cluster) -> dict[int, int]:
    """Return the numbers of live readers by the definition."""
    live = QueryStream.objects.filter(query__cluster=cluster, query__state__in=LIVE_STATES)
    return dict(Counter(live.values_list("stream", flat=True)))


@pytest.mark.parametrize("seed", range(3))
def test_reader_counts_are_right_after_any_changes(operator: Actor, sf: Cluster, seed: int) -> None:
    draw = np.random.default_rng(seed)
    names = [f"q{number}" for number in range(12)]

    def some(state: str) -> list[str]:
        rows = Query.objects.filter(cluster=sf, state=state).values_list("name", flat=True)
        return sorted({str(name) for name in draw.permutation(list(rows))[:3]})

    def submit() -> None:
        name = str(draw.choice(names))
        streams = [f"s{i}" for i in draw.choice(6, int(draw.integers(1, 4)), replace=False)]
        made.submit(operator, sf, {name: streams})

    def fail() -> None:
        for query in Query.objects.filter(cluster=sf, name__in=some("running")):
            fault = {"query": query.pk, "run": query.incarnation, "why": "division by zero",
                     "node": 0, "stage": "evaluate", "sample": ""}  # fmt: skip
            end_failed(sf, [{"faults": [fault]}])

    steps: list[Callable[[], object]] = [
        submit, submit, fail,
        lambda: placement.place_pending(sf.pk),
        lambda: queries.end(operator, sf, some("pending") + some("running")),
        lambda: bulk_actions.end_matching(operator, sf, f"node:{draw.integers(4)}", 100),
        lambda: bulk_actions.restore_named(operator, sf, some("ended")),
    ]  # fmt: skip
    changes = 0
    for _ in range(STEPS):
        step = steps[int(draw.integers(len(steps)))]
        try:
            step()
        except Invalid:
            # No query is in the state, or a live query has the name.
            continue
        changes += 1
        sf.refresh_from_db()
        assert stored(sf) == counted(sf)
    assert changes > STEPS / 3


def test_rows_written_without_services_are_recounted(operator: Actor, sf: Cluster) -> None:
    made.placed(operator, sf, {"a": ["s0"], "b": ["s0", "s1"]})
    Query.objects.filter(name="a").update(state="ended")
    assert stored(sf) != counted(sf)
    recount(sf)
    assert stored(sf) == counted(sf)
    page = streams_listing(sf, StreamFilters(order="-queries", filter="queries>0")).page
    assert sorted((row.stream.name, row.queries) for row in page.rows) == [("s0", 1), ("s1", 1)]


def test_rates_of_the_streams_of_queries_follow_the_streams(operator: Actor, sf: Cluster) -> None:
    """Streams s0, s1, ... declare 1, 2, ... records/s until their rates are measured."""

    def listed(text: str) -> list[str]:
        rows = queries_listing(sf, QueryFilters(filter=text, order="rate")).page.rows
        return [row.query.name for row in rows]

    made.submit(operator, sf, {"low": ["s0"], "high": ["s4", "s5"]})
    assert listed("rate>2") == ["high"]
    Stream.objects.filter(cluster=sf, name="s0").update(rate=100.0)
    assert record_source_rates(sf) == 1
    assert listed("rate>2") == ["high", "low"]
    assert listed("rate>=100") == ["low"]
    assert record_source_rates(sf) == 0
