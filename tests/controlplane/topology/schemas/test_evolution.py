"""Which changes of a schema are allowed, and which queries a refused one would break."""

import json
from dataclasses import replace
from typing import Any, Final

import pytest

from controlplane.topology.schemas.evolution import changes_between, retired_after, widens
from controlplane.topology.schemas.readers import SchemaReader, assess
from controlplane.wire.query_text import QueryText
from controlplane.wire.schema import ColumnSpec, StreamSchema
from controlplane.wire.types import arrow_type

# Readings of a weather station.
BASE: Final = StreamSchema(
    (
        ColumnSpec("measured", "timestamp(ms)", nullable=False),
        ColumnSpec("station", "string", nullable=False),
        ColumnSpec("celsius", "float32"),
        ColumnSpec("wind", "int16"),
        ColumnSpec("rain", "decimal(6, 2)"),
        ColumnSpec("spot", "struct<height: int16, roof: bool>"),
    ),
    event_time="measured",
)
HERE: Final = 7


def changed(**columns: Any) -> StreamSchema:
    """Return the schema with columns of other types, without those that are None."""
    known = {column.name: column for column in BASE.columns}
    for name, spec in columns.items():
        if spec is None:
            known.pop(name)
        elif isinstance(spec, ColumnSpec):
            known[name] = spec
        else:
            old = known.get(name, ColumnSpec(name, spec))
            known[name] = replace(old, type=spec)
    event_time = BASE.event_time if BASE.event_time in known else ""
    return replace(BASE, columns=tuple(known.values()), event_time=event_time)


def reader(name: str, left: tuple[int, ...] = (HERE,), **text: Any) -> SchemaReader:
    query = QueryText(**{"aggregates": {"n": "count(*)"}, **text})
    return SchemaReader(name, json.dumps(query.to_json()), left, tuple(text.get("right", ())))


@pytest.mark.parametrize(
    ("old", "new", "fits"),
    [
        ("int8", "int16", True), ("int8", "int64", True), ("int32", "int16", False),
        ("uint8", "uint64", True), ("uint8", "int16", True), ("uint32", "int32", False),
        ("uint64", "int64", False), ("int8", "uint64", False), ("int32", "float64", True),
        ("int64", "float64", False), ("int8", "float32", False), ("float32", "float64", True),
        ("float64", "float32", False), ("decimal(6, 2)", "decimal(8, 3)", True),
        ("decimal(6, 2)", "decimal(6, 3)", False), ("decimal(6, 2)", "decimal(9, 1)", False),
        ("timestamp(s)", "timestamp(us)", True), ("timestamp(us)", "timestamp(ms)", False),
        ("timestamp(ms)", "timestamp(ns)", False), ("list<int8>", "list<int64>", True),
        ("struct<a: int8>", "struct<a: int16>", True),
        ("struct<a: int8>", "struct<b: int8>", False), ("list<int8>", "int8", False),
        ("string", "binary", False), ("bool", "int8", False), ("date", "timestamp(ms)", False),
        ("int32", "decimal(20, 2)", False),
    ],
)  # fmt: skip
def test_a_type_widens_if_every_value_stays(old: str, new: str, fits: bool) -> None:
    """Nothing may be rounded, cut or wrapped."""
    assert widens(arrow_type(old), arrow_type(new)) is fits


@pytest.mark.parametrize(
    ("new", "told"),
    [
        (BASE, []),
        (changed(gust=ColumnSpec("gust", "float64")), [("gust", "added", True)]),
        (changed(gust=ColumnSpec("gust", "float64", nullable=False)), [("gust", "added", False)]),
        (changed(wind="int64"), [("wind", "retyped", True)]),
        (changed(wind="string"), [("wind", "retyped", False)]),
        (changed(wind=None), [("wind", "removed", True)]),
        (
            changed(measured=None),
            [("measured", "removed", False), ("event_time", "set", False)],
        ),
        (
            changed(station=ColumnSpec("station", "string")),
            [("station", "made nullable", True)],
        ),
        (
            changed(wind=ColumnSpec("wind", "int16", nullable=False)),
            [("wind", "made not nullable", False)],
        ),
        (replace(BASE, watermark_delay_s=5.0, max_future_s=0.0, idle_after_s=1.0),
         [("watermark_delay_s", "set", True), ("max_future_s", "set", True),
          ("idle_after_s", "set", True)]),
        (replace(BASE, event_time=""), [("event_time", "set", False)]),
        (replace(BASE, columns=tuple(reversed(BASE.columns))), []),
    ],
)  # fmt: skip
def test_each_change_is_named_and_judged(new: StreamSchema, told: list[Any]) -> None:
    """One by one, by the column or setting; another order of columns is not a change."""
    found = changes_between(BASE, new)
    assert [(one.name, one.action, not one.refusal) for one in found] == told


