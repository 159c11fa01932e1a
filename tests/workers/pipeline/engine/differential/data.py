"""Random records with every kind of column, and with the values that break things."""

import math
import os
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from controlplane.wire.language.tree import Kind

LEAST, MOST = -(2**63), 2**63 - 1
# By name the kind, and the Arrow type in which records have the column.
COLUMNS: Final[dict[str, tuple[Kind, Any]]] = {
    "small": (Kind.INT, pa.int16()),
    "whole": (Kind.INT, pa.int64()),
    "huge": (Kind.INT, pa.int64()),
    "ratio": (Kind.FLOAT, pa.float64()),
    "odd": (Kind.FLOAT, pa.float64()),
    "price": (Kind.DECIMAL, pa.decimal128(20, 4)),
    "fee": (Kind.DECIMAL, pa.decimal128(38, 9)),
    "count": (Kind.DECIMAL, pa.uint64()),
    "word": (Kind.TEXT, pa.string()),
    "line": (Kind.TEXT, pa.string()),
    "yes": (Kind.BOOL, pa.bool_()),
    "seen": (Kind.TIME, pa.timestamp("us", "UTC")),
    "day": (Kind.DATE, pa.date32()),
    "at.x": (Kind.INT, pa.int32()),
}
KINDS: Final = {"ts": Kind.TIME, **{name: kind for name, (kind, _) in COLUMNS.items()}}
_WORDS: Final = (
    "",
    "a",
    "A",
    "ab",
    "b",
    "ä",
    "a\u0308",
    "ß",
    "𝄞",
    " a ",
    "a%",
    "_",
    "İ",
    "x" * 400,
)
_FLOATS: Final = (0.0, -0.0, 1.0, -1.5, 2.5, math.nan, math.inf, -math.inf, 0.1, 1e-12, -7.0)
_ODD: Final = (*_FLOATS, -math.nan, 1e308, -1e308, 5e-320, 2.0**53, 2.0**63, -(2.0**63), 1e19)
_HUGE: Final = (LEAST, LEAST + 1, MOST, MOST - 1, 0, -1, 1, 2**53 + 1, 2**32, 2**31 - 1)

Draw = Callable[[random.Random], Any]
_DRAWS: Final[dict[str, Draw]] = {
    "small": lambda rng: rng.randint(-9, 9),
    "whole": lambda rng: rng.randint(-(10**6), 10**6),
    "huge": lambda rng: rng.choice(_HUGE),
    "ratio": lambda rng: rng.choice(_FLOATS) if rng.random() < 0.3 else rng.randint(-800, 800) / 8,
    "odd": lambda rng: rng.choice(_ODD),
    "price": lambda rng: Decimal(rng.randint(-(10**6), 10**6)).scaleb(-rng.randint(0, 4)),
    "fee": lambda rng: Decimal(rng.randint(-(10**12), 10**12)).scaleb(-9),
    "count": lambda rng: rng.choice((0, 1, 7, 10**6)),
    "word": lambda rng: rng.choice(_WORDS),
    "line": lambda rng: rng.choice(_WORDS) + rng.choice(_WORDS) + str(rng.randint(0, 30)),
    "yes": lambda rng: rng.random() < 0.5,
    "seen": lambda rng: (
        rng.choice((0, -1_000, 1_709_164_800_000_000)) + 1_000 * rng.randint(0, 10**9)
    ),
    "day": lambda rng: rng.choice((0, -1, 19_782, 11_016)) + rng.randint(0, 40),
    "at.x": lambda rng: rng.randint(0, 3),
}


def seeds(usual: int) -> range:
    """Return the seeds of a run: `usual` of them unless the environment says how many."""
    return range(int(os.environ.get("WEIR_DIFFERENTIAL_SEEDS", usual)))


def random_columns(rng: random.Random, records: int) -> dict[str, Any]:
    """Return random columns as they are in records; those of a struct under their path."""
    nulls = rng.choice((0.0, 0.1, 0.5))
    return {
        name: pa.array(
            [None if rng.random() < nulls else _DRAWS[name](rng) for _ in range(records)], arrow
        )
        for name, (_, arrow) in COLUMNS.items()
    }


def random_times(rng: random.Random, records: int) -> Any:
    """Return event times in ms, roughly but not quite in order, some before 1970."""
    times, now = [], rng.choice((-5_000, 0, 86_400_000 * 19_782 - 3_000))
    for _ in range(records):
        now += rng.randint(0, 300)
        times.append(now - rng.choice((0, 0, 0, rng.randint(0, 4_000))))
    return pa.array(times, pa.timestamp("ms", "UTC"))


def nested(columns: dict[str, Any]) -> dict[str, Any]:
    """Return the columns with the fields of structs in structs."""
    plain = {name: column for name, column in columns.items() if "." not in name}
    fields = {name.partition(".")[2]: column for name, column in columns.items() if "." in name}
    return {**plain, "at": pa.StructArray.from_arrays(list(fields.values()), list(fields))}
