"""Joins as they are submitted: sides by name, stored by id, refused with every fault at once."""

import json
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from controlplane.access.roles import Actor
from controlplane.catalog.computations import output_columns
from controlplane.catalog.queries import row_of
from controlplane.connections import redis_client
from controlplane.errors import Invalid
from controlplane.models import AuditEntry, Cluster, Query, QueryStream, Stream
from controlplane.queries.spec import QuerySpec
from controlplane.results.pages import keyed_windows
from controlplane.topology import placement, queries
from controlplane.wire.language.errors import Place, place_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.results.finalized import ResultQuery
from controlplane.wire.routing.publication import read_table
from tests.support.cluster import replayed_table, stream_id
from tests.support.schemas import REPORTS
from tests.support.schemas import part as reports_with
from tests.support.sunk import report, write_batch
from tests.support.windows import DjangoDatabase
from workers.pipeline.engine.advance import advance_state
from workers.pipeline.engine.evaluation.records import Records
from workers.pipeline.engine.store import MemoryStore
from workers.pipeline.routing.compiled_table import CompiledTable

pytestmark = pytest.mark.django_db(transaction=True)


def text(**changed: Any) -> QueryText:
    values: dict[str, Any] = {
        "aggregates": {"n": "count(*)", "faster": "sum(b.speed - a.speed)"},
        "key": ["a.car", "b.stream"],
        "on": [["car", "car"]],
    }
    return QueryText(**(values | changed))


def spec(**changed: Any) -> QuerySpec:
    values: dict[str, Any] = {"name": "q", "streams": ["s0", "s1"], "right": ["s3", "s2"]}
    return QuerySpec(**({"text": text()} | values | changed))


def faults(by: Actor, cluster: Cluster, **changed: Any) -> dict[str, list[str]]:
    with pytest.raises(Invalid) as refused:
        queries.submit(by, cluster, spec(**changed))
    assert not Query.objects.exists()
    return refused.value.fields


def test_the_right_side_is_stored_and_sent_by_ids(operator: Actor, sf: Cluster) -> None:
    """The query reads the streams of both sides, in its rows and in the routing table."""
    query = queries.submit(operator, sf, spec())
    placement.place_pending(sf.pk)
    sf.refresh_from_db()
    ids = {name: stream_id(sf, name) for name in ("s0", "s1", "s2", "s3")}
    read = QueryStream.objects.filter(query=query).values_list("stream", flat=True)
    assert sorted(read) == sorted(ids.values())
    route = read_table(redis_client(), "sf", sf.routing_version).queries[query.pk]
    assert sorted(route.streams) == sorted(ids.values())
    assert json.loads(route.text)["right"] == [ids["s3"], ids["s2"]]
    assert replayed_table(sf).queries[query.pk] == route
    row = row_of(query)
    assert (row.left, row.right) == (("s0", "s1"), ("s2", "s3"))


def test_ids_in_a_text_do_not_count(operator: Actor, sf: Cluster) -> None:
    """Nobody reads a stream of another cluster by its number."""
    smuggled = text(right=[stream_id(sf, "s4")])
    assert list(faults(operator, sf, text=smuggled, right=())) == ["text.right"]
    query = queries.submit(operator, sf, spec(text=smuggled))
    assert str(stream_id(sf, "s4")) not in json.dumps(json.loads(query.text)["right"])


def test_the_audit_log_names_both_sides(operator: Actor, sf: Cluster) -> None:
    queries.submit(operator, sf, spec())
    after = AuditEntry.objects.get(action="query.submit").after
    assert (after["streams"], after["right"]) == (["s0", "s1"], ["s3", "s2"])


