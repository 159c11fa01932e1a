"""Windows of a query as the page shows them: rows of cells, lines of a few keys."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from controlplane.catalog.query_text import OutputColumn
from controlplane.results import KeyedWindow
from dashboard.numbers import MISSING, result

# More lines than these are not told apart.
SHOWN_KEYS = 6
_DRAWN = ("int", "decimal", "float")


@dataclass(frozen=True)
class Cell:
    """A value written out; numbers stand under each other's ends."""

    text: str
    is_number: bool = False
    name: str = ""


@dataclass(frozen=True)
class ResultRow:
    """One window of one key, written out: the key, then the aggregates."""

    start: datetime
    cells: list[Cell]
    state: str = "open"
    final_at: datetime | None = None


def result_rows(windows: Sequence[KeyedWindow], columns: Sequence[OutputColumn]) -> list[ResultRow]:
    """Return the windows written out, in their order."""
    numbers = set(drawn_values(columns))
    return [
        ResultRow(
            one.start,
            [
                *(Cell(key_text(value), name=name) for name, value in one.key.items()),
                *(
                    Cell(one.errors.get(name) or result(value), name in numbers, name)
                    for name, value in one.values.items()
                ),
            ],
            str(one.state),
            one.final_at,
        )
        for one in windows
    ]


def key_text(value: Any) -> str:
    """Return a value of a key: what names something has no separators of thousands."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else result(value)


def drawn_values(columns: Sequence[OutputColumn]) -> list[str]:
    """Return the aggregates that can be drawn as a line."""
    return [one.name for one in columns if one.role == "aggregate" and one.kind in _DRAWN]


def lines_of(windows: Sequence[KeyedWindow], value: str) -> dict[str, list[tuple[int, Any]]]:
    """Return (start in ms, value) by key, oldest first, of the keys that have most windows."""
    found: dict[str, list[tuple[int, Any]]] = {}
    for one in windows:
        point = (round(one.start.timestamp() * 1000), _drawn(one.values[value]))
        found.setdefault(_name(one.key), []).append(point)
    order = sorted(found, key=lambda name: (-len(found[name]), name))
    return {name: sorted(found[name], key=_start) for name in order[:SHOWN_KEYS]}


def _drawn(value: Any) -> Any:
    """Return the number that a chart draws, None for a value that is no finite number.

    Decimals, NaN and infinities are texts in results.
    """
    if not isinstance(value, str):
        return value
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _start(point: tuple[int, Any]) -> int:
    return point[0]


def _name(key: Mapping[str, Any]) -> str:
    return " · ".join(key_text(value) for value in key.values()) or MISSING
