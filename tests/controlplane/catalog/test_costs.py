"""What queries and streams cost: stored measures, sharing, lists in their order."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import numpy as np
import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.api.queries.schemas import QueryOut
from controlplane.catalog.columns.queries import COLUMNS
from controlplane.catalog.queries import QueryFilters, queries_listing
from controlplane.catalog.query_costs import recent_means, record_query_costs, shared_counts
from controlplane.catalog.stream_costs import record_stream_costs
from controlplane.catalog.streams import StreamFilters, streams_listing
from controlplane.connections import redis_client
from controlplane.explain.query_report import query_report
from controlplane.models import Cluster, Node, Query, Stream, Task
from controlplane.pagination.columns import values_of
from controlplane.telemetry.measures import present_end
from controlplane.watch.observation import ClusterObservation
from controlplane.wire import measures
from tests.support import cluster as made
from tests.support.series import add_sample


@pytest.fixture
def sf(operator: Actor) -> Cluster:
    cluster = made.small_cluster(operator)
    made.placed(operator, cluster, {"a": ["s0"], "b": ["s0", "s1"], "c": ["s5"], "d": ["s0"]})
    node = Node.objects.get(cluster=cluster, index=1)
    Task.objects.filter(query__name__in=("a", "b")).update(node=node)
    Task.objects.filter(query__name="d").update(node=Node.objects.get(cluster=cluster, index=2))
    cluster.refresh_from_db()
    return cluster


def write_measures(cluster: Cluster, node: int, rows: Sequence[tuple[str, int, int]]) -> None:
    ids = dict(cluster.queries.values_list("name", "pk"))
    table = np.array([[ids[name], 0, records, size] for name, records, size in rows], np.int64)
    data = measures.packed(1000, table)
    measures.write(redis_client(), cluster.slug, node, 1, data)


def add_latencies(cluster: Cluster, moment: datetime, p95: Sequence[float]) -> None:
    add_sample(cluster, moment, {"node_p95": list(p95), "split_latency": [40.0, 70.0]})


def test_costs_of_running_queries_are_stored(sf: Cluster) -> None:
    now = timezone.now()
    write_measures(sf, 1, [("a", 50, 700), ("b", 200, 100)])
    add_latencies(sf, now - timedelta(seconds=15), [10.0, 400.0, 30.0, 40.0])
    assert record_query_costs(sf, now) == 2
    a = Query.objects.get(cluster=sf, name="a")
    figures = (a.evaluations_per_s, a.latency_ms, a.state_bytes, a.shared_with, a.measured_at)
    assert figures == (50.0, 400.0, 700, 1, now)
    assert Query.objects.get(cluster=sf, name="c").measured_at is None
    # Equal figures are not written again; those of an ended query are removed.
    assert record_query_costs(sf, now + timedelta(seconds=30)) == 0
    Query.objects.filter(pk=a.pk).update(state="ended")
    record_query_costs(sf, now + timedelta(seconds=60))
    a.refresh_from_db()
    assert (a.evaluations_per_s, a.measured_at) == (0.0, None)


def test_the_latency_of_a_query_is_that_of_its_node_on_other_pages(sf: Cluster) -> None:
    """Of the periods of ten seconds, which tiles, monitors and explanations have, too."""
    now = timezone.now()
    end = present_end(now)
    periods = {"node_p95": [100.0, 200.0, 300.0, 400.0], "split_latency": [40.0, 70.0]}
    add_sample(sf, end - timedelta(seconds=20), periods, seconds=10)
    add_latencies(sf, end - timedelta(seconds=15), [900.0] * 4)
    shown = ClusterObservation.of_moment(sf, now=now).window["node_p95"][0]
    assert recent_means(sf, now, "node_p95") == dict(enumerate(shown.tolist()))


@pytest.mark.parametrize(
    ("order", "names"),
    [("-evaluations", "badc"), ("evaluations", "cdab"), ("-bytes", "abdc"), ("-shared", "badc")],
)
def test_lists_are_sorted_by_cost_over_all_pages(sf: Cluster, order: str, names: str) -> None:
    write_measures(sf, 1, [("a", 50, 700), ("b", 200, 100)])
    record_query_costs(sf, timezone.now())
    pages = [
        queries_listing(sf, QueryFilters(order=order, per_page=2, page=number)).page.rows
        for number in (1, 2)
    ]
    listed = "".join(row.query.name for page in pages for row in page)
    assert listed == names
    page = queries_listing(sf, QueryFilters(filter="evaluations>100 bytes<=100")).page
    assert [row.query.name for row in page.rows] == ["b"]


def test_sharing_is_that_of_the_page_of_a_query(sf: Cluster) -> None:
    counts = shared_counts(sf)
    for query in Query.objects.filter(cluster=sf):
        assert counts[query.pk] == query_report(query).shared_count, query.name
    assert sorted(counts.values()) == [0, 0, 1, 1]


def test_the_processor_time_of_a_query_is_estimated_by_its_records(sf: Cluster) -> None:
    """Of a node, the measured time times the query's part of the records; None if unknown."""
    query = Query.objects.get(cluster=sf, name="a")
    assert query_report(query).processor is None
    write_measures(sf, 1, [("a", 50, 700), ("b", 200, 100)])
    moment = timezone.now() - timedelta(seconds=15)
    add_sample(sf, moment, {"busy": [0.9, 0.5, 0.5, 0.5], "loads": [1.0] * 4})
    report = query_report(query)
    assert report.processor == pytest.approx(0.2 * 0.5)
    assert report.node_share == pytest.approx(0.2)
    assert report.evaluations_per_s == 50.0
    # Lists have the same estimate, stored.
    record_query_costs(sf, timezone.now())
    stored = dict(Query.objects.filter(cluster=sf).values_list("name", "processor_percent"))
    assert stored == pytest.approx({"a": 10.0, "b": 40.0, "c": 0.0, "d": 0.0})
    page = queries_listing(sf, QueryFilters(filter="processor>20")).page
    assert [row.query.name for row in page.rows] == ["b"]
    page = queries_listing(sf, QueryFilters(order="-processor")).page
    assert [row.query.name for row in page.rows][:2] == ["b", "a"]
    row = page.rows[1]
    assert row.query.processor_percent == pytest.approx(100 * (report.processor or 0.0))
    columns = values_of(COLUMNS, row)
    assert columns["processor_percent"] == pytest.approx(10.0)
    assert QueryOut.of(row).processor_percent == pytest.approx(10.0)


def test_streams_have_latency_and_order_of_their_costs(sf: Cluster) -> None:
    add_latencies(sf, timezone.now(), [10.0])
    sizes = {"s0": (100.0, 10.0, 7.0), "s1": (10.0, 900.0, 3.0)}
    for name, (rate, size, mean) in sizes.items():
        Stream.objects.filter(cluster=sf, name=name).update(
            rate=rate, record_bytes=size, mean_rate=mean
        )
    rows = streams_listing(sf, StreamFilters(order="-bytes")).page.rows
    listed = [(row.stream.name, row.bytes_per_s) for row in rows[:2]]
    assert listed == [("s1", 9000.0), ("s0", 1000.0)]
    assert rows[0].split_latency_ms == {0: 40.0, 1: 70.0}[rows[0].stream.split]
    assert streams_listing(sf, StreamFilters(order="-mean")).page.rows[0].stream.name == "s0"
    page = streams_listing(sf, StreamFilters(filter="bytes>5000 mean<5")).page
    assert [row.stream.name for row in page.rows] == ["s1"]
    assert record_stream_costs(sf, timezone.now()) == 6
    # Without blocks in the log, the last size stays.
    assert Stream.objects.get(cluster=sf, name="s1").record_bytes == 900.0
