"""Queries over records recomputed in plain Python: every window from all records that it accepts.

Nothing of the engine's arithmetic is used, only the language's kinds of numbers.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from controlplane.results.values import plain as shown
from controlplane.wire.language.tree import Kind
from controlplane.wire.query_text import QueryText

Row = Mapping[str, Any]
# Start of the window (ms), then the key.
Place = tuple[Any, ...]
Windows = dict[Place, dict[str, Any]]


@dataclass
class Record:
    """One record of the log: `mark` is the newest event time of its stream before its block.

    `batch`, `version`: the batch that read it and its routing version, None until one has.
    """

    stream: int
    ts_ms: int
    row: Row
    mark_ms: int | None
    position: tuple[int, int]
    batch: int | None = None
    version: int = 0

    def is_on_time(self, lateness_ms: int) -> bool:
        """Return whether the record is not older than what came before it allows."""
        return self.mark_ms is None or self.ts_ms >= self.mark_ms - lateness_ms


@dataclass
class Asked:
    """A query that runs since a routing version; `kinds` are those of its columns, by side."""

    pk: int
    text: QueryText
    streams: tuple[int, ...]
    kinds: Mapping[str, Kind]
    version: int
    merged: bool
    names: Mapping[int, str]


def widened(value: Any, kind: Kind) -> Any:
    """Return a number in the kind that all streams of a query have together."""
    if value is None or kind is Kind.TEXT:
        return value
    return float(value) if kind is Kind.FLOAT else Decimal(value) if kind is Kind.DECIMAL else value


def windows_of(asked: Asked, records: Iterable[Record], newest: int) -> Windows:
    """Return every window of a query over the records that were read up to the batch `newest`."""
    text = asked.text
    size = round(text.window_s * 1000)
    slide = size if text.slide_s is None else round(text.slide_s * 1000)
    inside: dict[int, list[Record]] = defaultdict(list)
    for one in records:
        if one.stream not in asked.streams or one.batch is None or one.version < asked.version:
            continue
        if not one.is_on_time(round(text.lateness_s * 1000)):
            continue
        for start in range((one.ts_ms - size) // slide * slide + slide, one.ts_ms + 1, slide):
            if one.batch <= newest:
                inside[start].append(one)
    found: Windows = {}
    for start, mine in inside.items():
        rows = _pairs(asked, mine) if text.right else [_row(asked, one) for one in mine]
        found |= _aggregated(asked, start, rows)
    return found


def late_of(asked: Asked, records: Iterable[Record]) -> int:
    """Return the records that were read for a query, are wanted by it, and are too late.

    Whether a join wants one is only known of its pairs.
    """
    wants = WHERE["" if asked.text.right else asked.text.where]
    return sum(
        one.stream in asked.streams and one.batch is not None and one.version >= asked.version
        and not one.is_on_time(round(asked.text.lateness_s * 1000))
        and wants({} if asked.text.right else _row(asked, one))
        for one in records
    )  # fmt: skip


def _row(asked: Asked, record: Record, side: str = "") -> dict[str, Any]:
    row = {
        f"{side}{name}": widened(value, asked.kinds[f"{side}{name}"])
        for name, value in record.row.items()
    }
    return {**row, f"{side}stream": asked.names[record.stream]}


def _pairs(asked: Asked, records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return the pairs of a left and a right record whose `k` is equal."""
    right = [_row(asked, one, "b.") for one in records if one.stream in asked.text.right]
    left = [_row(asked, one, "a.") for one in records if one.stream not in asked.text.right]
    return [
        {**a, **b} for a in left for b in right if a["a.k"] is not None and a["a.k"] == b["b.k"]
    ]


WHERE: Mapping[str, Callable[[Row], bool]] = {
    "": lambda row: True,
    "v > 0": lambda row: row["v"] is not None and row["v"] > 0,
    "g <> 'b'": lambda row: row["g"] is not None and row["g"] != "b",
    "a.v <= b.v": lambda row: None not in (row["a.v"], row["b.v"]) and row["a.v"] <= row["b.v"],
}


def _aggregated(asked: Asked, start: int, rows: Iterable[Row]) -> Windows:
    groups: dict[Place, list[Row]] = defaultdict(list)
    for row in rows:
        if WHERE[asked.text.where](row):
            groups[(start, *(shown(row[name], Kind.NULL) for name in asked.text.key))].append(row)
    return {
        place: {name: _value(text, mine) for name, text in asked.text.aggregates.items()}
        for place, mine in groups.items()
    }


def _value(text: str, rows: Sequence[Row]) -> Any:
    function, _, rest = text.rstrip(")").partition("(")
    column, _, setting = rest.partition(", ")
    if column == "*":
        return len(rows)
    values = [row[column] for row in rows if row[column] is not None]
    match function:
        case "count":
            return len(values)
        case "count_distinct":
            return len(set(values))
        case "top_k":
            counted = sorted(Counter(values).items(), key=lambda pair: (-pair[1], pair[0]))
            return [list(pair) for pair in counted[: int(setting)]]
        case "median":
            ordered = sorted(map(float, values))
            return ordered[(len(ordered) - 1) // 2] if values else None
    numbers: Mapping[str, Callable[[list[Any]], Any]] = {"sum": sum, "min": min, "max": max}
    return shown(numbers[function](values), Kind.NULL) if values else None
