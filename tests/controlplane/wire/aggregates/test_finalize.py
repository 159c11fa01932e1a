"""From records to the values that were asked for, against Python's own statistics."""

import statistics
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import redis

from controlplane.wire.aggregates.layout import layout_of
from controlplane.wire.aggregates.sketches import decode_float
from controlplane.wire.aggregates.state_schema import convert_rows, schema_named, schema_names
from controlplane.wire.language.registered import aggregate
from controlplane.wire.language.tree import Kind
from controlplane.wire.query import Computation, computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.results.finalized import ResultQuery
from tests.support.sunk import report, write_batch
from tests.support.whole_results import read_windows
from tests.workers.pipeline.engine.evaluation.test_user_aggregates import TestRange
from tests.workers.pipeline.engine.storage.test_window_state import COLUMNS, Row, records_of
from workers.pipeline.engine.advance import advance_state
from workers.pipeline.engine.assignment.subscriptions import NodeGroup, Subscription
from workers.pipeline.engine.assignment.tasks import Tasks
from workers.pipeline.engine.store import MemoryStore

assert TestRange is not None  # registers test_range
draw = np.random.default_rng(3)
ROWS: list[Row] = [
    (
        int(draw.integers(1, 3)),
        int(draw.integers(0, 10_000)),
        int(draw.integers(1, 4)),
        None if draw.random() < 0.1 else str(draw.choice(list("abcd"))),
        None if draw.random() < 0.1 else int(draw.integers(-50, 50)),
    )
    for _ in range(400)
]
WIDENED = QueryText({"low": "min(speed)", "high": "max(speed)", "total": "sum(speed)"})
EVERYTHING = QueryText(
    {
        "records": "count(*)",
        "valued": "count(speed)",
        "sum": "sum(speed)",
        "mean": "mean(speed)",
        "low": "min(speed)",
        "high": "max(speed)",
        "variance": "variance(speed)",
        "stddev": "stddev(speed)",
        "last": "max(ts)",
        "names": "count_distinct(name)",
        "common": "top_k(name, 2)",
        "median": "median(speed * 1.0)",
        "q90": "quantile(speed, 0.9)",
        "range": "test_range(speed)",
    },
    key=["car"],
    window_s=5.0,
)


def run(client: "redis.Redis", text: QueryText, cuts: int, runs: int = 1) -> Any:
    """Return the windows that a reader sees after the rows came in so many batches."""
    computation = computation_of(text, COLUMNS)
    stores: list[MemoryStore] = [MemoryStore() for _ in range(runs)]
    for batch, rows in enumerate(np.array_split(np.arange(len(ROWS)), cuts)):
        life = batch * runs // cuts
        one = Subscription(9, life, (1, 2), 1, np.array([True]))
        tasks = Tasks.of([NodeGroup.of(computation, [one])])
        records = records_of([ROWS[at] for at in rows], None)
        changed = advance_state(stores[life], tasks, records, {}, batch)
        write_batch(
            client, "c", report(batch + 1), changed, {9: ResultQuery(computation, is_merged=True)}
        )
    return shown(read_windows(client, "c", 9, computation), computation)


def shown(windows: Any, computation: Computation) -> dict[Any, Any]:
    names = [name for name, _ in computation.key]
    return {(row.start_ms, *(row.key[name] for name in names)): dict(row.values) for row in windows}


