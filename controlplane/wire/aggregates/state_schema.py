"""Schemas of aggregated panes: in the state of tasks, and as results of queries."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from controlplane.wire.aggregates.layout import (
    ARROW,
    AggregateSchema,
    Layout,
    Moments,
    exact_spread,
)
from controlplane.wire.aggregates.sketches import float_codes
from controlplane.wire.language.aggregates import MOMENTS, Merge
from controlplane.wire.language.tree import Kind
from controlplane.wire.query import Computation

# `run`: the incarnation of the query that wrote the row.
OWNER: Final = ("query", "run", "task")
PLACE: Final = (*OWNER, "stream", "pane")
# The identity of a cell of a sketch: its aggregate, and its number or text.
CELL: Final = ("a", "c", "t")
# Kinds of numbers, each holding those before it.
NUMBERS_BY_WIDTH: Final = (Kind.INT, Kind.DECIMAL, Kind.FLOAT)


@dataclass(frozen=True)
class StateSchema:
    """The schema of a state table: the identity of a row, and how equal rows merge.

    `merges`: columns with the aggregation of Arrow that merges each; `moments`: columns of weight,
    mean, rest and spread, which merge together (`grouping.py`).
    """

    arrow: Any
    identity: tuple[str, ...]
    merges: tuple[tuple[str, str], ...]
    moments: tuple[Moments, ...] = ()


def _state_schema(
    names: Sequence[str],
    columns: Sequence[tuple[str, Any]],
    merges: Sequence[tuple[str, str]],
    moments: Sequence[Moments] = (),
) -> StateSchema:
    """Return the schema of rows with the columns of `PLACE` and these; `names` identify a row."""
    arrow = pa.schema([*((name, pa.int64()) for name in PLACE), *columns])
    return StateSchema(arrow, (*PLACE, *names), tuple(merges), tuple(moments))


@cache
def slots_schema(columns: AggregateSchema) -> StateSchema:
    """Return the state schema of panes with the slots of a shape."""
    return _state_schema(columns.key_names, columns.fields, columns.merges, columns.moments)


@cache
def cells_schema(keys: tuple[Kind, ...]) -> StateSchema:
    """Return the schema of the cells of sketches; `added` and `largest` merge by sum and max.

    `sketches.py` has which of both a sketch uses.
    """
    bare = AggregateSchema(keys, ())
    cell = [("a", pa.int64()), ("c", pa.int64()), ("t", pa.string())]
    numbers = [("added", pa.int64()), ("largest", pa.int64())]
    merges = (("added", "sum"), ("largest", "max"))
    return _state_schema([*bare.key_names, *CELL], [*bare.fields, *cell, *numbers], merges)


@cache
def blobs_schema(keys: tuple[Kind, ...]) -> StateSchema:
    """Return the state schema of users' aggregates: `state` is bytes, merged by their own code."""
    bare = AggregateSchema(keys, ())
    columns = [*bare.fields, ("a", pa.int64()), ("state", pa.binary())]
    return _state_schema([*bare.key_names, "a"], columns, (("state", "list"),))


@cache
def pairs_schema(
    keys: tuple[Kind, ...], left: tuple[Kind, ...], right: tuple[Kind, ...]
) -> StateSchema:
    """Return the state schema of the records of a join that wait for their counterparts.

    `side`: 0 for left, 1 for right; `k…` what must be equal, `a…` and `b…` the columns of each
    side (null on the other); `s0` how many such records there are.
    """
    columns = [("side", pa.int64())]
    for letter, kinds in (("k", keys), ("a", left), ("b", right)):
        columns += [(f"{letter}{index}", ARROW[kind]) for index, kind in enumerate(kinds)]
    names = [name for name, _ in columns]
    return _state_schema(names, [*columns, ("s0", pa.int64())], (("s0", "sum"),))


def pairs_name(computation: Computation) -> str:
    """Return the name of the state schema of a join's records."""
    join = computation.join
    assert join is not None
    kinds = (
        [left.kind for left, _ in join.on],
        [column.kind for column in join.left],
        [column.kind for column in join.right_columns],
    )
    return "j|" + "|".join(",".join(some) for some in kinds)


def is_pairs(name: str) -> bool:
    """Return whether a state schema of this name holds records of joins."""
    return name.startswith("j|")


def schema_names(layout: Layout) -> tuple[str, str, str]:
    """Return the schema names of a computation: of its slots, cells and users' states."""
    keys = AggregateSchema(layout.schema.keys, ()).name
    return f"s|{layout.schema.name}", f"c|{keys}", f"b|{keys}"


@cache
def schema_named(name: str) -> StateSchema:
    """Return the state schema of a name."""
    kind, _, rest = name.partition("|")
    if kind == "j":
        keys, left, right = (
            tuple(Kind(item) for item in some.split(",") if item) for some in rest.split("|")
        )
        return pairs_schema(keys, left, right)
    columns = AggregateSchema.named(rest)
    if kind == "s":
        return slots_schema(columns)
    return cells_schema(columns.keys) if kind == "c" else blobs_schema(columns.keys)