@pytest.mark.parametrize(
    ("changed", "field", "word"),
    [
        ({"right": ["nowhere"]}, "text.right", "There is no stream nowhere"),
        ({"right": ["s2", "s2"]}, "text.right", "s2 is named twice"),
        ({"right": ["s1", "s2"]}, "text.right", "s1 is on the left side already"),
        ({"right": ["s1", "s0"]}, "text.right", "Leaves no stream for the left side"),
        ({"right": [f"t{i}" for i in range(199)]}, "text.right", "At most 200 streams"),
        ({"right": ()}, "text.right", "Names no stream"),
        ({"streams": ()}, "streams", "Name 1 to 200 streams"),
        ({"text": text(on=())}, "text.on", "Names no pair"),
        ({"text": text(on=[["car"]])}, "text.on.0", "Must be two expressions"),
        ({"text": text(on=[["car", "car"], ["car", "ts"]])}, "text.on.1", "int with time"),
        ({"text": text(on=[["speed / 2", "ts"]])}, "text.on.0", "float with time"),
        ({"text": text(on=[["car", "car"]] * 9)}, "text.on", "At most 8 pairs, not 9"),
        ({"text": text(on=[["a.car", "car"]])}, "text.on.0", "On the left, columns have no"),
        ({"text": text(key=["car"])}, "text.key", "names its side: a.car or b.car"),
        ({"text": text(aggregates={"n": "sum(speed)"})}, "text.aggregates.n", "names its side"),
        ({"text": text(where="speed > 1")}, "text.where", "names its side: a.speed or b.speed"),
    ],
)
def test_one_fault_is_told_at_its_field(
    operator: Actor, sf: Cluster, changed: dict[str, Any], field: str, word: str
) -> None:
    found = faults(operator, sf, **changed)
    assert list(found) == [field]
    assert word in found[field][0]


def test_every_fault_is_told_at_once_and_points_at_its_place(operator: Actor, sf: Cluster) -> None:
    """Of a pair that is wrong on both sides, both are told."""
    wrong = text(
        aggregates={"n": "mean(b.speed - speed)"}, key=["c.car"], on=[["spede", "car + cab"]]
    )
    found = faults(operator, sf, text=wrong, right=["s2", "nowhere", "s0"])
    assert found["text.right"] == [
        "There is no stream nowhere", "s0 is on the left side already",
    ]  # fmt: skip
    left, right = found["text.on.0"]
    assert left.startswith("On the left, there is no column spede")
    assert place_of(right) == Place("car + cab", "      ^^^", 7)
    assert place_of(found["text.aggregates.n"][0]) == Place(
        "mean(b.speed - speed)", "               ^^^^^", 16
    )
    assert set(found) == {"text.right", "text.on.0", "text.aggregates.n", "text.key"}


def test_each_side_offers_what_all_its_own_streams_declare(operator: Actor, sf: Cluster) -> None:
    Stream.objects.filter(name__in=["s0", "s1"]).update(schema=reports_with("car", "speed"))
    Stream.objects.filter(name="s3").update(schema=reports_with("car", "x"))
    fits = text(aggregates={"n": "sum(a.speed + b.x)"})
    found = faults(operator, sf, text=text(on=[["x", "speed"]], where="b.speed > a.x"))
    assert sorted(found) == ["text.aggregates.faster", "text.on.0", "text.where"]
    assert len(found["text.on.0"]) == 2
    checked = queries.checked(sf, spec(text=fits))
    assert list(checked.usable) == [
        "a.ts", "a.car", "a.speed", "a.stream", "b.ts", "b.car", "b.x", "b.stream",
    ]  # fmt: skip
    assert queries.submit(operator, sf, spec(text=fits))


def test_a_named_column_does_not_stand_for_a_column_of_a_side(operator: Actor, sf: Cluster) -> None:
    """`speed` may be a name of the query's own; in a pair it is the stream's."""
    named = text(columns={"car": "a.car // 2"}, key=["car"])
    query = queries.submit(operator, sf, spec(text=named))
    table = CompiledTable(read_after_drain(sf))
    (group,) = table.tasks_of_node(0).groups
    assert group.computation.join is not None
    ((left, right),) = group.computation.join.on
    assert left == right
    assert query.pk in table.table.queries


def test_a_name_that_the_streams_have_is_refused(operator: Actor, sf: Cluster) -> None:
    """A column of the query's own stands beside those of its streams."""
    alone = QueryText({"n": "sum(x)"}, columns={"x": "speed * 2"})
    assert list(faults(operator, sf, text=alone, right=())) == ["text.columns.x"]