def exact(rows: list[Row]) -> dict[str, Any]:
    """Return what the aggregates are, in Python; sketches exactly."""
    speeds = sorted(row[4] for row in rows if row[4] is not None)
    names = [row[3] for row in rows if row[3] is not None]
    common = sorted({(-names.count(name), name) for name in names})[:2]
    return {
        "records": len(rows),
        "valued": len(speeds),
        "sum": sum(speeds),
        "mean": pytest.approx(statistics.fmean(speeds)),
        "low": speeds[0],
        "high": speeds[-1],
        "variance": pytest.approx(statistics.variance(speeds)),
        "stddev": pytest.approx(statistics.stdev(speeds)),
        "last": max(row[1] for row in rows),
        "names": len(set(names)),
        "common": [[name, -count] for count, name in common],
        "median": pytest.approx(speeds[(len(speeds) - 1) // 2], rel=0.0101, abs=1e-9),
        "q90": pytest.approx(speeds[int(0.9 * (len(speeds) - 1))], rel=0.0101, abs=1e-9),
        "range": speeds[-1] - speeds[0],
    }


@pytest.mark.parametrize(("cuts", "runs"), [(1, 1), (7, 1), (9, 3)])
def test_every_aggregate_is_what_python_says(
    redis_client: "redis.Redis", cuts: int, runs: int
) -> None:
    """Over both streams, however batches were cut, and over the runs of a moved query."""
    groups: dict[Any, list[Row]] = {}
    for row in ROWS:
        groups.setdefault((row[1] // 5_000 * 5_000, row[2]), []).append(row)
    found = run(redis_client, EVERYTHING, cuts, runs)
    assert found == {place: exact(rows) for place, rows in groups.items()}


def test_windows_without_a_value_say_so(redis_client: "redis.Redis") -> None:
    text = QueryText(
        {"n": "count(*)", "mean": "mean(speed)", "v": "variance(speed)", "low": "min(speed)",
         "q": "median(speed)", "d": "count_distinct(speed)", "t": "top_k(car, 3)",
         "r": "test_range(speed)"},
        where="speed is null",
        window_s=10.0,
    )  # fmt: skip
    ((_, values),) = run(redis_client, text, 3).items()
    assert values.pop("n") == sum(row[4] is None for row in ROWS)
    assert values.pop("t")[0][1] > 1
    assert values.pop("d") == 0
    assert set(values.values()) == {None}


def test_keys_may_be_texts_times_and_nothing(redis_client: "redis.Redis") -> None:
    text = QueryText(
        {"n": "count(*)"},
        columns={"second": "second(ts)", "vowel": "name in ('a', 'e')"},
        key=["name", "second"],
        window_s=10.0,
    )
    found = run(redis_client, text, 4)
    wanted: dict[Any, Any] = {}
    for row in ROWS:
        place = (0, row[3], row[1] // 1000)
        wanted.setdefault(place, {"n": 0})["n"] += 1
    assert found == wanted
    assert COLUMNS["name"] is Kind.TEXT


@aggregate(takes="int", gives="int")
class TestBrittle(TestRange):
    """The largest, which it cannot tell of some."""

    def result(self, state: bytes) -> int:
        most = super().result(state)
        if most % 2:
            raise ValueError(f"{most} is odd")
        return most


def test_a_users_aggregate_that_raises_has_no_value_but_a_reason(
    redis_client: "redis.Redis",
) -> None:
    """All else of the window is there."""
    text = QueryText({"n": "count(*)", "b": "test_brittle(speed)"}, key=["car"], window_s=5.0)
    good = run(redis_client, text, 3)
    assert {values["b"] is None for values in good.values()} == {True, False}
    for row in read_windows(redis_client, "c", 9, computation_of(text, COLUMNS)):
        assert row.values["n"] > 0
        assert (row.values["b"] is None) == bool(row.errors)
        assert not row.errors or row.errors["b"].startswith("test_brittle raised ValueError")


def test_rows_from_before_a_column_became_wider_are_converted() -> None:
    """Whole numbers became floats: a largest float is kept in another form."""
    written, wanted = (
        schema_names(layout_of(computation_of(WIDENED, COLUMNS | {"speed": kind})))[0]
        for kind in (Kind.INT, Kind.FLOAT)
    )
    rows = pa.table(
        {"s0": [2, 1], "s1": [-7, None], "s2": [5, None], "s3": [1, 0], "s4": [12, None]}
    )
    old = rows.cast(
        pa.schema([schema_named(written).arrow.field(name) for name in rows.column_names])
    )
    new = convert_rows(old, written, wanted)
    assert new.schema.types == [
        schema_named(wanted).arrow.field(name).type for name in new.column_names
    ]
    assert [decode_float(code) for code in new["s2"].drop_null().to_pylist()] == [5.0]
    assert new["s1"].to_pylist() == [-7.0, None]
    assert new["s4"].to_pylist() == [12.0, None]
    assert convert_rows(new, wanted, wanted) == new
