"""Tables and lines of a query's windows."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any

from controlplane.catalog.query_text import OutputColumn
from controlplane.results.values import KeyedWindow
from dashboard.forms import number
from dashboard.numbers import MISSING, result

# More lines are indistinguishable.
SHOWN_KEYS = 6
_DRAWN = ("int", "decimal", "float")


@dataclass(frozen=True)
class Cell:
    """A formatted value; numbers are right-aligned."""

    text: str
    is_number: bool = False
    name: str = ""


@dataclass(frozen=True)
class ResultRow:
    """A formatted window of one key: the key, then the aggregates."""

    start: datetime
    cells: list[Cell]
    state: str = "open"
    final_at: datetime | None = None


def result_rows(windows: Sequence[KeyedWindow], columns: Sequence[OutputColumn]) -> list[ResultRow]:
    """Return the formatted windows, in their order."""
    numbers = set(drawn_values(columns))
    return [
        ResultRow(
            window.start,
            [
                *(Cell(key_text(value), name=name) for name, value in window.key.items()),
                *(
                    Cell(window.errors.get(name) or result(value), name in numbers, name)
                    for name, value in window.values.items()
                ),
            ],
            str(window.state),
            window.final_at,
        )
        for window in windows
    ]


def key_text(value: Any) -> str:
    """Return a value of a key: what names something has no separators of thousands."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else result(value)


def drawn_values(columns: Sequence[OutputColumn]) -> list[str]:
    """Return the aggregates that can be drawn as a line."""
    return [
        column.name for column in columns if column.role == "aggregate" and column.kind in _DRAWN
    ]


def lines_of(windows: Sequence[KeyedWindow], value: str) -> dict[str, list[tuple[int, Any]]]:
    """Return (start in ms, value) by key, oldest first, of the keys that have most windows."""
    points: dict[str, list[tuple[int, Any]]] = {}
    for window in windows:
        point = (round(window.start.timestamp() * 1000), _drawn(window.values[value]))
        points.setdefault(_name(window.key), []).append(point)
    order = sorted(points, key=lambda name: (-len(points[name]), name))
    return {name: sorted(points[name], key=itemgetter(0)) for name in order[:SHOWN_KEYS]}


def _drawn(value: Any) -> Any:
    """Return the number that a chart draws, None for a value that is no finite number.

    Decimals, NaN and infinities are texts in results.
    """
    if not isinstance(value, str):
        return value
    drawn = number(value)
    return drawn if math.isfinite(drawn) else None


def _name(key: Mapping[str, Any]) -> str:
    return " · ".join(key_text(value) for value in key.values()) or MISSING
