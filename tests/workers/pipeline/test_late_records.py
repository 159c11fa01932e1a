"""Late records: what a wrong clock does, and that every late record is counted, once."""

import json
import random
import time
from collections import Counter
from typing import Any, Final

import pytest
import redis

from controlplane.wire.batching import BatchingProducer
from controlplane.wire.log.values import IdempotencyToken
from controlplane.wire.producer import Producer
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.schema import ColumnSpec, StreamSchema
from tests.support.pipeline import Pipeline
from tests.support.schemas import assigned
from tests.support.whole_results import read_windows, results_database

SENSOR: Final = StreamSchema(
    (ColumnSpec("at", "timestamp(ms)", nullable=False), ColumnSpec("key", "string")),
    event_time="at",
)
DELAY_MS: Final = 120_000
MINUTE: Final = 60_000
HOUR: Final = 60 * MINUTE
BY_KEY: Final = QueryText({"n": "count(*)"}, key=["key"], window_s=3_600)
# The same computation as `BY_KEY` for other queries; one that waits longer; one of some records.
PATIENT: Final = QueryText({"n": "count(*)"}, key=["key"], window_s=3_600, lateness_s=12 * 3_600)
OF_A: Final = QueryText({"n": "count(*)"}, where="key = 'a'", window_s=3_600)
TEXTS: Final = {5: BY_KEY, 6: BY_KEY, 7: PATIENT, 8: OF_A}


@pytest.fixture
def pipeline(redis_client: "redis.Redis", redis_server: str) -> Pipeline:
    found = Pipeline(redis_client, redis_server)
    queries = [
        AddQuery(pk, 0, pk % 2, (1,), json.dumps(text.to_json())) for pk, text in TEXTS.items()
    ]
    found.publish(*assigned([1, 2], 1, SENSOR), *queries)
    return found


def rows(*times_ms: int, key: str = "a") -> list[dict[str, Any]]:
    return [{"at": ms, "key": key} for ms in times_ms]


def counted(pipeline: Pipeline, query: int = 5) -> int:
    """Return the records in all windows of a query."""
    computation = computation_of(TEXTS[query], SENSOR.kinds)
    windows = read_windows(pipeline.client, pipeline.cluster, query, computation)
    return sum(row.values["n"] for row in windows)


def now_ms() -> int:
    return round(time.time() * 1000)


@pytest.mark.parametrize("place", [0, 50])
@pytest.mark.parametrize("devices", [1, 20])
def test_one_record_from_the_future_makes_no_other_late(
    pipeline: Pipeline, redis_server: str, place: int, devices: int
) -> None:
    """Alone in its append, or in every batch of a gateway with twenty devices."""
    with Producer(redis_server, "c") as producer:
        for n in range(100):
            times = [now_ms()] * devices
            if devices > 1 or n == place:
                times[0] += 50 * MINUTE
            position = producer.append({1: rows(*times)})
            assert position is not None
            assert position.late == {1: 0}
            is_ahead = devices > 1 or n == place
            assert position.ahead == ({1: times[0]} if is_ahead else {})
            if n % 40 == 39:
                assert pipeline.batch()["late"] == 0
    assert pipeline.batch(repeat=2)["late_streams"] == {}
    assert counted(pipeline) == 100 * devices


def test_partitions_of_a_backlog_one_after_the_other_are_counted_as_late(
    pipeline: Pipeline, redis_server: str
) -> None:
    """In the answers, by the stream and by each query, however often a batch is repeated."""
    rng, begin = random.Random(5), now_ms() // HOUR * HOUR - 48 * HOUR
    parts = [
        sorted(
            ((begin + rng.randrange(24 * HOUR), rng.choice("abc")) for _ in range(1_000)),
        )
        for _ in range(4)
    ]
    newest, late = 0, Counter[str]()
    answered, appended = 0, 0
    counts: dict[str, Counter[str]] = {"late_streams": Counter(), "late_queries": Counter()}
    with Producer(redis_server, "c") as producer:
        for part in parts:
            for first in range(0, 1_000, 250):
                block = part[first : first + 250]
                position = producer.append({1: [{"at": ms, "key": key} for ms, key in block]})
                assert position is not None
                assert position.late is not None
                answered += position.late[1]
                appended += len(block)
                for ms, key in block:
                    late["all"] += ms < newest - DELAY_MS
                    late["a"] += key == "a" and ms < newest - DELAY_MS
                    late["patient"] += ms < newest - 12 * HOUR
                newest = max(newest, *(ms for ms, _ in block))
            row = pipeline.batch(repeat=rng.choice((1, 3)))
            for name, total in counts.items():
                total.update(row[name])
    assert late["all"] > 2_000
    assert answered == late["all"]
    assert counts["late_streams"] == {"1": late["all"]}
    assert counts["late_queries"] == {
        "5": late["all"], "6": late["all"], "7": late["patient"], "8": late["a"],
    }  # fmt: skip
    assert [counted(pipeline, query) for query in (5, 6, 7)] == [
        appended - late["all"], appended - late["all"], appended - late["patient"],
    ]  # fmt: skip


