"""What is dropped or late is on the pages of queries and streams, and in their lists."""

from datetime import datetime, timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Drop, Query, SheddingInterval, Stream
from controlplane.topology import drop_rules
from controlplane.topology.drop_rules import DropSpec
from dashboard.queries.results import lines_of
from dashboard.streams.losses import query_losses, stream_losses
from tests.dashboard.queries.test_results import window


@pytest.fixture
def query(sf: Cluster) -> Query:
    return sf.queries.get(name="a")


@pytest.fixture
def stream(query: Query) -> Stream:
    """The stream of the query, of 100 records/s."""
    stream = query.streams.get()
    Stream.objects.filter(pk=stream.pk).update(rate=100.0)
    return Stream.objects.get(pk=stream.pk)


def interval(
    cluster: Cluster, now: datetime, seconds: tuple[int, int], read: int, *edges: list[int]
) -> None:
    """Store an interval of load shedding, from so many seconds ago until so many."""
    SheddingInterval.objects.create(
        cluster=cluster, rung=1, position=1.0, started_at=now - timedelta(seconds=seconds[0]),
        ended_at=now - timedelta(seconds=seconds[1]), read=read, by_edge=list(edges),
        by_stream=[[edges[0][0], read]],
    )  # fmt: skip


def test_a_query_whose_input_is_shed_says_so_at_its_top(
    operating: Client, sf: Cluster, query: Query, stream: Stream, now: datetime
) -> None:
    """Since the first of the intervals of the episode in which it lost records."""
    interval(sf, now, (300, 200), 500, [stream.pk, 999, 400])
    interval(sf, now, (200, 100), 1000, [stream.pk, 0, 300], [stream.pk, query.pk, 200])
    interval(sf, now, (100, 1), 1000, [stream.pk, 0, 500])
    losses = query_losses(query)
    assert losses.kept == pytest.approx(0.5)
    since = (now - timedelta(seconds=200)).strftime("%H:%M")
    line = f"Load shedding has dropped 50 % of its input since {since} UTC: 1,000 of 2,000 records"
    assert losses.lines == [line]
    for name in ("query", "query-live"):
        page = operating.get(reverse(name, args=["sf", query.pk]))
        assert page.context["headline"].what == line
        assert page.context["headline"].grade == "warn"
        assert page.context["tiles"][-1].number == "50 %"
    assert stream_losses(stream).kept == pytest.approx(1 - (400 + 500 + 500) / 2500)
    assert operating.get(reverse("stream", args=["sf", stream.pk])).context["losses"].lines
    assert (
        'class="tag">load shedding<'
        in operating.get(reverse("queries", args=["sf"])).content.decode()
    )
    assert (
        'class="tag">load shedding<'
        in operating.get(reverse("streams", args=["sf"])).content.decode()
    )


def test_an_episode_that_is_over_takes_nothing(
    operating: Client, sf: Cluster, query: Query, stream: Stream, now: datetime
) -> None:
    interval(sf, now, (300, 90), 500, [stream.pk, 0, 400])
    assert (query_losses(query).kept, query_losses(query).lines) == (1.0, [])
    assert (
        'class="tag">load shedding<'
        not in operating.get(reverse("queries", args=["sf"])).content.decode()
    )


def test_drop_rules_and_late_records_are_named(
    operating: Client, operator: Actor, sf: Cluster, query: Query, stream: Stream
) -> None:
    drop_rules.set_drop(operator, stream, DropSpec(0.5))
    drop_rules.set_drop(operator, stream, DropSpec(0.2), query.name)
    Drop.objects.filter(query=None).update(dropped=1234, per_s=50.0)
    Drop.objects.filter(query=query).update(dropped=99, per_s=10.0)
    sf.queries.update(late_records=79, late_at=timezone.now())
    query.refresh_from_db()
    losses = query_losses(query)
    assert losses.kept == pytest.approx(0.4)
    assert [line.split(" since")[0] for line in losses.lines] == [
        f"A drop rule on the input of {stream.name} has dropped 1,234 records",
        f"A drop rule to a of {stream.name} has dropped 99 records",
    ]
    assert losses.tile.below == "79 late, not counted"
    assert stream_losses(stream).kept == pytest.approx(0.4)
    page = operating.get(reverse("queries", args=["sf"])).content.decode()
    assert "drop rule" in page
    assert "79 records were too late for it" in page


def test_missing_windows_are_a_gap_of_the_chart() -> None:
    """Of all keys: a key without records in a window others have is no gap."""
    windows = [window(minute, minute) for minute in (0, 1, 5, 6)]
    times = [round(row.start.timestamp() / 60) % 60 for row in windows]
    line = lines_of(windows, "revenue")["Kiel"]
    assert [point.value for point in line] == [0, 1, None, 5, 6]
    assert round(line[2][0] / 60_000) % 60 == times[1] + 1
