"""Tables of results in long form: plain values, ready for JSON."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

Cell = float | int | str | None


@dataclass(frozen=True)
class Table:
    """Rows of plain values under named columns; no numpy types, so that JSON takes them."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @classmethod
    def from_records(cls, columns: Sequence[str], records: Iterable[Mapping[str, Any]]) -> Self:
        """Build a table from one mapping per row; numpy scalars become Python's, nan None."""
        rows = (tuple(_plain(record[column]) for column in columns) for record in records)
        return cls(tuple(columns), tuple(rows))

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Build a table from the value of `to_json`."""
        return cls(tuple(value["columns"]), tuple(tuple(row) for row in value["rows"]))

    def to_json(self) -> dict[str, Any]:
        """Return {"columns": [...], "rows": [[...], ...]}."""
        return {"columns": list(self.columns), "rows": [list(row) for row in self.rows]}

    def column(self, name: str) -> tuple[Cell, ...]:
        """Return the values of one column. Raises `KeyError` on others."""
        if name not in self.columns:
            raise KeyError(f"{name!r} is not a column; columns: {', '.join(self.columns)}")
        return tuple(row[self.columns.index(name)] for row in self.rows)

    def records(self) -> list[dict[str, Cell]]:
        """Return one mapping per row."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


# The columns of `summarise` beside x and "series"; no x has such a name.
FIGURES: Final = ("mean", "deviation", "smallest", "largest", "runs")


def summarise(table: Table, x: str, y: str) -> Table:
    """Return `y` over the seeds of each (x, series), in order of first appearance.

    Columns: x, "series", "mean", "deviation" (of the sample; 0 for one run), "smallest",
    "largest", "runs". Runs whose `y` is None do not count; without any, the figures are None.
    """
    groups: dict[tuple[Cell, Cell], list[float]] = {}
    for row in table.records():
        group = groups.setdefault((row[x], row["series"]), [])
        if isinstance(value := row[y], int | float):
            group.append(float(value))
    columns = (x, "series", *FIGURES)
    return Table(columns, tuple((*key, *_figures(values)) for key, values in groups.items()))


def _figures(values: list[float]) -> tuple[Cell, ...]:
    if not values:
        return (None, None, None, None, 0)
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return (statistics.fmean(values), deviation, min(values), max(values), len(values))


def _plain(value: Any) -> Cell:
    plain: Cell = value.item() if hasattr(value, "item") else value
    # JSON has neither infinity nor nan.
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain
