"""The queries of the random schedules, and what each must give, by plain passes over the input.

Nothing of the pipeline's own arithmetic is used here: pandas on all records of a query at once.
"""

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from algorithms.partitioning.catalog import grouping_text
from controlplane.wire.query_text import QueryText

Place = tuple[int, tuple[Any, ...]]  # start of the window (ms), key
Values = dict[str, Any]

NUMBERS = {"n": "count(*)", "valued": "count(speed)", "total": "sum(speed)", "high": "max(speed)"}


@dataclass(frozen=True)
class Asked:
    """A query and how it is laid out: its tasks, key grouping and whether a node merges it."""

    query: int
    text: QueryText
    streams: tuple[int, ...]
    tasks: int = 1
    key_grouping: str = ""
    merged: bool = False
    # The columns of its key in the plain frame, and the rows that it wants.
    wants: Any = field(default=None, compare=False)

    @property
    def json(self) -> str:
        """Return the text as the routing table has it."""
        return json.dumps(self.text.to_json())


PARTIAL_KEY = grouping_text("partial_key")
CONSISTENT = grouping_text("consistent_grouping", {"slot_s": 0.5, "virtual": 5})


def asked(streams: int) -> list[Asked]:
    """Return the queries: one and several tasks, tumbling and sliding, three key groupings."""
    every = tuple(range(1, streams + 1))
    by_tile = {"tile": "x // 1000"}
    return [
        Asked(1, QueryText(NUMBERS, key=["car"]), every, tasks=8),
        Asked(
            2,
            QueryText(NUMBERS, key=["tile"], columns=by_tile, window_s=60, slide_s=20),
            every,
            tasks=6,
            key_grouping=PARTIAL_KEY,
            merged=True,
        ),
        Asked(
            3,
            QueryText(NUMBERS, where="speed > 300", key=["stream"], window_s=120, slide_s=60),
            every[: streams // 2],
            tasks=4,
            wants=lambda rows: rows.speed > 300,
        ),
        Asked(4, QueryText(NUMBERS, key=["tile"], columns=by_tile), every[:3], 5, CONSISTENT),
        Asked(
            5,
            QueryText(
                {"n": "count(*)", "total": "sum(a.speed + b.x)", "high": "max(b.speed)"},
                where="a.speed is not null",
                key=["a.car"],
                window_s=60,
                slide_s=30,
                right=[2, 3],
                on=[["car", "car"]],
            ),
            (1, 2, 3),
            tasks=3,
        ),
        *(Asked(10 + at, QueryText(NUMBERS, key=["stream"]), (at + 1,)) for at in range(streams)),
    ]


def expected(one: Asked, rows: pd.DataFrame) -> dict[Place, Values]:
    """Return every window of a query over these records: its input, late ones left out."""
    if one.wants is not None:
        rows = rows[one.wants(rows)]
    spread = in_windows(one, rows.assign(tile=rows.x // 1000))
    if one.text.right:
        return _joined(one, spread)
    grouped = spread.groupby(["start", *one.text.key])
    found = grouped.agg(
        n=("ts", "size"), valued=("speed", "count"), total=("speed", "sum"), high=("speed", "max")
    )
    return {
        (place[0], tuple(place[1:])): _plain(numbers)
        for place, numbers in zip(found.index, found.to_dict("records"), strict=True)
    }


def in_windows(one: Asked, rows: pd.DataFrame) -> pd.DataFrame:
    """Return each record once per window that it is in, with the window's start."""
    size, slide = round(one.text.window_s * 1000), round(
        (one.text.slide_s or one.text.window_s) * 1000
    )  # fmt: skip
    parts = []
    for back in range(0, size, slide):
        start = rows.ts // slide * slide - back
        inside = start + size > rows.ts
        parts.append(rows[inside].assign(start=start[inside]))
    return pd.concat(parts)


def _joined(one: Asked, rows: pd.DataFrame) -> dict[Place, Values]:
    """Return every window of the join: all pairs of equal cars in it."""
    right = rows.stream.isin(one.text.right)
    pairs = rows[~right].merge(rows[right], on=["start", "car"], suffixes=("_a", "_b"))
    pairs = pairs[pairs.speed_a.notna()].assign(both=pairs.speed_a + pairs.x_b)
    found = pairs.groupby(["start", "car"]).agg(
        n=("both", "size"), total=("both", "sum"), high=("speed_b", "max")
    )
    return {
        (start, (car,)): {
            "n": int(row["n"]),
            "total": int(row["total"]),
            "high": None if np.isnan(row["high"]) else int(row["high"]),
        }
        for (start, car), row in zip(found.index, found.to_dict("records"), strict=True)
    }


def _plain(numbers: dict[Any, Any]) -> Values:
    """Return whole numbers; without a value there is no total and no maximum."""
    there = numbers["valued"] > 0
    return {
        "n": int(numbers["n"]),
        "valued": int(numbers["valued"]),
        "total": int(numbers["total"]) if there else None,
        "high": int(numbers["high"]) if there and not np.isnan(numbers["high"]) else None,
    }
