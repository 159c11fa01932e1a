"""What rows of aggregated panes look like: in the state of tasks, and as results of queries."""

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import pyarrow as pa

from controlplane.wire.language.tree import Kind
from controlplane.wire.layout import Shape

# `run`: which life of the query the row belongs to; a move without state begins the next.
OWNER: Final = ("query", "run", "task")
PLACE: Final = (*OWNER, "stream", "pane")
# What names a cell of a sketch: which aggregate it is of, and its number or text.
CELL: Final = ("a", "c", "t")


@dataclass(frozen=True)
class Form:
    """What the rows of a state table look like: what identifies one, and how equal ones merge."""

    schema: Any
    identity: tuple[str, ...]
    merges: tuple[tuple[str, str], ...]


@cache
def slots_form(shape: Shape) -> Form:
    """Return the form of panes with the slots of a shape."""
    schema = pa.schema([*((name, pa.int64()) for name in PLACE), *shape.fields])
    return Form(schema, (*PLACE, *shape.key_names), tuple(shape.merges))


@cache
def cells_form(keys: tuple[Kind, ...]) -> Form:
    """Return the form of the cells of sketches: `added` sums up, of `largest` the largest stays."""
    bare = Shape(keys, ())
    cell = [("a", pa.int64()), ("c", pa.int64()), ("t", pa.string())]
    numbers = [("added", pa.int64()), ("largest", pa.int64())]
    place = [(name, pa.int64()) for name in PLACE]
    schema = pa.schema([*place, *bare.fields, *cell, *numbers])
    return Form(schema, (*PLACE, *bare.key_names, *CELL), (("added", "sum"), ("largest", "max")))


@cache
def blobs_form(keys: tuple[Kind, ...]) -> Form:
    """Return the form of users' aggregates: `state` is bytes, merged by their own code."""
    bare = Shape(keys, ())
    place = [(name, pa.int64()) for name in PLACE]
    schema = pa.schema([*place, *bare.fields, ("a", pa.int64()), ("state", pa.binary())])
    return Form(schema, (*PLACE, *bare.key_names, "a"), (("state", "list"),))
