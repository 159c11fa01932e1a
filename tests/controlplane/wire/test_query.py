"""Queries are checked as a whole, and every fault is named at its field."""

import json

import pytest

from controlplane.wire.language.errors import Place, place_of
from controlplane.wire.language.tree import Column, Kind
from controlplane.wire.query import BadQuery, Window, computation_of, usable_columns
from controlplane.wire.query_text import QueryText

COLUMNS = {"ts": Kind.TIME, "car": Kind.INT, "x": Kind.INT, "speed": Kind.INT, "f": Kind.FLOAT}


def test_named_columns_stand_for_their_expressions() -> None:
    named = QueryText(
        {"kmh": "mean(fast)"}, columns={"kmh": "speed * 0.036", "fast": "kmh * 2"}, key=["car"]
    )
    plain = QueryText({"kmh": "mean(speed * 0.036 * 2)"}, key=["car"])
    assert computation_of(named, COLUMNS) == computation_of(plain, COLUMNS)
    assert computation_of(plain, COLUMNS).key == (("car", Column("car", Kind.INT)),)


def test_the_stream_is_a_column() -> None:
    found = computation_of(QueryText({"n": "count(*)"}, key=["stream"]), COLUMNS)
    assert found.key == (("stream", Column("stream", Kind.INT)),)


def test_the_sides_of_a_join_have_columns_of_their_own() -> None:
    """Pairs are over the columns of one side, without names of the query's own."""
    query = QueryText(
        {"n": "sum(speed)"}, columns={"speed": "a.car + b.x"}, right=[2], on=[["car", "x"]]
    )
    left, right = {"ts": Kind.TIME, "car": Kind.INT}, {"ts": Kind.TIME, "x": Kind.INT}
    found = computation_of(query, left, right).join
    assert found is not None
    assert found.on == ((Column("car", Kind.INT), Column("x", Kind.INT)),)
    assert (found.left, found.right_columns) == (
        (Column("a.car", Kind.INT),), (Column("b.x", Kind.INT),),
    )  # fmt: skip
    assert list(usable_columns(query, left, right)) == [
        "a.ts", "a.car", "a.stream", "b.ts", "b.x", "b.stream",
    ]  # fmt: skip
    with pytest.raises(BadQuery) as refusal:
        computation_of(query, right, left)
    assert set(refusal.value.fields) == {"columns.speed", "aggregates.n", "on.0.left", "on.0.right"}


def test_a_named_column_is_none_of_a_side() -> None:
    query = QueryText(
        {"n": "sum(speed)"}, columns={"speed": "a.speed * 2"}, right=[2], on=[["speed", "speed"]]
    )
    found = computation_of(query, COLUMNS).join
    assert found is not None
    assert found.on == ((Column("speed", Kind.INT), Column("speed", Kind.INT)),)


def test_what_grows_too_large_is_said_once_where_it_begins() -> None:
    """Neither of all that names it, nor of the aggregate."""
    columns = {"c0": "x"} | {f"c{i + 1}": f"c{i}{' + 1' * 60}" for i in range(60)}
    with pytest.raises(BadQuery) as refusal:
        computation_of(QueryText({"n": "sum(c60)"}, columns=columns), COLUMNS)
    assert list(refusal.value.fields) == ["columns.c2"]
    assert "too large" in refusal.value.fields["columns.c2"]


def test_panes_are_the_largest_common_span() -> None:
    assert Window(60_000, 45_000).pane_ms == 15_000
    assert Window(60_000, 45_000).panes == 4
    assert Window(60_000, 60_000).panes == 1


def test_a_query_travels_as_json() -> None:
    query = QueryText({"n": "count(*)"}, slide_s=20.0, where="speed > 3", key=["car"])
    row = json.loads(json.dumps(query.to_json()))
    assert set(row) == {"aggregates", "slide_s", "where", "key"}
    again = QueryText.from_json(row)
    assert computation_of(again, COLUMNS) == computation_of(query, COLUMNS)


def test_every_fault_is_named_at_its_field() -> None:
    query = QueryText(
        {"a": "mean(sped)", "b": "speed", "c": "median(x, 3)", "d": "quantile(x)", "e": "foo(x)",
         "g": "top_k(x, 0)", "h": "mean(ts)", "i": "quantile(x, x)", "j": "sum()"},
        where="speed + 1",
        columns={"speed": "1", "1a": "2", "zero": "null", "bad": "x +"},
        key=["nothing"],
        window_s=60,
        slide_s=90,
        lateness_s=-1,
    )  # fmt: skip
    with pytest.raises(BadQuery) as refusal:
        computation_of(query, COLUMNS)
    faults = refusal.value.fields
    assert set(faults) == {
        *(f"aggregates.{name}" for name in "abcdeghij"),
        *(f"columns.{name}" for name in ("speed", "1a", "zero", "bad")),
        "where", "key", "slide_s", "lateness_s",
    }  # fmt: skip
    assert place_of(faults["aggregates.a"]) == Place("mean(sped)", "     ^^^^", 6)
    assert "true or false" in faults["where"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"aggregates": {}}, "aggregates"),
        ({"key": ["nowhere"]}, "key"),
        ({"window_s": 0}, "window_s"),
        ({"window_s": float("nan")}, "window_s"),
        ({"window_s": -1e308}, "window_s"),
        ({"window_s": 0.0005}, "window_s"),
        ({"window_s": 3600, "slide_s": 1}, "slide_s"),
    ],
)
def test_what_cannot_run_is_refused(change: dict[str, object], field: str) -> None:
    with pytest.raises(BadQuery) as refusal:
        computation_of(QueryText(**{"aggregates": {"n": "count()"}, **change}), COLUMNS)  # type: ignore[arg-type]
    assert list(refusal.value.fields) == [field]
