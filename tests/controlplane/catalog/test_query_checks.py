"""Queries as text: checked whole before they are saved, and sent to the pipeline as they are."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.access.roles import Actor
from controlplane.catalog.computations import (
    computation_of_query,
    kinds_of,
    output_columns,
    text_of,
)
from controlplane.catalog.queries import QueryFilters, queries_listing, row_of
from controlplane.connections import redis_client
from controlplane.errors import Invalid
from controlplane.models import Cluster, Node, Query, Stream, Task
from controlplane.queries.spec import QuerySpec
from controlplane.topology import nodes, placement, queries, rows
from controlplane.topology.placement import task_ranges_over
from controlplane.wire.language.errors import Place, place_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.publication import read_table
from controlplane.wire.routing.route import task_ranges_of
from tests.support.cluster import placed, replayed_table, submit
from tests.support.schemas import REPORTS, part
from tests.support.texts import SUMMARY, SUMMARY_TEXT

pytestmark = pytest.mark.django_db(transaction=True)
TEXT = QueryText(
    {"reports": "count(*)", "fast": "quantile(kmh, 0.95)"},
    window_s=300.0,
    slide_s=60.0,
    where="speed is not null",
    columns={"metres": "speed / 100", "kmh": "metres * 3.6"},
    key=["car"],
)


def spec(**changed: Any) -> QuerySpec:
    values: dict[str, Any] = {"name": "q", "streams": ["s0", "s1"], "text": TEXT}
    return QuerySpec(**(values | changed))


def text(**changed: Any) -> QueryText:
    return QueryText(**({"aggregates": {"n": "count(*)"}} | changed))


def faults(by: Actor, cluster: Cluster, **changed: Any) -> dict[str, list[str]]:
    with pytest.raises(Invalid) as refused:
        queries.submit(by, cluster, spec(**changed))
    assert not Query.objects.exists()
    return refused.value.fields


def test_a_text_is_kept_and_reaches_the_pipeline_as_it_is(operator: Actor, sf: Cluster) -> None:
    """Also the order of its columns, each of which may name those before it."""
    query = queries.submit(operator, sf, spec())
    placement.place_pending(sf.pk)
    sf.refresh_from_db()
    route = read_table(redis_client(), "sf", sf.routing_version).queries[query.pk]
    sent = QueryText.from_json(json.loads(route.text))
    assert sent == TEXT == text_of(Query.objects.get())
    assert list(sent.columns) == ["metres", "kmh"]
    assert route.task_ranges == ()
    assert computation_of_query(query).window.panes == 5
    assert replayed_table(sf) == rows.current_table(sf.pk)


def test_every_fault_is_told_at_once_and_points_at_its_place(operator: Actor, sf: Cluster) -> None:
    wrong = text(
        aggregates={"fast": "mean(spede)", "car": "count(*)"},
        columns={"kmh": "speed *", "x": "1"},
        where="speed > 3\nand colour = 1",
        key=["car"],
        window_s=0.0,
    )
    told = faults(operator, sf, text=wrong, name="a/b")
    assert sorted(told) == [
        "name", "text.aggregates.car", "text.aggregates.fast", "text.columns.kmh", "text.columns.x",
        "text.where", "text.window_s",
    ]  # fmt: skip
    (fault,) = told["text.where"]
    assert fault.startswith("There is no column colour; there are ts, car")
    assert place_of(fault) == Place("and colour = 1", "    ^^^^^^", len("speed > 3\nand ") + 1)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"text": text(), "tasks": 2}, "tasks"),
        ({"tasks": 0}, "tasks"),
        ({"tasks": 1025}, "tasks"),
        ({"text": text(aggregates={})}, "text.aggregates"),
        ({"text": text(aggregates={"a b": "count(*)"})}, "text.aggregates.a b"),
        ({"text": text(aggregates={f"a{i}": "count(*)" for i in range(65)})}, "text.aggregates"),
        ({"text": text(aggregates={"a": f"sum({'(' * 900}1{')' * 900})"})}, "text.aggregates.a"),
        ({"text": text(window_s=604_801.0)}, "text.window_s"),
        ({"text": text(slide_s=61.0)}, "text.slide_s"),
        ({"text": text(lateness_s=-1.0)}, "text.lateness_s"),
        ({"text": text(lateness_s=float("nan"))}, "text.lateness_s"),
        ({"text": text(key=["speed", "colour"])}, "text.key"),
        ({"text": text(where="speed")}, "text.where"),
        ({"text": text(where="nothing_of_that_name(speed)")}, "text.where"),
        ({"text": text(where="__import__('os').system('true')")}, "text.where"),
    ],
)
def test_one_fault_is_told_at_its_field(
    operator: Actor, sf: Cluster, changed: dict[str, Any], field: str
) -> None:
    assert list(faults(operator, sf, **changed)) == [field]


def test_columns_that_double_each_other_are_refused_before_they_grow(
    operator: Actor, sf: Cluster
) -> None:
    """Sixty lines of text would be 2 ** 60 operations in the pipeline; said where it begins."""
    columns = {"c0": "speed"} | {f"c{i + 1}": f"c{i} + c{i}" for i in range(60)}
    wrong = text(aggregates={"n": "sum(c60)"}, columns=columns)
    found = faults(operator, sf, text=wrong)
    assert list(found) == ["text.columns.c12"]
    assert "too large" in found["text.columns.c12"][0]


def test_a_bulk_request_tells_the_faults_of_each_row(operator: Actor, sf: Cluster) -> None:
    rows = [
        spec(name="a"),
        spec(name="b", text=text(where="colour = 1")),
        spec(name="c", text=SUMMARY),
    ]
    with pytest.raises(Invalid) as refused:
        queries.submit_many(operator, sf, rows)
    assert {row: list(told) for row, told in refused.value.rows.items()} == {1: ["text.where"]}
    assert not Query.objects.exists()
    assert len(queries.submit_many(operator, sf, [rows[0], rows[2]])) == 2


def test_streams_that_declare_columns_offer_those_that_all_have(
    operator: Actor, sf: Cluster
) -> None:
    """A stream without a schema has none."""
    Stream.objects.filter(name="s0").update(schema=part("car", "speed", "x", colour="string"))
    Stream.objects.filter(name="s1").update(schema=part("car", "x", "y"))
    Stream.objects.filter(name="s2").update(schema={})
    assert "text.where" in faults(operator, sf, text=text(where="speed > 1"))
    assert "text.where" in faults(operator, sf, streams=["s2"], text=text(where="speed > 1"))
    assert queries.submit(operator, sf, spec(text=text(where="x > 1 and ts is not null")))
    alone = spec(name="r", streams=["s0"], text=text(where="speed > 1 and colour = 'red'"))
    assert queries.submit(operator, sf, alone)
    assert kinds_of([{}]) == kinds_of([{}, REPORTS.to_json()]) == {}
    assert kinds_of([REPORTS.to_json()]) == REPORTS.kinds


def test_a_check_tells_the_columns_of_the_results(operator: Actor, sf: Cluster) -> None:
    """Without a name or a stream, as one begins to write."""
    found = queries.checked(sf, spec(name="", streams=[]))
    assert found.fields == {}
    assert found.computation is not None
    assert [(c.name, c.kind, c.role) for c in output_columns(found.computation)] == [
        ("car", "int", "key"),
        ("reports", "int", "aggregate"),
        ("fast", "float", "aggregate"),
    ]
    wrong = queries.checked(sf, spec(name="a/b", text=text(where="colour")))
    assert list(wrong.fields) == ["name", "text.where"]
    assert wrong.computation is None


def test_a_split_query_is_on_all_nodes_by_capacity(operator: Actor, sf: Cluster) -> None:
    """From the fastest node, which is chosen first, contiguous, and as one row per node."""
    nodes.configure(operator, sf.nodes.get(index=2), capacity=1500)
    query = queries.submit(operator, sf, spec(tasks=12))
    placement.place_pending(sf.pk)
    table = rows.current_table(sf.pk)
    assert table == replayed_table(sf)
    assert table.queries[query.pk].task_ranges == ((2, 0, 6), (3, 6, 8), (0, 8, 10), (1, 10, 12))
    row = row_of(query)
    assert row.task_ranges == table.queries[query.pk].task_ranges
    assert row.node is not None
    assert (row.node.index, Task.objects.count()) == (2, 4)


def test_a_split_query_is_one_row_of_the_list(operator: Actor, sf: Cluster) -> None:
    """Whatever it is sorted by; it is found under each of its nodes."""
    placed(operator, sf, {"a": ["s5"]})
    queries.submit(operator, sf, spec(tasks=8))
    placement.place_pending(sf.pk)
    for order in ("node", "-node", "name", ""):
        page = queries_listing(sf, QueryFilters(order=order)).page
        assert sorted(row.query.name for row in page.rows) == ["a", "q"]
    on_last = queries_listing(sf, QueryFilters(node=3)).page
    assert [row.query.name for row in on_last.rows] == ["q"]


def test_a_split_query_leaves_the_table_whole(operator: Actor, sf: Cluster) -> None:
    queries.submit(operator, sf, spec(tasks=8))
    placement.place_pending(sf.pk)
    queries.end(operator, sf, ["q"])
    assert placement.place_pending(sf.pk) == placement.PlacementPass(removed=1)
    assert not Task.objects.exists()
    assert replayed_table(sf).queries == {}


def test_a_split_query_weighs_once_in_placement(operator: Actor, sf: Cluster) -> None:
    """LeastCost sees it on its first node: the next reader of its stream goes there."""
    queries.submit(operator, sf, spec(streams=["s5"], tasks=8))
    placement.place_pending(sf.pk)
    (other,) = placed(operator, sf, {"a": ["s5"]})
    assert Task.objects.get(query=other).node == Task.objects.get(query__name="q", index=0).node


def test_the_message_that_places_a_whole_query_is_small(operator: Actor, sf: Cluster) -> None:
    """It may be one of thousands: what it does not need is left out."""
    submit(operator, sf, {"q": ["s0"]})
    placement.place_pending(sf.pk)
    (op,) = sf.routing_versions.latest("version").ops
    assert set(op) == {"op", "query", "incarnation", "node", "streams", "text"}
    assert op["text"] == SUMMARY_TEXT


@given(
    capacities=st.lists(st.floats(0.001, 1e6), min_size=1, max_size=8),
    tasks=st.integers(1, 1024),
    first=st.integers(0, 7),
)
def test_intervals_hold_every_task_once(capacities: list[float], tasks: int, first: int) -> None:
    """Task 0 is on the first node, and no node is more than a task off its share."""
    nodes = [Node(index=index, capacity=one) for index, one in enumerate(capacities)]
    begin = nodes[first % len(nodes)]
    task_ranges = task_ranges_over(nodes, begin, tasks)
    owners = [node for node, low, stop in task_ranges for _ in range(low, stop)]
    assert task_ranges == task_ranges_of(owners)
    assert (len(owners), owners[0]) == (tasks, begin.index)
    for node in nodes:
        share = tasks * node.capacity / sum(capacities)
        assert abs(owners.count(node.index) - share) < 2