def can_convert(written: str, wanted: str) -> bool:
    """Return whether rows of one schema fit another with wider numbers."""
    if written == wanted:
        return True
    before, now = _parts_of(written), _parts_of(wanted)
    return len(before) == len(now) and all(
        item == other or _is_wider(item, other) for item, other in zip(before, now, strict=True)
    )


def _parts_of(name: str) -> list[tuple[str, str]]:
    """Return the columns of a state schema: a word that does not change, and a kind."""
    kind, _, rest = name.partition("|")
    if kind == "j":
        sides = enumerate(rest.split("|"))
        return [(f"j{index}", item) for index, some in sides for item in some.split(",")]
    columns = AggregateSchema.named(rest)
    keys = [(f"{kind} key", str(key)) for key in columns.keys]
    runs = [[columns.slots[index] for index in run] for run in _runs(columns)]
    parts = [(run[0][0], run[-1][1]) for run in runs]
    return keys + [(f"{kind} {merge}", str(of)) for merge, of in parts]


def _runs(columns: AggregateSchema) -> list[list[int]]:
    """Return the slots by index, the moments of an argument together."""
    runs: list[list[int]] = []
    for index, (merge, _) in enumerate(columns.slots):
        if merge in MOMENTS:
            runs[-1].append(index)
        else:
            runs.append([index])
    return runs


def _is_wider(item: tuple[str, str], other: tuple[str, str]) -> bool:
    before, now = item[1], other[1]
    if item[0] != other[0] or not {before, now} <= {*NUMBERS_BY_WIDTH}:
        return False
    return NUMBERS_BY_WIDTH.index(Kind(before)) < NUMBERS_BY_WIDTH.index(Kind(now))


def convert_rows(rows: Any, written: str, wanted: str) -> Any:
    """Return columns of rows of the state schema `written` as those of the state schema `wanted`.

    A column of a stream may have become wider since rows were written: whole numbers become
    decimals, and both become floats.
    """
    form, slots = schema_named(wanted).arrow, _converted_slots(rows, written, wanted)
    columns = {name: rows[name] for name in rows.column_names if name not in slots} | slots
    names = [name for name in form.names if name in columns]
    return pa.table({name: _widened(columns[name], form.field(name).type) for name in names})


def _converted_slots(rows: Any, written: str, wanted: str) -> dict[str, Any]:
    """Return the slot columns of the state schema `wanted`, not all in their types yet."""
    if wanted[0] != "s":
        return {}
    before, now = (AggregateSchema.named(name.partition("|")[2]) for name in (written, wanted))
    result: dict[str, Any] = {}
    for some, others in zip(_runs(before), _runs(now), strict=True):
        columns = [rows[f"s{index}"] for index in some]
        kind, wide = before.slots[some[-1]][1], now.slots[others[-1]]
        if len(some) > 1 and kind is not wide[1]:
            columns = _wider_moments(columns, kind, wide[1])
        elif wide == (Merge.MAX, Kind.FLOAT) and kind is not Kind.FLOAT:
            values = _widened(columns[0], pa.float64()).combine_chunks()
            codes: Any = float_codes(values.fill_null(0.0).to_numpy())
            columns = [pa.array(codes, mask=np.asarray(values.is_null()))]
        result |= {f"s{index}": column for index, column in zip(others, columns, strict=True)}
    return result


def _wider_moments(columns: Sequence[Any], kind: Kind, wanted: Kind) -> list[Any]:
    """Return exact moments as those of decimals or floats."""
    if wanted is Kind.DECIMAL:
        return [*columns, pa.nulls(len(columns[0]), pa.int64()).fill_null(0)]
    moments = []
    for count, *sums in zip(*(column.to_pylist() for column in columns), strict=True):
        mean = Fraction(sums[0]) / count if count else Fraction(0)
        spread = exact_spread(kind, count, *sums) if count else Fraction(0)
        pairs = [(float(exact), float(exact - Fraction(float(exact)))) for exact in (mean, spread)]
        moments.append((count, *pairs[0], *pairs[1]))
    return [pa.array(column) for column in np.array(moments).reshape(-1, 5).T]


def _widened(column: Any, kind: Any) -> Any:
    """Return numbers in a wider type; decimals as the nearest floats, which Arrow's cast misses."""
    if column.type == kind:
        return column
    if pa.types.is_decimal(column.type) and pa.types.is_floating(kind):
        column = column.cast(pa.string())
    return column.cast(kind, safe=not pa.types.is_floating(kind))


def to_bytes(rows: Any) -> bytes:
    """Return a table's rows as bytes, without their schema."""
    batches = rows.combine_chunks().to_batches()
    return bytes(batches[0].serialize()) if batches else b""


def from_bytes(form: StateSchema, data: bytes | None) -> Any:
    """Return the rows that `to_bytes` wrote, none for None."""
    if not data:
        return form.arrow.empty_table()
    batch = pa.ipc.read_record_batch(pa.py_buffer(data), form.arrow)
    return pa.Table.from_batches([batch])
