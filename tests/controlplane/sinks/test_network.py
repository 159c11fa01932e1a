"""Queries that read the results of others: their results, cycles, and the streams between them."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.catalog.computations import schema_of
from controlplane.connections import redis_client
from controlplane.errors import Conflict, Invalid
from controlplane.models import Cluster, Query, Sink, Stream
from controlplane.queries.spec import QuerySpec
from controlplane.results.database import results_cursor
from controlplane.results.finality import update_finality
from controlplane.sinks import service
from controlplane.sinks.process import SinkFollower
from controlplane.sinks.service import SinkSpec
from controlplane.topology import placement, queries, streams
from controlplane.topology.streams import StreamSpec
from controlplane.wire.producer import Producer
from controlplane.wire.query_text import QueryText
from controlplane.wire.results.json_values import from_json
from tests.support.cluster import actor
from tests.support.pipeline import Pipeline
from tests.support.schemas import REPORTS

pytestmark = pytest.mark.django_db(transaction=True)
BY_CAR = QueryText(
    {"n": "count(*)", "total": "sum(speed)"}, 60.0, key=("car",), lateness_s=0.0
)  # fmt: skip
# Over the results of the query above.
OVER = QueryText(
    {"minutes": "count(*)", "n": "sum(n)", "top": "max(total)"}, 300.0, key=("car",),
    lateness_s=0.0,
)  # fmt: skip
START = datetime(2026, 5, 1, tzinfo=UTC)
MINUTES = 24


@pytest.fixture
def by(redis_url: str) -> Actor:
    return actor("admin", "an-admin")


def into(name: str, **more: Any) -> SinkSpec:
    return SinkSpec("next", "stream", {"stream": name}, **({"start": "oldest"} | more))


class Killed(BaseException):
    """The end of a process."""


def _die(*_: Any) -> None:
    raise Killed


@pytest.mark.usefixtures("results_in_django")
def test_a_query_reads_the_results_of_another_exactly_once(
    by: Actor, sf: Cluster, redis_url: str
) -> None:
    """With batches that are repeated, and processes of the sink that end at seeded moments."""
    draw = random.Random(4)
    first = queries.submit(by, sf, QuerySpec("by-car", ("s0",), BY_CAR))
    sink = service.add(by, first, into("cars"))
    second = queries.submit(by, sf, QuerySpec("over", ("cars",), OVER))
    placement.place_pending(sf.pk)
    pipeline = Pipeline(redis_client(), redis_url, sf.slug, nodes=4, splits=2)
    source = Stream.objects.get(name="s0").pk
    follower, records = SinkFollower(sink.pk), []
    with Producer(redis_url, sf.slug) as producer:
        for minute in range(0, MINUTES, 2):
            rows = [_report(minute + later, draw) for later in (0, 1) for _ in range(12)]
            records += rows
            producer.append({source: rows})
            with pytest.MonkeyPatch.context() as patch:
                if draw.random() < 0.3:
                    patch.setattr(SinkFollower, "_count", _die)
                follower = _passed(pipeline, follower, repeat=draw.choice([1, 2]))
        # Everything before is final then.
        producer.append({source: [{**_report(MINUTES + 9, draw), "car": 99} for _ in range(3)]})
        _passed(pipeline, _passed(pipeline, follower))
    sink.refresh_from_db()
    assert (sink.error, sink.failures) == ("", 0)
    expected = _expected(records)
    assert len(expected) > 20
    assert _results(second) == expected


def _passed(pipeline: Pipeline, follower: SinkFollower, repeat: int = 1) -> SinkFollower:
    """Process what was appended, write what is final into the stream, and process that."""
    pipeline.batch(repeat)
    update_finality(timezone.now())
    try:
        follower.step(lambda _: None)
    except Killed:
        follower = SinkFollower(follower.sink_id)
        follower.step(lambda _: None)
    pipeline.batch(repeat)
    update_finality(timezone.now())
    return follower


def _report(minute: int, draw: random.Random) -> dict[str, Any]:
    at = START + timedelta(minutes=minute, seconds=draw.randint(0, 59))
    speed = draw.choice([None, draw.randint(0, 60)])
    return {"ts": at, "car": draw.randint(0, 4), "speed": speed, "x": 0, "y": 0}


def _expected(records: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    with duckdb.connect() as database:
        database.execute("CREATE TABLE r (ts TIMESTAMPTZ, car INTEGER, speed INTEGER)")
        database.executemany(
            "INSERT INTO r VALUES (?, ?, ?)", [(r["ts"], r["car"], r["speed"]) for r in records]
        )
        rows: list[tuple[Any, ...]] = database.execute(
            "WITH f AS (SELECT epoch_ms(ts) // 60000 * 60000 + 60000 AS finish, car, count(*) AS n,"
            " sum(speed) AS total FROM r GROUP BY ALL)"
            " SELECT finish // 300000 * 300000, car, count(*), sum(n), max(total) FROM f"
            " GROUP BY ALL ORDER BY 1, 2"
        ).fetchall()
    return rows


def _results(query: Query) -> list[tuple[Any, ...]]:
    with results_cursor() as cursor:
        cursor.execute(
            "SELECT start_ms, key_json, value_json FROM results_window WHERE query_id = %s",
            [query.pk],
        )
        rows = [(start, *from_json(key), *from_json(value))
                for start, key, value in cursor.fetchall()]  # fmt: skip
    return sorted(row for row in rows if row[1] != 99)


def test_the_stream_has_the_columns_of_the_results_and_the_end_as_event_time(
    by: Actor, sf: Cluster
) -> None:
    query = queries.submit(by, sf, QuerySpec("by-car", ("s0",), BY_CAR))
    sink = service.add(by, query, into("cars"))
    stream = Stream.objects.get(name="cars")
    schema = schema_of(stream.schema)
    assert schema is not None
    assert (schema.event_time, schema.watermark_delay_s) == ("window_end", 0)
    assert [column.name for column in schema.columns] == [
        "window_start", "window_end", "car", "n", "total", "errors", "kept", "is_final",
        "changed_at", "seq",
    ]  # fmt: skip
    with pytest.raises(Conflict) as refusal:
        streams.delete(by, stream, "cars")
    assert refusal.value.code == "has_writers"
    assert "by-car/next" in str(refusal.value)
    other = queries.submit(by, sf, QuerySpec("other", ("s1",), BY_CAR))
    with pytest.raises(Invalid) as second:
        service.add(by, other, into("cars"))
    assert "by-car/next writes to cars" in second.value.fields["settings.stream"][0]
    service.change(by, sink, into("cars"))
    service.remove(by, sink)
    # It has the columns of these results, too.
    service.add(by, other, into("cars"))


def test_a_sink_that_would_close_a_cycle_is_refused(by: Actor, sf: Cluster) -> None:
    first = queries.submit(by, sf, QuerySpec("first", ("s0",), BY_CAR))
    service.add(by, first, into("a"))
    text = QueryText({"n": "sum(n)"}, 60.0, key=("car",))
    second = queries.submit(by, sf, QuerySpec("second", ("a",), text))
    service.add(by, second, into("b"))
    third = queries.submit(by, sf, QuerySpec("third", ("b",), text))
    before = Sink.objects.count()
    for name, way in (
        ("b", "third reads b:"),
        ("a", "third reads b, which second computes from a:"),
    ):
        with pytest.raises(Invalid) as refusal:
            service.add(by, third, into(name))
        assert refusal.value.fields["settings.stream"][0].startswith(way)
    sink = service.add(by, third, into("c"))
    with pytest.raises(Invalid):
        service.change(by, sink, into("a"))
    assert Sink.objects.count() == before + 1
    # A query that ended reads nothing.
    queries.end(by, sf, ["second"])
    Query.objects.filter(name="second").update(state="ended")
    with pytest.raises(Invalid) as refusal:
        service.add(by, third, replace(into("a"), name="again"))
    assert "first/next writes to a" in refusal.value.fields["settings.stream"][0]


def test_a_stream_that_cannot_have_the_results_is_refused(by: Actor, sf: Cluster) -> None:
    query = queries.submit(by, sf, QuerySpec("by-car", ("s0",), BY_CAR))
    wide = REPORTS.to_json()
    end = {"name": "window_end", "type": "timestamp(ms)", "nullable": False}
    for name, columns, text in (
        ("s1", None, "event time of s1 must be its column window_end"),
        ("other", [end, {"name": "n", "type": "string"}], "has n as text, the results as int"),
        ("more", [end, {"name": "x", "type": "string", "nullable": False}], "requires x"),
    ):
        if columns is not None:
            schema = {**wide, "columns": columns, "event_time": "window_end"}
            streams.register(by, sf, [StreamSpec(name, schema=schema)])
        with pytest.raises(Invalid) as refusal:
            service.add(by, query, into(name))
        assert text in refusal.value.fields["settings.stream"][0]
    Cluster.objects.filter(pk=sf.pk).update(log_url="kafka://127.0.0.1:1/x")
    query.cluster.refresh_from_db()
    with pytest.raises(Invalid) as refusal:
        service.add(by, query, into("cars"))
    assert "log in Redis" in refusal.value.fields["settings.stream"][0]
    assert not Stream.objects.filter(name="cars").exists()
