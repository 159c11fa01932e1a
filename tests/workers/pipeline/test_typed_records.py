"""Records of any columns, from a producer's rows to the windows of queries."""

import json
import time
from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import redis

from controlplane.wire import dead_letters
from controlplane.wire.dead_letters import Reason
from controlplane.wire.log import open_log
from controlplane.wire.log.values import Block
from controlplane.wire.producer import Producer
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.records.record_codec import decode_block
from controlplane.wire.routing.cluster_actions import AssignStream, SetSchema
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.schema import ColumnSpec, StreamSchema, common_kinds
from tests.support.pipeline import Pipeline
from tests.support.schemas import READINGS, assigned
from tests.support.whole_results import read_windows

NOW = datetime.now(UTC).replace(microsecond=0)
MINUTE = timedelta(minutes=1)
TEXT = QueryText(
    {
        "n": "count(*)",
        "levels": "count(level)",
        "high": "max(level)",
        "paid": "sum(price)",
        "serial": "max(serial)",
        "grades": "sum(grade)",
        "last": "max(built)",
    },
    where="open or place.lat > 10.0",
    key=["station", "code"],
    columns={"code": "place.area.code"},
    window_s=60,
)


def readings(count: int, seed: int) -> list[dict[str, Any]]:
    """Return rows with values of every type, and nulls wherever they are allowed."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for at in range(count):
        row = {
            "at": NOW - 5 * MINUTE + timedelta(seconds=int(rng.integers(120)), microseconds=at),
            "station": f"Østre-{rng.integers(4)}",
            "open": bool(rng.integers(2)),
            "level": float(rng.normal()),
            "charge": 0.5,
            "price": Decimal(int(rng.integers(10**6))) / 100,
            "built": date(1990, 1, 1) + timedelta(days=int(rng.integers(9000))),
            "serial": 2**64 - 1 - int(rng.integers(5)),
            "grade": int(rng.integers(-128, 128)),
            "place": {"lat": float(rng.integers(20)), "area": {"code": f"c{rng.integers(2)}"}},
            "tags": ["a", "b"],
            "raw": b"\x00\xff",
        }
        for name in ("open", "level", "price", "built", "serial", "grade", "place", "tags", "raw"):
            if rng.random() < 0.1:
                row[name] = None
        rows.append(row)
    return rows


def expected(rows: list[dict[str, Any]]) -> dict[Any, dict[str, Any]]:
    """Return the windows of `TEXT` by plain loops."""
    groups: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        place = row["place"] or {"lat": None, "area": {"code": None}}
        if row["open"] or (row["open"] is not True and (place["lat"] or 0) > 10):
            start = int(row["at"].timestamp()) // 60 * 60_000
            groups[start, row["station"], place["area"]["code"]].append(row)

    def there(found: list[dict[str, Any]], name: str) -> list[Any]:
        return [row[name] for row in found if row[name] is not None]

    return {
        place: {
            "n": len(found),
            "levels": len(there(found, "level")),
            "high": max(there(found, "level"), default=None),
            "paid": sum(there(found, "price")) if there(found, "price") else None,
            "serial": max(there(found, "serial"), default=None),
            "grades": sum(there(found, "grade")) if there(found, "grade") else None,
            "last": max(there(found, "built"), default=None),
        }
        for place, found in groups.items()
    }


def windows_of(client: "redis.Redis", query: int, text: QueryText, *schemas: StreamSchema) -> Any:
    computation = computation_of(text, common_kinds(schemas)[0])
    return {
        (row.start_ms, *row.key.values()): dict(row.values)
        for row in read_windows(client, "c", query, computation)
    }


def add(query: int, streams: tuple[int, ...], text: QueryText, **more: Any) -> AddQuery:
    return AddQuery(query, 0, 0, streams, json.dumps(text.to_json()), **more)


@pytest.fixture
def pipeline(redis_client: "redis.Redis", redis_server: str) -> Pipeline:
    return Pipeline(redis_client, redis_server)


def test_every_type_is_computed_as_in_plain_python(pipeline: Pipeline, redis_server: str) -> None:
    """Text, booleans, floats, decimals, dates, uint64, int8, fields of structs; some are null."""
    task_ranges = ((0, 0, 2), (1, 2, 4))
    pipeline.publish(*assigned([1], 1, READINGS), add(5, (1,), TEXT, task_ranges=task_ranges))
    rows = readings(400, seed=3)
    with Producer(redis_server, "c") as producer:
        for begin in range(0, len(rows), 150):
            producer.append({1: rows[begin : begin + 150]})
            pipeline.batch()
    assert windows_of(pipeline.client, 5, TEXT, READINGS) == expected(rows)


def test_streams_of_other_columns_meet_in_one_query(pipeline: Pipeline, redis_server: str) -> None:
    """One has no event-time column: its records have the time of their append."""
    plain = StreamSchema(
        (ColumnSpec("level", "int32"), ColumnSpec("station", "string"), ColumnSpec("x", "string"))
    )
    text = QueryText({"n": "count(*)", "sum": "sum(level)"}, key=["station"], window_s=86_400)
    other = QueryText({"n": "count(*)"}, where="grade > 0", key=["stream"], window_s=86_400)
    pipeline.publish(
        *assigned([1], 1, READINGS), AssignStream(2, 0), SetSchema(2, plain),
        add(5, (1, 2), text), add(6, (1,), other),
    )  # fmt: skip
    one = {"at": NOW, "station": "a", "level": 0.5, "grade": 3}
    with Producer(redis_server, "c") as producer:
        before = int(time.time() * 1000)
        producer.append({1: [one, one], 2: [{"level": 4, "station": "a"}]})
        after = int(time.time() * 1000)
    row = pipeline.batch()
    found = windows_of(pipeline.client, 5, text, READINGS, plain)
    assert [place[1] for place in found] == ["a"] * len(found)
    assert sum(values["n"] for values in found.values()) == 3
    assert sum(values["sum"] for values in found.values()) == 5.0
    assert sum(v["n"] for v in windows_of(pipeline.client, 6, other, READINGS).values()) == 2
    assert before <= row["newest"]["2"] <= after


def test_a_record_of_the_year_2999_is_a_dead_letter_and_moves_no_mark(
    pipeline: Pipeline, redis_server: str
) -> None:
    """Once, also when the batch is repeated; what comes after it is not late."""
    text = QueryText({"n": "count(*)"}, key=["station"], window_s=3_600)
    pipeline.publish(*assigned([1], 1, READINGS), add(5, (1,), text))
    good = {"at": NOW, "station": "a", "price": Decimal("1.50")}
    bad = good | {"at": datetime(2999, 1, 1, tzinfo=UTC), "station": "b"}
    with Producer(redis_server, "c") as producer:
        position = producer.append({1: [good, bad, good]})
        first = pipeline.batch(repeat=2)
        producer.append({1: [good]})
        second = pipeline.batch()
    assert first["dead"] == {"1": {"future": 1}}
    assert first["newest"] == {"1": int(NOW.timestamp() * 1000)}
    assert (first["late"], second["late"], second["dead"]) == (0, 0, {})
    assert [v["n"] for v in windows_of(pipeline.client, 5, text, READINGS).values()] == [3]
    (letter,) = dead_letters.page(pipeline.client, "c")
    assert (letter.stream, letter.position, letter.index) == (1, position, 1)
    assert letter.reason is Reason.FUTURE
    assert "2999-01-01" in letter.message
    (kept,) = decode_block(letter.data).records.to_pylist()
    assert {name: kept[name] for name in bad} == bad
    assert dead_letters.read_counts(pipeline.client, "c") == {1: {Reason.FUTURE: 1}}


def test_a_block_that_is_none_stops_nothing(pipeline: Pipeline, redis_server: str) -> None:
    """Bytes of another program in the log become a dead letter with their position."""
    text = QueryText({"n": "count(*)"}, window_s=3_600)
    pipeline.publish(*assigned([1], 1, READINGS), add(5, (1,), text))
    with Producer(redis_server, "c", schemas={1: READINGS}) as producer:
        producer.append({1: [{"at": NOW, "station": "a"}]})
        position = open_log(redis_server, "c").append({1: Block(7, b"no block", None)})
        row = pipeline.batch()
    assert row["dead"] == {"1": {"unreadable": 7}}
    (letter,) = dead_letters.page(pipeline.client, "c")
    assert (letter.position, letter.index, letter.records) == (position, -1, 7)
    assert [v["n"] for v in windows_of(pipeline.client, 5, text, READINGS).values()] == [1]


def test_a_query_whose_column_has_gone_faults_alone(pipeline: Pipeline, redis_server: str) -> None:
    """The table stays usable: the other query goes on."""
    gone = QueryText({"n": "count(*)", "s": "sum(grade)"}, window_s=3_600)
    stays = QueryText({"n": "count(*)"}, window_s=3_600)
    pipeline.publish(*assigned([1], 1, READINGS), add(5, (1,), gone), add(6, (1,), stays))
    rest = tuple(column for column in READINGS.columns if column.name != "grade")
    pipeline.publish(SetSchema(1, StreamSchema(rest, event_time="at")))
    with Producer(redis_server, "c") as producer:
        producer.append({1: [{"at": NOW, "station": "a"}]})
    row = pipeline.batch()
    assert [(fault["query"], "grade" in fault["why"]) for fault in row["faults"]] == [(5, True)]
    assert [v["n"] for v in windows_of(pipeline.client, 6, stays, READINGS).values()] == [1]


def test_blocks_of_an_older_schema_are_read_with_the_newer(
    pipeline: Pipeline, redis_server: str
) -> None:
    """A widened column and one that was added meet those that were written before, in one batch."""
    old = StreamSchema(
        (ColumnSpec("at", "timestamp(s)", nullable=False), ColumnSpec("n", "int16")),
        event_time="at",
    )
    new = StreamSchema(
        (
            ColumnSpec("at", "timestamp(s)", nullable=False),
            ColumnSpec("n", "int64"),
            ColumnSpec("who", "string"),
        ),
        event_time="at",
    )
    text = QueryText({"sum": "sum(n)", "known": "count(who)"}, window_s=86_400)
    pipeline.publish(AssignStream(1, 0), SetSchema(1, old))
    with Producer(redis_server, "c") as late, Producer(redis_server, "c") as producer:
        late.append({1: [{"at": NOW, "n": 7}]})
        pipeline.publish(SetSchema(1, new), add(5, (1,), text))
        # One knows the new schema by itself, the other once a record does not fit the old one.
        producer.append({1: [{"at": NOW, "n": 2**40, "who": "me"}]})
        late.append({1: [{"at": NOW, "n": 1}]})
        late.append({1: pa.table({"who": ["you"], "at": pa.array([NOW])})})
    pipeline.batch()
    found = windows_of(pipeline.client, 5, text, new)
    assert list(found.values()) == [{"sum": 2**40 + 8, "known": 2}]
