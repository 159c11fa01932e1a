"""Random schemas, records and queries: nothing that the demonstrations have."""

import random
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from controlplane.wire.query_text import QueryText
from controlplane.wire.schema import ColumnSpec, StreamSchema

NUMBERS: Final = ("int16", "int32", "int64", "uint64", "decimal(12, 3)", "float64")
IDLE_S: Final = 300.0
_NEVER_S: Final = 10 * 86_400.0
# Each with those of its inputs that it wants: a number, or any value.
_AGGREGATES: Final = (
    "count(*)", "count({v})", "sum({v})", "min({v})", "max({v})", "median({v})",
    "count_distinct({v})", "count_distinct({k})", "top_k({g}, 2)",
)  # fmt: skip


def random_schema(rng: random.Random, *, texts: bool, idles: bool) -> StreamSchema:
    """Return a schema with a key `k`, a group `g` and a value `v`, in an order of its own.

    `texts`: whether the key is a text; otherwise it is a number of any type, as the value.
    """
    unit = rng.choice(("ms", "us"))
    columns = [
        ColumnSpec("k", "string" if texts else rng.choice(NUMBERS)),
        ColumnSpec("g", "string"),
        ColumnSpec("v", rng.choice(NUMBERS)),
        ColumnSpec("happened", f"timestamp({unit})", nullable=False),
    ]
    rng.shuffle(columns)
    return StreamSchema(
        tuple(columns), "happened", watermark_delay_s=rng.choice((0, 1, 10, 120)),
        idle_after_s=IDLE_S if idles else _NEVER_S,
    )  # fmt: skip


def random_row(rng: random.Random, schema: StreamSchema) -> dict[str, Any]:
    """Return the values of a record but its event time; numbers are exact in every kind."""
    types = {column.name: column.type for column in schema.columns}
    return {
        "k": _nullable(rng, _number(rng, types["k"], 0, 5)),
        "g": _nullable(rng, rng.choice("abc")),
        "v": _nullable(rng, _number(rng, types["v"], 0 if types["v"][0] == "u" else -9, 9)),
    }


def _nullable(rng: random.Random, value: Any) -> Any:
    return None if rng.random() < 0.1 else value


def _number(rng: random.Random, kind: str, least: int, most: int) -> Any:
    whole = rng.randint(least, most)
    if kind == "string":
        return f"key {whole}"
    half = rng.choice((0, 0, 1))
    if kind.startswith("decimal"):
        return Decimal(2 * whole + half) / 2
    return whole + half / 2 if kind.startswith("float") else whole


def random_text(rng: random.Random) -> QueryText:
    """Return a query over the union of its streams."""
    return QueryText(
        _aggregates(rng, {"k": "k", "g": "g", "v": "v"}),
        where=rng.choice(("", "", "v > 0", "g <> 'b'")),
        key=rng.sample(("k", "g", "stream"), rng.randint(0, 2)),
        lateness_s=rng.choice((0.0, 0.5, 3.0)),
        **_window(rng),
    )


def random_join(rng: random.Random, right: Sequence[int]) -> QueryText:
    """Return a join of streams to `right` by their keys."""
    names = {name: rng.choice("ab") + f".{name}" for name in ("k", "g", "v")}
    return QueryText(
        _aggregates(rng, names),
        where=rng.choice(("", "a.v <= b.v")),
        key=rng.sample(("a.k", "b.g", "a.stream"), rng.randint(0, 2)),
        lateness_s=rng.choice((0.0, 0.5, 3.0)),
        right=list(right),
        on=[["k", "k"]],
        **_window(rng),
    )


def _window(rng: random.Random) -> Mapping[str, Any]:
    size = rng.choice((1.0, 2.5, 10.0, 60.0))
    return {"window_s": size, "slide_s": rng.choice((None, None, size / 2, size / 5))}


def _aggregates(rng: random.Random, names: Mapping[str, str]) -> dict[str, str]:
    chosen = rng.sample(_AGGREGATES, rng.randint(2, 6))
    return {f"a{at}": text.format(**names) for at, text in enumerate(chosen)}