def test_columns_chained_to_any_depth_are_refused_at_their_place(
    operator: Actor, sf: Cluster
) -> None:
    """Each line is shallow; together they would be deeper than what evaluates them can go."""
    columns = {"c0": "speed"} | {f"c{i + 1}": f"c{i}{' + 1' * 60}" for i in range(60)}
    deep = QueryText({"n": "sum(c60)"}, columns=columns)
    found = faults(operator, sf, text=deep, right=())
    assert list(found) == ["text.columns.c2"]
    place = place_of(found["text.columns.c2"][0])
    assert place is not None
    assert place.character == 1


def test_a_check_tells_the_columns_of_a_join(operator: Actor, sf: Cluster) -> None:
    """Without a key it may be split all the same: by what must be equal."""
    found = queries.checked(sf, spec(name="", tasks=4))
    assert found.fields == {}
    assert found.computation is not None
    assert [(c.name, c.kind, c.role) for c in output_columns(found.computation)] == [
        ("a.car", "int", "key"), ("b.stream", "text", "key"),
        ("n", "int", "aggregate"), ("faster", "int", "aggregate"),
    ]  # fmt: skip
    assert queries.checked(sf, spec(text=text(key=()), tasks=4)).fields == {}


def read_after_drain(sf: Cluster) -> Any:
    placement.place_pending(sf.pk)
    sf.refresh_from_db()
    return read_table(redis_client(), "sf", sf.routing_version)


def test_what_was_submitted_is_what_the_nodes_compute(operator: Actor, sf: Cluster) -> None:
    """From names to results: every window is that of a plain double loop over the records."""
    query = queries.submit(operator, sf, spec(tasks=8))
    table = CompiledTable(read_after_drain(sf))
    rows = random_rows([stream_id(sf, name) for name in ("s0", "s1", "s2", "s3")])
    stores = [MemoryStore() for _ in range(4)]
    for batch, part in enumerate(np.array_split(np.arange(len(rows)), 3), start=1):
        for node, store in enumerate(stores):
            records = records_of([rows[at] for at in part])
            found = advance_state(store, table.tasks_of_node(node), records, {}, batch)
            told = report(batch, node)
            known = {query.pk: ResultQuery(table.computations[query.pk], is_merged=True)}
            write_batch(redis_client(), "sf", told, found, known, DjangoDatabase())
    windows = {
        (one.start.timestamp(), *one.key.values()): tuple(one.values.values())
        for one in keyed_windows(sf, query, 10_000)
    }
    assert len(windows) > 20
    assert windows == paired(sf, rows)


Row = dict[str, int]


def random_rows(streams: list[int]) -> list[Row]:
    rng = np.random.default_rng(5)
    return [
        {
            "stream": streams[int(rng.integers(4))],
            "ts": int(rng.integers(180_000)),
            "car": int(rng.integers(12)),
            "speed": int(rng.integers(1, 1000)),
        }
        for _ in range(150)
    ]


def records_of(rows: list[Row]) -> Records:
    columns = {
        name: [row.get(name, 0) for row in rows] for name in ("ts", "car", "x", "y", "speed")
    }
    table = pa.table({name: pa.array(values) for name, values in columns.items()}).cast(
        REPORTS.arrow
    )
    stream = np.array([row["stream"] for row in rows])
    marks = np.full(len(rows), np.iinfo(np.int64).min)
    times = np.array([row.get("ts", 0) for row in rows], np.int64)
    return Records(table, times, stream, marks, frozenset(stream.tolist()), event_time="ts")


def paired(sf: Cluster, rows: list[Row]) -> dict[Any, tuple[int, int]]:
    names = {stream.pk: stream.name for stream in sf.streams.all()}
    count: Counter[Any] = Counter()
    faster: dict[Any, int] = defaultdict(int)
    for left in (row for row in rows if names[row["stream"]] in ("s0", "s1")):
        for right in (row for row in rows if names[row["stream"]] in ("s2", "s3")):
            start = left["ts"] // 60_000
            if left["car"] == right["car"] and start == right["ts"] // 60_000:
                place = (start * 60.0, left["car"], names[right["stream"]])
                count[place] += 1
                faster[place] += right["speed"] - left["speed"]
    return {place: (n, faster[place]) for place, n in count.items()}