def test_a_stream_that_resumes_after_a_gap_loses_nothing(
    pipeline: Pipeline, redis_server: str
) -> None:
    """Its second append confirms the first; older records are late from then on."""
    begin = now_ms() - 10 * HOUR
    steps = [0, 1_000, 5 * HOUR, 5 * HOUR + 1_000]
    with Producer(redis_server, "c") as producer:
        for step in steps:
            position = producer.append({1: rows(begin + step)})
        assert position is not None
        assert (position.late, position.ahead) == ({1: 0}, {})
        old = producer.append({1: rows(begin + HOUR, begin + 5 * HOUR)})
    assert old is not None
    assert old.late == {1: 1}
    assert pipeline.batch()["late_streams"] == {"1": 1}
    assert counted(pipeline) == len(steps) + 1


def test_a_repeated_append_has_the_answer_of_the_first(
    redis_server: str, pipeline: Pipeline
) -> None:
    token, now = IdempotencyToken("bridge", 7), now_ms()
    with Producer(redis_server, "c") as producer:
        producer.append({1: rows(now)})
        both = {1: rows(now - HOUR, now), 2: rows(now + 30 * MINUTE)}
        first = producer.append(both, token)
        producer.append({1: rows(now + 1)})
        again = producer.append(both, token)
    assert first is not None
    assert again is not None
    assert first == again
    assert (first.late, first.ahead) == (again.late, again.ahead)
    assert (first.late, first.ahead) == ({1: 1, 2: 0}, {2: now + 30 * MINUTE})
    assert pipeline.batch()["late_streams"] == {"1": 1}


def test_each_of_the_calls_that_share_an_append_has_its_own_count(
    redis_server: str, pipeline: Pipeline
) -> None:
    now = now_ms()
    with BatchingProducer(redis_server, "c", linger_ms=60_000) as producer:
        producer.send(1, rows(now))
        producer.flush()
        old = producer.send(1, rows(now - HOUR, now - 2 * HOUR, now))
        new = producer.send(1, rows(now + 1))
        producer.flush()
        assert (old.result().late, new.result().late) == ({1: 2}, {1: 0})
        assert old.result() == new.result()


def test_a_stream_that_was_idle_corrects_final_windows(
    redis_client: "redis.Redis", redis_server: str
) -> None:
    """Its part replaces what it had before, with a new number of the change; once."""
    pipeline = Pipeline(redis_client, redis_server)
    pipeline.publish(
        *assigned([1, 2], 1, SENSOR), AddQuery(5, 0, 0, (1, 2), json.dumps(BY_KEY.to_json()))
    )
    hour, database = now_ms() // HOUR * HOUR - 3 * HOUR, results_database()

    def first() -> tuple[str, int]:
        """Return values and number of the change of the first window."""
        statement = (
            "SELECT value_json, seq FROM results_window WHERE query_id = 5 ORDER BY start_ms"
        )
        value, seq = database.run(lambda cursor: cursor.execute(statement).fetchone())
        return value, seq

    with Producer(redis_server, "c") as producer:
        producer.append({1: rows(hour, hour), 2: rows(hour)})
        pipeline.batch()
        producer.append({1: rows(hour + 2 * HOUR)})
        pipeline.batch()
        final = f"UPDATE results_query SET final_ms = {hour}"
        database.run(lambda cursor: cursor.execute(final))
        value, before = first()
        assert value == "[3]"
        producer.append({2: rows(hour + 1, hour + 2)})
        pipeline.batch(repeat=3)
    value, seq = first()
    assert value == "[5]"
    assert seq > before
    assert counted(pipeline) == 6