def test_the_name_of_a_removed_column_keeps_its_type() -> None:
    """Records of before may still be in the log, under that name."""
    gone = changed(wind=None)
    retired = retired_after(BASE, gone, {})
    assert retired == {"wind": "int16"}
    again = changed(wind=ColumnSpec("wind", "string"))
    (change,) = changes_between(gone, again, retired)
    assert "int16" in change.refusal
    wider = changed(wind=ColumnSpec("wind", "int32"))
    assert changes_between(gone, wider, retired)[0].refusal == ""
    assert retired_after(gone, wider, retired) == {}


READERS: Final = (
    reader("all"),
    reader("gusts", aggregates={"w": "max(wind)"}, key=("station",)),
    reader("mild", where="celsius > 10", columns={"gust": "wind * 2"}),
    reader("roofs", where="spot.roof"),
)


@pytest.mark.parametrize(
    ("new", "refused"),
    [
        (changed(rain=None), {}),
        (changed(wind="int64", celsius="float64"), {}),
        (changed(wind=None), {"wind": ["gusts", "mild"]}),
        (changed(wind=None, rain=None, celsius=None),
         {"wind": ["gusts", "mild"], "celsius": ["mild"]}),
        (changed(wind="float64"), {"wind": ["gusts"]}),
        (changed(station="binary"), {"station": ["gusts"]}),
        (changed(gust=ColumnSpec("gust", "string")), {"gust": ["mild"]}),
        (changed(spot=None), {"spot": ["roofs"]}),
        (replace(BASE, event_time=""), {"event_time": ["all", "gusts", "mild", "roofs"]}),
        (changed(rain="int8"), {"rain": []}),
        (replace(BASE, watermark_delay_s=1.0), {}),
    ],
)  # fmt: skip
def test_a_refusal_names_the_queries_that_it_would_break(
    new: StreamSchema, refused: dict[str, list[str]]
) -> None:
    """A whole number that becomes a float changes what a query computes; a wider int does not."""
    found = assess(BASE, new, READERS, {HERE: BASE}, HERE)
    named = {one.change.name: list(one.queries) for one in found if one.refusal}
    assert named == refused


def test_a_query_over_several_streams_sees_the_columns_of_all() -> None:
    """A kind that widens in one stream may widen the column that they have in common."""
    other = StreamSchema((ColumnSpec("wind", "uint32"), ColumnSpec("station", "string")))
    both = reader("both", left=(HERE, 8), key=("wind",))
    schemas = {HERE: BASE, 8: other}
    wide = replace(other, columns=(ColumnSpec("wind", "uint64"), ColumnSpec("station", "string")))
    (found,) = assess(other, wide, [both], schemas, 8)
    assert found.queries == ("both",)
    assert "something else" in found.reason
    join = reader(
        "join", aggregates={"n": "max(b.wind)"}, right=(8,), on=[["station", "station"]],
    )  # fmt: skip
    join = replace(join, left=(HERE,), right=(8,))
    gone = replace(other, columns=(ColumnSpec("station", "string"),))
    (lost,) = assess(other, gone, [join], schemas, 8)
    assert lost.queries == ("join",)
    assert "wind" in lost.reason
    assert assess(BASE, changed(wind=None), [join], schemas, HERE)[0].refusal == ""


def test_of_very_many_queries_the_first_are_named() -> None:
    """An answer stays short; how many there are is in it."""
    many = [reader(f"q{index:03}", aggregates={"w": "max(wind)"}) for index in range(300)]
    (found,) = assess(BASE, changed(wind=None), many, {HERE: BASE}, HERE)
    row = found.to_json()
    assert (len(row["queries"]), row["query_count"]) == (20, 300)
    assert "and 280 more" in found.sentence()
