"""The page of a stream: headline from the forecast, split nodes after the plan, readers, map."""

import json
from datetime import datetime, timedelta

import pytest
import redis
from django.test import Client
from django.urls import reverse

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Query, Stream
from controlplane.planners.admission.stream_report import stream_report
from controlplane.queries.spec import QuerySpec
from controlplane.telemetry import series
from controlplane.topology import queries
from controlplane.topology.split_nodes import set_split_capacity
from controlplane.wire import keys
from controlplane.wire.query_text import QueryText
from dashboard.streams.detail import LAG_SHOWN
from dashboard.streams.detail_rows import headline, tiles
from tests.support import cluster as made
from tests.support.admission import arrived
from tests.support.records import append_at
from tests.support.series import add_skews
from tests.support.windows import write_windows

pytestmark = [pytest.mark.django_db, pytest.mark.nightly("pages")]
PERIODS = 60


@pytest.fixture
def stream(sf: Cluster) -> Stream:
    """Both s0 and s1 are on split node 0, the others on split node 1."""
    sf.streams.update(split=1)
    sf.streams.filter(name__in=("s0", "s1")).update(split=0)
    return sf.streams.get(name="s0")


def load(cluster: Cluster, now: datetime, s0: float, s1: float) -> None:
    rates = {f"s{i}": [1.0] * PERIODS for i in range(6)}
    arrived(cluster, now, rates | {"s0": [s0] * PERIODS, "s1": [s1] * PERIODS})
    series.roll_up(now)


def test_the_headline_follows_the_forecast(
    operator: Actor, sf: Cluster, stream: Stream, now: datetime
) -> None:
    assert headline(stream_report(stream)).chip == "no records"
    load(sf, now, 60.0, 20.0)
    assert headline(stream_report(stream)).chip == "capacity unknown"
    set_split_capacity(operator, sf, 100.0, emulated=True)
    stream = sf.streams.get(name="s0")
    assert headline(stream_report(stream)).grade == "warn"
    sf.streams.filter(name="s1").update(split=1)
    assert headline(stream_report(stream)).grade == "good"


def test_the_plan_is_shown_and_nothing_changes(
    operator: Actor, operating: Client, sf: Cluster, stream: Stream, now: datetime
) -> None:
    set_split_capacity(operator, sf, 100.0, emulated=True)
    load(sf, now, 60.0, 70.0)
    stream.refresh_from_db()
    versions = sf.routing_version
    report = stream_report(stream)
    assert headline(report).grade == "bad"
    assert report.planned.redirected == 1
    loads = {item.row.index: (item.row.expected, item.after) for item in report.splits}
    assert loads[0][0] == pytest.approx(130, rel=0.1)
    assert all(after <= 100 for _, after in loads.values())
    assert [tile.title for tile in tiles(report)][2] == "Above what is left"
    page = operating.get(f"/clusters/sf/streams/{stream.pk}/")
    assert page.context["headline"].grade == "bad"
    live = operating.get(f"/clusters/sf/streams/{stream.pk}/live/", HTTP_HX_REQUEST="true")
    assert live.context["headline"].grade == "bad"
    sf.refresh_from_db()
    assert sf.routing_version == versions


def test_charts_are_of_six_hours_and_of_the_last_one(
    operating: Client, sf: Cluster, stream: Stream, now: datetime
) -> None:
    path = f"/clusters/sf/streams/{stream.pk}/charts/"
    empty = operating.get(path).json()["figures"]
    assert {name: figure["data"] for name, figure in empty.items()} == {
        "rate": [], "hours": [], "lag": [],
    }  # fmt: skip
    load(sf, now, 60.0, 70.0)
    figures = operating.get(path).json()["figures"]
    names = [trace["name"] for trace in figures["hours"]["data"]]
    assert {"measured", "forecast", "90 % interval"} <= set(names)
    assert figures["lag"]["data"][0]["y"][-1] == 0
    assert figures["lag"]["layout"]["meta"]["finding"].startswith("Lag 0 s")
    start, end = figures["lag"]["layout"]["xaxis"]["range"]
    # The axis is no longer than what is known.
    assert PERIODS * 10_000 <= end - start < LAG_SHOWN.total_seconds() * 1000


def test_three_short_periods_are_ahead_in_the_chart_of_ten_seconds(
    operating: Client, sf: Cluster, stream: Stream, now: datetime
) -> None:
    Stream.objects.filter(pk=stream.pk).update(characteristics={"period_s": 120.0})
    load(sf, now, 60.0, 70.0)
    figures = operating.get(f"/clusters/sf/streams/{stream.pk}/charts/").json()["figures"]
    traces = {trace["name"]: trace for trace in figures["rate"]["data"]}
    # From the last measured rate on.
    assert len(traces["forecast"]["x"]) == 1 + 36
    page = operating.get(f"/clusters/sf/streams/{stream.pk}/")
    assert page.context["short_period_s"] == 120


def test_readers_have_the_skew_of_their_keys(
    operator: Actor, operating: Client, sf: Cluster, stream: Stream, now: datetime
) -> None:
    query = made.placed_split(operator, sf)
    assert {row.top_share for row in stream_report(stream).readers} == {None}
    for seconds, share in ((30, 0.2), (20, 0.31)):
        add_skews(query, [(now - timedelta(seconds=seconds), 0.16)], top_share=share)
    skews = {row.id: (row.top_share, row.skew) for row in stream_report(stream).readers}
    assert skews.pop(query.pk) == (0.31, 0.16)
    assert set(skews.values()) == {(None, None)}
    page = operating.get(f"/clusters/sf/streams/{stream.pk}/").content.decode()
    assert "Largest key 31 %" in page


def test_readers_and_their_nodes_are_listed(operator: Actor, sf: Cluster, stream: Stream) -> None:
    before = stream_report(stream).reader_count
    made.placed(operator, sf, {"reads-one": ["s0"], "reads-two": ["s0", "s1"], "other": ["s2"]})
    report = stream_report(stream)
    names = {reader.name for reader in report.readers}
    assert {"reads-one", "reads-two"} <= names
    assert "other" not in names
    assert report.reader_count == before + 2
    assert all(reader.nodes for reader in report.readers)


def test_a_stream_is_drawn_by_confirmed_coordinates(
    operating: Client, sf: Cluster, stream: Stream
) -> None:
    append_at(sf, stream.pk, 1_000_000, records=1)
    path = f"/clusters/sf/streams/{stream.pk}"
    before = operating.get(f"{path}/map/")
    assert before.context["columns"] == ["car", "x", "y", "speed"]
    assert "tiles" not in before.context
    operating.post(f"{path}/coordinates/", {"east": "x", "north": "y"})
    tiles = operating.get(f"{path}/map/").context["tiles"]
    assert (tiles.points, len(tiles.rows)) == (1, 1)
    operating.post(f"{path}/coordinates/", {"east": "x", "north": "x"})
    stream.refresh_from_db()
    assert stream.meta["coordinates"] == {"east": "x", "north": "y"}


def test_the_newest_window_of_a_query_by_place_is_drawn(
    operator: Actor, operating: Client, sf: Cluster, stream: Stream
) -> None:
    text = QueryText({"n": "count(*)"}, columns={"gx": "floor(x / 10)"}, key=("gx", "y"))
    query: Query = queries.submit(operator, sf, QuerySpec("places", ("s0",), text))
    path = f"/clusters/sf/queries/{query.pk}/map/"
    assert "tiles" not in operating.get(path).context
    stream.meta = {"coordinates": {"east": "x", "north": "y"}}
    stream.save()
    rows = [
        {"stream": stream.pk, "k0": place, "k1": 1, "s0": count, "pane": pane}
        for place, count, pane in ((1, 5, 60_000), (2, 7, 60_000), (3, 9, 0))
    ]
    write_windows(query, 3, rows)
    drawn = operating.get(path).context["tiles"].rows
    assert sorted(tile.value for row in drawn for tile in row) == [5.0, 7.0]


def test_late_records_are_shown_where_there_are_some(
    operating: Client, sf: Cluster, stream: Stream, now: datetime
) -> None:
    for name in ("stream", "stream-live"):
        url = reverse(name, args=["sf", stream.pk])
        sf.streams.update(late_records=0, late_at=None)
        assert "late record" not in operating.get(url).content.decode()
        sf.streams.update(late_records=3_500, late_at=now - timedelta(minutes=5))
        page = operating.get(url).content.decode()
        assert "3,500 late records" in page
        assert "5 min ago" in page


def test_the_page_of_a_topic_has_the_lag_of_each_partition(
    operating: Client, sf: Cluster, redis_client: "redis.Redis"
) -> None:
    """Nothing is appended there, so the page proposes no first record."""
    source = {"servers": "127.0.0.1:9092", "topic": "orders-2"}
    sf.streams.filter(name="s0").update(source=source)
    stream = sf.streams.get(name="s0")
    page = operating.get(reverse("stream", args=[sf.slug, stream.pk])).content.decode()
    assert "topic orders-2" in page
    assert "Not read yet" in page
    assert "Append" not in page
    partition = {
        "partition": 3, "offset": 4, "first": 6, "end": 9, "unread": 5, "seconds": 90.0,
        "state": "lost", "lost": 2, "line": "deleted by the broker",
    }  # fmt: skip
    row = {"clock_ms": 1_700_000_000_000, "error": "away", "partitions": [partition]}
    redis_client.hset(keys.sources_key(sf.slug), str(stream.pk), json.dumps(row))
    live = operating.get(reverse("stream-live", args=[sf.slug, stream.pk])).content.decode()
    for text in ("deleted by the broker: 2 records", "The source cannot be read", "away"):
        assert text in live
